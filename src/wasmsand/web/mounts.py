"""Directories of the host in a sandbox of a JavaScript host: on Node only.

Owns `WebMounts`, and `NodeDirectory`, an `OutsideTree` that asks the JavaScript side. Rules: as in
`machine/mounts`. The host is asked at once, while this worker waits; each question is bounded. A
mount is read-only or an overlay: nothing here changes a file of the host. The JavaScript side opens
files step by step below the mounted directory, and follows no symbolic link.
"""

from __future__ import annotations

import builtins
import json
import time
from typing import TYPE_CHECKING, Any, Final, cast

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import IO_CHUNK, MOUNT_NAMES_MAX, PATH_MAX
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.lazy_tree import LazyTree
from wasmsand.kernel.vfs.outside import Facts, Listing, OutsideTree, Place
from wasmsand.kernel.vfs.overlay import OverlayState, OverlayTree
from wasmsand.kernel.vfs.space import Space
from wasmsand.machine.mounts.table import (
    MachineMounts,
    MountContent,
    Mounted,
    MountProblem,
    MountRequest,
)

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine
    from wasmsand.web.host import WebHost
    from wasmsand.web.machine import WebMachine

_CURRENT_SECONDS: Final = 1.0
"""How long a guest may see what a look at the host has found, if the host starts no command."""
_SETTLED_NS: Final = 20_000_000
_NOBODY: Final = 65534


class WebMounts(MachineMounts):
    """The mounts of a machine on Node."""

    def __init__(self, machine: WebMachine, host: WebHost) -> None:
        super().__init__(cast("Machine", machine))  # it uses only what both have
        self._host = host
        self._looked = time.monotonic()

    def look_again(self) -> None:
        """See `MachineMounts`."""
        self._looked = time.monotonic()

    def since(self) -> float:
        """See `OutsideTree`."""
        return max(self._looked, time.monotonic() - _CURRENT_SECONDS)

    def _make(self, request: MountRequest, content: MountContent) -> Mounted:
        if request.mode == "memory":
            return super()._make(request, content)
        if request.mode == "read-write":
            raise MountProblem("a directory can be mounted read-only or as an overlay here")
        assert request.source is not None
        kernel, identity = self._machine.kernel, self._machine.identity
        directory = NodeDirectory(self, self._host, request.source, identity.uid, identity.gid)
        outside = cast("OutsideTree", directory)  # trees that change nothing never ask for changes
        limits, now = kernel.limits, kernel.clock.realtime
        if request.mode == "overlay":
            state = content if isinstance(content, OverlayState) else None
            tree = OverlayTree(outside, limits, now, kernel.root.space, state)
            return Mounted(request, tree, None, None)
        return Mounted(request, LazyTree(outside, limits, now), None, None)


class NodeDirectory:
    """A directory of the host, to be read."""

    def __init__(self, mounts: WebMounts, host: WebHost, path: str, uid: int, gid: int) -> None:
        """Raises `MountProblem` if the directory cannot be opened."""
        self.since = mounts.since
        self._host = host
        self._uid, self._gid = uid, gid
        self._seen_at = 0.0
        answer = json.loads(host.directory_open(path))
        if "error" in answer:
            raise MountProblem(f"cannot mount {path}: {answer['error']}")
        self._handle: int = answer["handle"]
        self._mine: tuple[int, int] = answer["uid"], answer["gid"]
        self.root = Place(None, b"", self._facts(answer["facts"]), 0.0)

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._host.directory_close(self._handle)

    def _ask(self, place: Place, what: str, names: tuple[bytes, ...] = ()) -> Any:
        path = json.dumps([name.decode("latin-1") for name in place.path()])
        wanted = json.dumps([name.decode("latin-1") for name in names])
        self._seen_at = time.monotonic()
        answer = json.loads(self._host.directory_look(self._handle, what, path, wanted))
        if isinstance(answer, dict) and "error" in answer:
            raise _error(answer["error"])
        return answer

    def _facts(self, fields: builtins.list[str]) -> Facts:
        device, inode, mode, links, uid, gid, size, blocks, atime, mtime, ctime = map(
            int, fields[:11]
        )
        return Facts(
            key=(device, inode),
            mode=mode & ~0o6000,
            nlink=links,
            uid=self._owner(uid, self._mine[0], self._uid),
            gid=self._owner(gid, self._mine[1], self._gid),
            size=size,
            blocks=blocks,
            atime_ns=atime,
            mtime_ns=mtime,
            ctime_ns=ctime,
            target=fields[11].encode("latin-1"),
            is_settled=time.time_ns() - max(mtime, ctime) > _SETTLED_NS,
        )

    @staticmethod
    def _owner(number: int, mine: int, guest: int) -> int:
        if number == mine:
            return guest
        return 0 if number == 0 else _NOBODY

    def _shown(self, fields: builtins.list[str] | None) -> Facts | None:
        """The facts of an entry; None if it does not exist or is not shown."""
        if fields is None or len(fields[11]) >= PATH_MAX:
            return None
        facts = self._facts(fields)
        return facts if facts.key[0] == self.root.facts.key[0] else None

    # OutsideTree.

    def seen_at(self) -> float:
        """See `OutsideTree`."""
        return self._seen_at

    def give_way(self) -> None:
        """See `OutsideTree`: nobody else wants the lock."""

    def list(self, place: Place, known: Facts | None, names: tuple[bytes, ...]) -> Listing:
        """See `OutsideTree`."""
        facts = self.facts(place)
        if known is not None and known.same_content(facts):
            found = self._ask(place, "names", names)
            entries = {n: self._shown(f) for n, f in zip(names, found, strict=True)}
            return Listing(facts, entries, False)
        all_of_them: dict[bytes, Facts | None] = {}
        for name, fields in self._ask(place, "list"):
            if len(all_of_them) >= MOUNT_NAMES_MAX:
                raise KernelError(
                    Errno.ENOMEM, f"a directory with more than {MOUNT_NAMES_MAX} names"
                )
            shown = self._shown(fields)
            if shown is not None:
                all_of_them[name.encode("latin-1")] = shown
        return Listing(facts, all_of_them, True)

    def facts(self, place: Place) -> Facts:
        """See `OutsideTree`."""
        facts = self._shown(self._ask(place, "facts"))
        if facts is None or facts.key != place.facts.key:
            raise KernelError(Errno.ESTALE, "replaced on the host")
        return facts

    def read(self, place: Place, offset: int, size: int) -> bytes:
        """See `OutsideTree`."""
        pieces = []
        while size:
            piece = self._read(place, offset, min(size, IO_CHUNK))
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _read(self, place: Place, offset: int, size: int) -> bytes:
        path = json.dumps([name.decode("latin-1") for name in place.path()])
        inode = str(place.facts.key[1])
        self._seen_at = time.monotonic()
        answer = self._host.directory_read(self._handle, path, inode, offset, size)
        if isinstance(answer, str):
            raise _error(answer)
        return bytes(answer.to_py())

    def whole(self, place: Place, most: int) -> FileContent:
        """See `OutsideTree`."""
        space = Space(1 << 62, 0)
        content = FileContent()
        while piece := self._read(place, content.size, IO_CHUNK):
            if content.size + len(piece) > most:
                raise KernelError(Errno.EFBIG, f"larger than {most} bytes")
            content.write(content.size, piece, space)
        return content

    def retain(self, place: Place) -> None:
        """See `OutsideTree`: files are opened for each read."""

    def release(self, place: Place) -> None:
        """See `OutsideTree`."""


def _error(name: str) -> KernelError:
    return KernelError(Errno.__members__.get(name, Errno.EIO), "on the host")
