"""What WASI programs cannot do, or cannot do yet: see docs/limitations.md."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wasmsand import Sandbox

Install = Callable[..., None]


@pytest.mark.xfail(reason="L021: an absolute link leads out of the working directory")
def test_an_absolute_link_is_followed_by_a_relative_path(
    sandbox: Sandbox, install: Install
) -> None:
    install("libc")
    result = sandbox.commands.run("ln -s /etc/hostname link; libc link | head -n 1")
    assert result.stdout == "link: sandbox\n"


@pytest.mark.xfail(reason="L022: wasi-libc does not tell etc/x from /etc/x")
def test_a_relative_path_may_begin_like_a_directory_of_the_root(
    sandbox: Sandbox, install: Install
) -> None:
    install("libc")
    result = sandbox.commands.run("mkdir etc; echo mine > etc/x; libc etc/x | head -n 1")
    assert result.stdout == "etc/x: mine\n"
