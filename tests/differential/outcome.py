"""What a script left behind, and the rules that both sides run it by.

Owns `Outcome`. Rules: both sides run `bash -c SCRIPT` as an ordinary user, in an empty
directory with the same path, with the same environment (but for PATH and the places of
programs' own files) and umask, with empty input; a side has TIME_LIMIT seconds. Files are
compared by name, type, permission bits, number of links, content and link target.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from typing import Final

from wasmsand.sdk.environment import BASE_VARIABLES

TIME_LIMIT: Final = 60.0
UMASK: Final = 0o022


@dataclass(frozen=True)
class Left:
    """A file that a script left."""

    kind: str
    """As in the first column of `ls -l`."""
    mode: str
    links: int
    """0 for directories, where it depends on the file system."""
    content: bytes
    """Of a regular file; of a symbolic link, its target."""


@dataclass(frozen=True)
class Outcome:
    """What is compared."""

    exit_code: int
    """As in `$?`: 128 + the signal's number if one ended the shell."""
    stdout: bytes
    stderr: bytes
    files: dict[str, Left] = field(default_factory=dict)


def environment(directory: str) -> dict[str, str]:
    """The variables of a script: the sandbox's own, at home in its directory."""
    return {**BASE_VARIABLES, "HOME": directory, "PWD": directory, "TZ": "UTC"}


def left(mode: int, links: int, content: bytes) -> Left:
    """A file by what stat(2) says of it."""
    links = 0 if stat.S_ISDIR(mode) else links
    return Left(stat.filemode(mode)[0], f"{stat.S_IMODE(mode):04o}", links, content)
