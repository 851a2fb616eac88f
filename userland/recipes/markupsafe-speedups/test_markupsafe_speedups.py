"""MarkupSafe: the module in C takes the place of the function in Python."""

from __future__ import annotations

from collections.abc import Callable


def test_text_is_escaped_by_the_module(full_python: Callable[[str], str]) -> None:
    printed = full_python(
        r"""
from markupsafe import Markup, _speedups, escape
from markupsafe import _escape_inner
print(_escape_inner is _speedups._escape_inner)
print(escape("<a href='x'>\"&\"</a>"), Markup("<b>%s</b>") % "<i>")
print(ascii(str(escape("\u00fc & \U0001F600 > \u03a9"))))
print(Markup("<em>Hello</em> &amp; x").striptags(), Markup("a") + "<")
"""
    )
    assert printed.splitlines() == [
        "True",
        "&lt;a href=&#39;x&#39;&gt;&#34;&amp;&#34;&lt;/a&gt; <b>&lt;i&gt;</b>",
        r"'\xfc &amp; \U0001f600 &gt; \u03a9'",
        "Hello & x a&lt;",
    ]
