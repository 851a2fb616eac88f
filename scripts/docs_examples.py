"""Shows the examples of docstrings as code, in the documentation site (`make docs`).

In this code base an example is a paragraph `Example:` with indented lines below it. Markdown would
treat these lines as text of the paragraph. mkdocs.yml loads this module.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^Example:\n+((?:(?: {4}.*)?\n)*(?: {4}.+))", re.MULTILINE)


def with_fences(text: str) -> str:
    """`text` with its examples as fenced code."""
    return _EXAMPLE.sub(
        lambda found: f"\n```python\n{textwrap.dedent(found[1]).strip()}\n```\n", text
    )


class ExamplesAsCode(griffe.Extension):  # type: ignore[misc]  # installed for `make docs` only
    """Changes each docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **_more: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = with_fences(obj.docstring.value)
