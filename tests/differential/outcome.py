"""What a script leaves behind, and the rules for running it on both sides.

Owns `Outcome`. Rules: both sides run `bash -c SCRIPT` as an ordinary user, in an empty directory
at the same path, with the same umask and environment (except PATH and the locations of programs'
own files), with empty input, for at most TIME_LIMIT seconds. Files are compared by name, type,
permission bits, number of links, content and link target.
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
    """The type and permissions, as in the first column of `ls -l`."""
    mode: str
    links: int
    """The number of links; 0 for directories, where it depends on the file system."""
    content: bytes
    """The content of a regular file, or the target of a symbolic link."""


@dataclass(frozen=True)
class Outcome:
    """What is compared."""

    exit_code: int
    """As in `$?`: 128 + the signal's number if a signal ended the shell."""
    stdout: bytes
    stderr: bytes
    files: dict[str, Left] = field(default_factory=dict)


def environment(directory: str) -> dict[str, str]:
    """The variables of a script: the sandbox's, with the script's directory as HOME."""
    # The sandbox has an /etc/gitconfig; the reference need not have the same.
    own = {"HOME": directory, "PWD": directory, "TZ": "UTC", "GIT_CONFIG_NOSYSTEM": "1"}
    return {**BASE_VARIABLES, **own}


def left(mode: int, links: int, content: bytes) -> Left:
    """A file as stat(2) describes it."""
    links = 0 if stat.S_ISDIR(mode) else links
    return Left(stat.filemode(mode)[0], f"{stat.S_IMODE(mode):04o}", links, content)
