"""Requirements files: `-r FILE` and `-c FILE`.

Owns reading them as pip does: comments, continued lines, variables, nested files. Rules: a line or
an option that is not about the registry makes the whole command the real pip's, which reads the
files again.
"""

from __future__ import annotations

import os
import re

_COMMENT = re.compile(r"(^|\s)#.*$")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_PER_REQUIREMENT = re.compile(r"\s--?(hash|config-settings?|global-option|C)\b.*$")
_IGNORED = ("--prefer-binary", "--only-binary", "--no-binary", "--pre", "--require-hashes")
_DEPTH_MAX = 20


class ForRealPip(Exception):
    """Something that only the real pip understands."""


class FileMissing(Exception):
    """A requirements file cannot be read."""


class RequirementsFiles:
    """What a list of files says."""

    def __init__(self) -> None:
        self.requirements: list[str] = []
        self.constraints: list[str] = []

    def read(self, path: str, constraints: bool = False, depth: int = 0) -> None:
        """Add what a file says. Raises `FileMissing`, `ForRealPip`."""
        if "://" in path or depth > _DEPTH_MAX:
            raise ForRealPip(path)
        try:
            with open(path, encoding="utf-8-sig") as stream:
                text = stream.read()
        except (OSError, UnicodeDecodeError) as error:
            raise FileMissing(f"Could not open requirements file: {error}") from None
        for line in _lines(text):
            self._take(line, os.path.dirname(path), constraints, depth)

    def _take(self, line: str, folder: str, constraints: bool, depth: int) -> None:
        if not line.startswith("-"):
            wanted = self.constraints if constraints else self.requirements
            wanted.append(_PER_REQUIREMENT.sub("", line))
            return
        option, _, value = line.replace("=", " ", 1).partition(" ")
        if line[:2] in ("-r", "-c") and line[1] != "-" and len(option) > 2:
            option, value = line[:2], line[2:]
        value = value.strip()
        if option in ("-r", "--requirement"):
            self.read(os.path.join(folder, value), constraints, depth + 1)
        elif option in ("-c", "--constraint"):
            self.read(os.path.join(folder, value), True, depth + 1)
        elif option not in _IGNORED:
            raise ForRealPip(line)


def _lines(text: str) -> list[str]:
    """The lines that say something: joined, without comments, with variables replaced."""
    joined = re.sub(r"\\\n", "", text.replace("\r\n", "\n"))
    found = (_COMMENT.sub("", line).strip() for line in joined.splitlines())
    return [_VARIABLE.sub(_variable, line) for line in found if line]


def _variable(match: re.Match[str]) -> str:
    return os.environ.get(match[1], match[0])
