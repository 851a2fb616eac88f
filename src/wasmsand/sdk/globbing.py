"""Patterns of file names: what `files.list(glob=...)` means by one.

Rules: as shells have them. `*`, `?` and `[...]` match within one name, `**` as a whole
component is any number of directories. A pattern without a slash is matched with the name
alone. The time is linear in the path, whatever the pattern.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a relative path matches `pattern`."""
    parts = [_component(part) for part in pattern.split("/") if part not in ("", ".")]
    if "/" not in pattern:
        parts.insert(0, None)
    return lambda path: _matches(parts, path.split("/"))


def _component(part: str) -> re.Pattern[str] | None:
    """None is `**`."""
    return None if part == "**" else re.compile(fnmatch.translate(part))


def _matches(parts: list[re.Pattern[str] | None], names: list[str]) -> bool:
    """Whether all of `names` can be used up by all of `parts`: the set holds how many parts
    may have been used up so far."""
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
    """`**` may also stand for no directory at all."""
    reached = set(used)
    for index, part in enumerate(parts):
        if part is None and index in reached:
            reached.add(index + 1)
    return reached
