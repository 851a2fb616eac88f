"""Captured processes as plain values.

Owns the JSON form of `CapturedProcess`, and its inverse. Rules: inode numbers are not saved,
because another host numbers its files anew; `Places` turns them into names and back. Each field is
checked by the rules that hold for a living process: limits, ranges, which descriptor may be what. A
process that gets through can only be a strange guest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from wasmsand.kernel.flags import (
    O_ACCMODE,
    O_APPEND,
    O_DIRECTORY,
    O_LARGEFILE,
    O_NOATIME,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_PATH,
    O_RDONLY,
    O_TMPFILE_BIT,
    O_WRONLY,
)
from wasmsand.kernel.limits import (
    ARGUMENT_BYTES_MAX,
    FILE_SIZE_MAX,
    GROUPS_MAX,
    PATH_MAX,
    PID_MAX,
    PIPE_CAPACITY,
    Limits,
)
from wasmsand.kernel.process.captured import (
    CapturedFile,
    CapturedInode,
    CapturedPipeEnd,
    CapturedProcess,
    CapturedStream,
    CapturedText,
)
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.rlimits import COUNT, INFINITY, Limit, ResourceLimits
from wasmsand.kernel.process.signals import SIGNAL_MAX, UNBLOCKABLE, SignalAction, SignalInfo
from wasmsand.machine.saved.checked import (
    Fields,
    checked_bytes,
    checked_integer,
    checked_integers,
    encoded,
)
from wasmsand.machine.saved.problems import StateRejected

_KINDS: Final = ("file", "directory", "path", "device")
_FLAGS: Final = (
    O_ACCMODE | O_APPEND | O_NONBLOCK | O_LARGEFILE | O_DIRECTORY | O_NOFOLLOW | O_NOATIME
    | O_PATH | O_TMPFILE_BIT
)  # fmt: skip
_WORD: Final = (1 << 32) - 1
_LONG: Final = (1 << 64) - 1
_STRINGS_MAX: Final = 65_536
_NAME_BYTES: Final = 15
TEXT_MAX: Final = 32 << 20
"""Most bytes of input, given to a program at its start, that it has not read."""


class Places(Protocol):
    """Which names inodes have in a file."""

    def save(self, ino: int) -> object:
        """The JSON value that stands for an inode."""

    def find(self, value: object, kind: str) -> int:
        """The inode for such a value. It is one of `_KINDS`. Raises `StateRejected`."""


# To JSON.


def require_no_mounts(process: CapturedProcess) -> None:
    """Raise `StateRejected` if the process uses a mount: another host may not have it."""
    if process.mounted_paths:
        name = process.name.decode("utf-8", "replace")
        path = process.mounted_paths[0][:200].decode("utf-8", "replace")
        raise StateRejected(
            f"{name} uses {path}, which is in a mount; such sessions cannot be saved: close the "
            "file, or leave the directory"
        )


def process_values(process: CapturedProcess, places: Places) -> dict[str, Any]:
    """A process as JSON values. Raises `StateRejected` if it uses a mount."""
    require_no_mounts(process)
    identity = process.identity
    return {
        "pid": process.pid,
        "argv": [encoded(word) for word in process.argv],
        "environ": [encoded(word) for word in process.environ],
        "executable": encoded(process.executable),
        "name": encoded(process.name),
        "cwd": places.save(process.cwd),
        "umask": process.umask,
        "nice": process.nice,
        "uids": [identity.uid, identity.euid, identity.suid],
        "gids": [identity.gid, identity.egid, identity.sgid],
        "groups": sorted(identity.groups),
        "limits": [_limit_values(process.limits, number) for number in range(COUNT)],
        "actions": {str(number): [*action] for number, action in process.actions.items()},
        "mask": process.mask,
        "pending": [
            [info.signo, info.code, info.pid, info.uid, info.status] for info in process.pending
        ],
        "files": [_file_values(file, places) for file in process.files],
        "descriptors": [[fd, file, int(closes)] for fd, file, closes in process.descriptors],
        "ended_child": process.ended_child,
    }


def _limit_values(limits: ResourceLimits, number: int) -> list[int]:
    limit = limits.get(number)
    return [limit.soft, limit.hard]


def _file_values(file: CapturedFile, places: Places) -> dict[str, Any]:
    match file:
        case CapturedInode():
            return {
                "is": file.kind,
                "inode": places.save(file.ino),
                "flags": file.flags,
                "position": file.position,
                "number": file.number,
            }
        case CapturedStream():
            return {
                "is": "input" if file.is_input else "output",
                "host_fd": file.host_fd,
                "flags": file.flags,
                "waiting": encoded(file.waiting),
            }
        case CapturedText():
            return {"is": "text", "left": encoded(file.left)}
        case CapturedPipeEnd():
            waiting = encoded(file.waiting)
            return {"is": "pipe", "pipe": file.pipe, "flags": file.flags, "waiting": waiting}


# From JSON.


def process_from(fields: Fields, places: Places, limits: Limits) -> CapturedProcess:
    """The process that was saved. Raises `StateRejected`."""
    most_files = limits.max_open_files
    pid = fields.integer("pid", 2, PID_MAX)
    child = None
    if "ended_child" in fields:
        child = fields.integer("ended_child", 2, PID_MAX)
        if child == pid:
            raise StateRejected("damaged: a process that is its own child")
    files = tuple(_file(file, places, most_files) for file in fields.objects("files", most_files))
    _check_ends(files)
    descriptors = _descriptors(fields, len(files), most_files)
    return CapturedProcess(
        pid=pid,
        argv=_words(fields, "argv"),
        environ=_words(fields, "environ"),
        executable=fields.data("executable", PATH_MAX),
        name=fields.data("name", _NAME_BYTES),
        cwd=places.find(fields.value("cwd"), "directory"),
        umask=fields.integer("umask", 0, 0o777),
        nice=fields.integer("nice", -20, 19),
        identity=_identity(fields),
        limits=_limits(fields, limits),
        actions=_actions(fields),
        mask=fields.integer("mask", 0, _LONG),
        pending=_pending(fields),
        files=files,
        descriptors=descriptors,
        ended_child=child,
    )


def _words(fields: Fields, name: str) -> tuple[bytes, ...]:
    words = tuple(
        checked_bytes(word, ARGUMENT_BYTES_MAX, name) for word in fields.items(name, _STRINGS_MAX)
    )
    if sum(map(len, words)) > ARGUMENT_BYTES_MAX or any(b"\0" in word for word in words):
        raise StateRejected(f"damaged: {name} is wrong")
    return words


def _identity(fields: Fields) -> Identity:
    ids = [(0, _WORD - 1)] * 3
    uids = checked_integers([*fields.items("uids", 3)], ids, "uids")
    gids = checked_integers([*fields.items("gids", 3)], ids, "gids")
    groups = [
        checked_integer(group, 0, _WORD - 1, "groups")
        for group in fields.items("groups", GROUPS_MAX)
    ]
    return Identity(uids[0], uids[1], uids[2], gids[0], gids[1], gids[2], frozenset(groups))


def _limits(fields: Fields, limits: Limits) -> ResourceLimits:
    """The saved limits, or the sandbox's if these are lower."""
    made = ResourceLimits.of_sandbox(limits)
    saved = fields.items("limits", COUNT)
    if len(saved) != COUNT:
        raise StateRejected("damaged: limits is wrong")
    for number, pair in enumerate(saved):
        soft, hard = checked_integers(pair, [(0, INFINITY)] * 2, "limits")
        most = made.get(number).hard
        made.set(number, Limit(min(soft, hard, most), min(hard, most)), privileged=False)
    return made


