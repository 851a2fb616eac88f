"""`Mount`: what is mounted in a sandbox, as an option.

Owns the value of the option `mounts`, and its checks. Rules: a path of the host is made absolute
here, and is opened by the machine.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from wasmsand.sdk import arguments

MountMode = Literal["read-only", "read-write", "overlay", "memory"]
_MODES: Final = ("read-only", "read-write", "overlay", "memory")
_SHORT: Final = {"ro": "read-only", "rw": "read-write", "overlay": "overlay"}


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory of this machine, for a place in a sandbox.

    Example:
        Sandbox(mounts={"/mnt/data": "data", "/mnt/repo": Mount(".", mode="overlay")})
    """

    source: str | os.PathLike[str] | None = None
    """The directory of this machine; None for `mode="memory"`."""
    mode: MountMode = "read-only"
    """`"read-only"`; `"read-write"`: the sandbox changes the directory itself; `"overlay"`: the
    changes stay in the sandbox; `"memory"`: an empty directory with a limit of its own."""
    limit_bytes: int | None = None
    """How many bytes the sandbox may add (`read-write`) or store (`memory`); None is the sandbox's
    `fs_limit_bytes`."""
    max_inodes: int | None = None
    """The same for files, directories and links."""

    def __post_init__(self) -> None:
        mode = arguments.text("mode", self.mode)
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
        if (self.source is None) != (mode == "memory"):
            raise ValueError("source must be a directory of this machine, or None for memory")
        if self.source is not None:
            object.__setattr__(self, "source", arguments.host_path("source", self.source))
        for name in ("limit_bytes", "max_inodes"):
            if getattr(self, name) is not None:
                arguments.positive_integer(name, getattr(self, name))


def mounts_option(name: str, value: object) -> dict[str, Mount]:
    """The option `mounts`: places in the sandbox, each with a `Mount` or a directory of this
    machine, which is then mounted read-only."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping of paths to mounts")
    return {
        mount_point(f"{name}[{path!r}]", path): each if isinstance(each, Mount) else Mount(each)
        for path, each in value.items()
    }


def mounts_from_plain(name: str, value: Mapping[str, object]) -> dict[str, object]:
    """The option `mounts` from plain values: for each path a directory, or the fields of a `Mount`.
    Raises `TypeError`, `ValueError`."""
    found: dict[str, object] = {}
    for path, each in value.items():
        if not isinstance(each, dict):
            found[path] = each
            continue
        try:
            found[path] = Mount(**each)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}[{path!r}]: {error}") from None
    return found


def mount_point(name: str, value: object) -> str:
    """`value` as a place where something can be mounted."""
    path = posixpath.normpath(arguments.absolute_path(name, value))
    if path.strip("/") == "" or path.split("/")[1] in ("proc", "dev"):
        raise ValueError(f"{name} must not be /, /proc or /dev")
    return "/" + path.lstrip("/")


def mount_of(
    source: str | os.PathLike[str] | None,
    mode: MountMode | None,
    read_only: bool,
    limit_bytes: int | None,
    max_inodes: int | None,
) -> Mount:
    """The mount that the arguments of `Sandbox.mount` describe."""
    if mode is None:
        mode = "read-only" if read_only else "read-write"
    return Mount(source, mode, limit_bytes, max_inodes)


def mount_from_word(word: str) -> tuple[str, Mount]:
    """`HOST:GUEST[:ro|rw|overlay]`, as on the command line. Raises `ValueError`."""
    rest, _, last = word.rpartition(":")
    mode = "read-only"
    if rest and last in _SHORT:
        mode = _SHORT[last]
        word = rest
    host, _, guest = word.rpartition(":")
    if not host or not guest.startswith("/"):
        raise ValueError(f"{word!r} is not HOST:GUEST[:ro|rw|overlay]")
    return mount_point("GUEST", guest), Mount(host, mode)  # type: ignore[arg-type] # of _SHORT
