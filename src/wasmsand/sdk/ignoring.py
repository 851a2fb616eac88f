"""Which files of a directory of this machine are left out: patterns as in `.gitignore` files.

Owns `IgnoreRules` and `rules_above`. Rules: syntax and order of patterns are git's. The last
pattern that matches decides; `!` includes again; a pattern with a slash at its beginning or in its
middle starts at the directory of its file; one with a slash at its end means directories only. What
is below an ignored directory cannot be included again. Patterns may come from a repository that is
not trusted: matching takes time linear in the length of a path (see `globbing`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wasmsand.sdk.globbing import matcher

GITIGNORE: Final = ".gitignore"
_FILE_MAX: Final = 1 << 20
"""Bytes of a .gitignore file that are read."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    base: str
    """The directory of its file, relative to the top; empty for the top."""
    matches: Callable[[str], bool]
    includes: bool
    only_directories: bool


class IgnoreRules:
    """The patterns that apply below one directory, in the order of their files."""

    __slots__ = ("_patterns",)

    def __init__(self, patterns: tuple[_Pattern, ...] = ()) -> None:
        self._patterns = patterns

    def with_lines(self, lines: Iterable[str], base: str = "") -> IgnoreRules:
        """These rules, and those of a file in the directory `base`."""
        further = [parsed for line in lines if (parsed := _parse(line, base)) is not None]
        return IgnoreRules((*self._patterns, *further)) if further else self

    def with_file(self, directory: Path, base: str) -> IgnoreRules:
        """These rules, and those of the `.gitignore` in a directory, if it has one."""
        try:
            with (directory / GITIGNORE).open("rb") as file:
                text = file.read(_FILE_MAX).decode("utf-8", "surrogateescape")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return self
        return self.with_lines(text.removeprefix("\ufeff").split("\n"), base)

    def ignore(self, path: str, *, is_directory: bool) -> bool:
        """Whether `path`, relative to the top, is left out. Its directories are not."""
        for pattern in reversed(self._patterns):
            if pattern.only_directories and not is_directory:
                continue
            if pattern.base and not path.startswith(pattern.base + "/"):
                continue
            start = len(pattern.base) + 1 if pattern.base else 0
            if pattern.matches(path[start:]):
                return not pattern.includes
        return False


def rules_above(directory: Path) -> tuple[IgnoreRules, str]:
    """The rules of the `.gitignore` files above a directory in its repository, and the path of the
    directory in the repository. Outside a repository there are none."""
    above = [directory, *directory.parents]
    roots = [place for place in above if (place / ".git").exists()]
    if not roots:
        return IgnoreRules(), ""
    prefix = directory.relative_to(roots[0]).as_posix()
    rules, base = IgnoreRules(), ""
    for place in reversed(above[1 : above.index(roots[0]) + 1]):
        base = place.relative_to(roots[0]).as_posix()
        rules = rules.with_file(place, "" if base == "." else base)
    return rules, "" if prefix == "." else prefix


def _parse(line: str, base: str) -> _Pattern | None:
    text = line.removesuffix("\r")
    if text.startswith("#"):
        return None
    text = _without_trailing_spaces(text)
    includes = text.startswith("!")
    text = text[includes:]
    only_directories = text.endswith("/")
    text = text.rstrip("/") if only_directories else text
    if not text:
        return None
    is_anchored = "/" in text
    text = text.removeprefix("/")
    if text.endswith("/**"):
        text += "/*"  # what is inside, not the directory itself
    glob = _as_glob(text)
    # `globbing` compares a pattern without a slash with names.
    return _Pattern(base, matcher(f"/{glob}" if is_anchored else glob), includes, only_directories)


def _without_trailing_spaces(text: str) -> str:
    stripped = text.rstrip(" ")
    if len(stripped) < len(text) and _ends_in_escape(stripped):
        stripped += " "
    return stripped


def _ends_in_escape(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _as_glob(text: str) -> str:
    r"""The pattern in the syntax of `globbing`, which has no backslash and no `[^...]`."""
    text = text.replace("[^", "[!")
    return re.sub(r"\\(.)", lambda match: f"[{match[1]}]", text)