def _actions(fields: Fields) -> Mapping[int, SignalAction]:
    actions: dict[int, SignalAction] = {}
    for key, value in fields.entries("actions", SIGNAL_MAX):
        signo = int(key) if key.isdecimal() and len(key) <= 2 else 0
        if not 1 <= signo <= SIGNAL_MAX or UNBLOCKABLE >> (signo - 1) & 1:
            raise StateRejected("damaged: an action for an impossible signal")
        bounds = [(0, _WORD), (0, _WORD), (0, _LONG)]
        actions[signo] = SignalAction(*checked_integers(value, bounds, "actions"))
    return actions


def _pending(fields: Fields) -> tuple[SignalInfo, ...]:
    number = (-(1 << 31), (1 << 32) - 1)
    bounds = [(1, SIGNAL_MAX), number, (0, PID_MAX), (0, _WORD), number]
    return tuple(
        SignalInfo(*checked_integers(value, bounds, "pending"))
        for value in fields.items("pending", SIGNAL_MAX)
    )


def _descriptors(fields: Fields, files: int, most: int) -> tuple[tuple[int, int, bool], ...]:
    bounds = [(0, most - 1), (0, files - 1), (0, 1)]
    found = [
        checked_integers(value, bounds, "descriptors")
        for value in fields.items("descriptors", most)
    ]
    if len({fd for fd, _, _ in found}) != len(found):
        raise StateRejected("damaged: a descriptor is open twice")
    return tuple((fd, file, bool(closes)) for fd, file, closes in found)


def _file(fields: Fields, places: Places, most_files: int) -> CapturedFile:
    kind = fields.text("is", 16)
    if kind == "text":
        return CapturedText(fields.data("left", TEXT_MAX))
    flags = fields.integer("flags", 0, _WORD)
    access = flags & O_ACCMODE
    if flags & ~_FLAGS or access == O_ACCMODE:
        raise StateRejected("damaged: impossible flags of a file")
    if kind in _KINDS:
        is_path = bool(flags & O_PATH)
        if is_path != (kind == "path") or (kind == "directory" and access != O_RDONLY):
            raise StateRejected("damaged: impossible flags of a file")
        ino = places.find(fields.value("inode"), kind)
        position = fields.integer("position", 0, FILE_SIZE_MAX)
        return CapturedInode(kind, ino, flags, position, fields.integer("number", 0, _WORD))
    waiting = fields.data("waiting", PIPE_CAPACITY)
    if kind in ("input", "output"):
        is_input = kind == "input"
        if access != (O_RDONLY if is_input else O_WRONLY) or (waiting and not is_input):
            raise StateRejected("damaged: an impossible stream")
        host_fd = fields.integer("host_fd", 0, most_files - 1)
        return CapturedStream(host_fd, is_input, waiting, flags)
    if kind != "pipe":
        raise StateRejected("damaged: an unknown kind of file")
    if access not in (O_RDONLY, O_WRONLY) or (waiting and access != O_RDONLY):
        raise StateRejected("damaged: an impossible pipe")
    return CapturedPipeEnd(fields.integer("pipe", 0, most_files), flags, waiting)


def _check_ends(files: tuple[CapturedFile, ...]) -> None:
    """Each end of a pipe, and each input of the host, exists once."""
    ends = [
        (file.pipe, file.flags & O_ACCMODE) for file in files if isinstance(file, CapturedPipeEnd)
    ]
    inputs = [file.host_fd for file in files if isinstance(file, CapturedStream) and file.is_input]
    if len(set(ends)) != len(ends) or len(set(inputs)) != len(inputs):
        raise StateRejected("damaged: a stream exists twice")
