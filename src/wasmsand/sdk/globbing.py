"""File name patterns for `files.list(glob=...)`.

Rules: the syntax is that of shells. `*`, `?` and `[...]` match within one name; `**` as a whole
component matches any number of directories. A pattern without a slash is compared with the name
only. Matching takes time linear in the length of the path, whatever the pattern.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether a relative path matches `pattern`."""
    parts = [_component(part) for part in pattern.split("/") if part not in ("", ".")]
    if "/" not in pattern:
        parts.insert(0, None)
    return lambda path: _matches(parts, path.split("/"))


def _component(part: str) -> re.Pattern[str] | None:
    """One component of a pattern as a regular expression; None for `**`."""
    return None if part == "**" else re.compile(fnmatch.translate(part))


def _matches(parts: list[re.Pattern[str] | None], names: list[str]) -> bool:
    """Whether `parts` match `names` completely. The set contains the possible numbers of parts
    that match the names so far."""
    used = _skip_any(parts, {0})
    for name in names:
        further = set()
        for index in used:
            if index < len(parts):
                part = parts[index]
                if part is None:
                    further.add(index)
                elif part.match(name):
                    further.add(index + 1)
        used = _skip_any(parts, further)
    return len(parts) in used


def _skip_any(parts: list[re.Pattern[str] | None], used: set[int]) -> set[int]:
    """Add the numbers that result if `**` matches no directory."""
    reached = set(used)
    for index, part in enumerate(parts):
        if part is None and index in reached:
            reached.add(index + 1)
    return reached
