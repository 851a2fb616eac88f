"""One directory of the host, read by its handle.

Owns `HostDirectory`: listing, facts and content. Every method blocks, so none is called with the
sandbox's lock held; several threads may call them. Rules: everything is opened by `open_beneath`,
first as a handle that opens nothing (O_PATH), and as a file only when that is a regular file and
still the one that the sandbox means. So no device, FIFO or socket is ever opened. Set-id bits are
dropped. Objects on another file system than the root are left out. Failures are `KernelError`s.
"""

from __future__ import annotations

import builtins
import errno
import os
import stat as modes
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import MOUNT_FILES_MAX, MOUNT_NAMES_MAX, PATH_MAX
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.outside import Facts, Listing, Place
from wasmsand.kernel.vfs.space import Space
from wasmsand.machine.mounts.beneath import HANDLE, O_PATH, OPEN_DIRECTORY, open_beneath

_SETTLED_NS: Final = 20_000_000
"""File times advance in steps of up to 10 ms."""
_NOBODY: Final = 65534
_PIECE: Final = 1 << 20


class _OpenFile:
    __slots__ = ("busy", "fd", "is_kept", "is_writable")

    def __init__(self, fd: int, *, is_writable: bool) -> None:
        self.fd = fd
        self.is_writable = is_writable
        self.busy = 0
        """How many threads use the descriptor now."""
        self.is_kept = False


class HostDirectory:
    """A directory of the host, to be read."""

    is_writable = False

    def __init__(self, path: str, uid: int, gid: int) -> None:
        """`uid` and `gid` are those in the sandbox of files that belong to the user of this
        process. Raises `OSError` if `path` is not a directory."""
        self._root = os.open(path, HANDLE | os.O_CLOEXEC)
        self._uid, self._gid = uid, gid
        self._my_uid, self._my_gid = os.geteuid(), os.getegid()
        found = os.fstat(self._root)
        self._device = found.st_dev
        self.root = Place(None, b"", self._facts_of(found), 0.0)
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._is_closed = False
        self._walks = 0
        """How many threads use the root's handle now."""
        self._retained: set[Place] = set()
        self._nameless: set[Place] = set()
        """Open files whose last name was removed through this mount."""
        self._files: OrderedDict[Place, _OpenFile] = OrderedDict()
        """Descriptors of open files, the one used least recently first."""

    def close(self) -> None:
        """Close every descriptor as soon as it is not in use. Later calls fail with ESTALE."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            files = list(self._files.values())
            self._files.clear()
            for file in files:
                file.is_kept = False
            unused = [file.fd for file in files if not file.busy]
            if not self._walks:
                unused.append(self._root)
        for fd in unused:
            os.close(fd)

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            self.close()

    @contextmanager
    def handle(self) -> Iterator[int]:
        """The root's handle, which stays open meanwhile: a number that was closed may be reused
        for another file."""
        with self._lock:
            if self._is_closed:
                raise KernelError(Errno.ESTALE, "unmounted")
            self._walks += 1
        try:
            yield self._root
        finally:
            with self._lock:
                self._walks -= 1
                is_over = self._is_closed and not self._walks
            if is_over:
                os.close(self._root)

    # Facts.

    def _facts_of(self, found: os.stat_result, target: bytes = b"") -> Facts:
        latest = max(found.st_mtime_ns, found.st_ctime_ns)
        return Facts(
            key=(found.st_dev, found.st_ino),
            mode=found.st_mode & ~(modes.S_ISUID | modes.S_ISGID),
            nlink=found.st_nlink,
            uid=self._owner(found.st_uid, self._my_uid, self._uid),
            gid=self._owner(found.st_gid, self._my_gid, self._gid),
            size=found.st_size,
            blocks=found.st_blocks,
            atime_ns=found.st_atime_ns,
            mtime_ns=found.st_mtime_ns,
            ctime_ns=found.st_ctime_ns,
            target=target,
            is_settled=time.time_ns() - latest > _SETTLED_NS,
        )

    @staticmethod
    def _owner(number: int, mine: int, guest: int) -> int:
        if number == mine:
            return guest
        return 0 if number == 0 else _NOBODY

    def _look(self, directory: int, name: bytes) -> Facts | None:
        """The facts of a directory's entry; None if it does not exist or is not shown."""
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
            target = b""
            if modes.S_ISLNK(found.st_mode):
                target = os.readlink(name, dir_fd=directory)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.EINVAL:  # no longer a symbolic link
                return None
            raise
        if found.st_dev != self._device or len(target) >= PATH_MAX:
            return None
        return self._facts_of(found, target)

    @contextmanager
    def _opened(self, place: Place, flags: int) -> Iterator[int]:
        """A descriptor of the object in a place. ESTALE if another object is there now."""
        with self.handle() as root:
            fd = open_beneath(root, place.path(), flags)
        try:
            found = os.fstat(fd)
            if (found.st_dev, found.st_ino) != place.facts.key:
                raise KernelError(Errno.ESTALE, "replaced on the host")
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _above(self, place: Place) -> Iterator[tuple[int, bytes]]:
        """A handle of the directory of a place, and the name there."""
        assert place.parent is not None
        with self._opened(place.parent, HANDLE) as fd:
            yield fd, place.name

    # Reading.

    def list(self, place: Place, known: Facts | None, names: tuple[bytes, ...]) -> Listing:
        """See `OutsideTree`."""
        with errors(), self._opened(place, OPEN_DIRECTORY) as fd:
            facts = self._facts_of(os.fstat(fd))
            if known is not None and known.same_content(facts):
                return Listing(facts, {name: self._look(fd, name) for name in names}, False)
            entries: dict[bytes, Facts | None] = {}
            with os.scandir(fd) as found:
                for number, entry in enumerate(found):
                    if number >= MOUNT_NAMES_MAX:
                        raise KernelError(
                            Errno.ENOMEM, f"a directory with more than {MOUNT_NAMES_MAX} names"
                        )
                    name = os.fsencode(entry.name)
                    look = self._look(fd, name)
                    if look is not None:
                        entries[name] = look
            return Listing(facts, entries, True)

    def facts(self, place: Place) -> Facts:
        """See `OutsideTree`."""
        with errors():
            if place.parent is None or place in self._files:
                with (
                    self._file(place)
                    if place.parent is not None
                    else self._opened(place, HANDLE) as fd
                ):
                    return self._facts_of(os.fstat(fd))
            with self._above(place) as (directory, name):
                facts = self._look(directory, name)
            if facts is None or facts.key != place.facts.key:
                raise KernelError(Errno.ESTALE, "replaced on the host")
            return facts

    def read(self, place: Place, offset: int, size: int) -> bytes:
        """See `OutsideTree`."""
        with errors(), self._file(place) as fd:
            pieces = []
            while size:
                piece = os.pread(fd, min(size, _PIECE), offset)
                if not piece:
                    break
                pieces.append(piece)
                offset += len(piece)
                size -= len(piece)
            return b"".join(pieces)

    def whole(self, place: Place, most: int) -> FileContent:
        """See `OutsideTree`."""
        space = Space(1 << 62, 0)
        content = FileContent()
        with errors(), self._file(place) as fd:
            while piece := os.pread(fd, _PIECE, content.size):
                if content.size + len(piece) > most:
                    raise KernelError(Errno.EFBIG, f"larger than {most} bytes")
                content.write(content.size, piece, space)
        return content

    # By path, for comparing an overlay with the host.

    def at(self, names: tuple[bytes, ...]) -> Facts | None:
        """The facts of what has this path now; None if nothing has."""
        with errors(), self.handle() as root:
            try:
                above = open_beneath(root, names[:-1], HANDLE)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                if error.errno == errno.ELOOP:  # a link is there now, in place of a directory
                    return None
                raise
            try:
                return self._look(above, names[-1])
            finally:
                os.close(above)

    def names_in(self, names: tuple[bytes, ...]) -> builtins.list[bytes]:
        """The sorted names in the directory with this path."""
        with errors(), self.handle() as root:
            fd = open_beneath(root, names, OPEN_DIRECTORY)
            try:
                return sorted(map(os.fsencode, os.listdir(fd)))
            finally:
                os.close(fd)

    def content_at(self, names: tuple[bytes, ...], most: int) -> bytes:
        """Up to `most` bytes of the regular file with this path."""
        with errors(), self.handle() as root:
            handle = open_beneath(root, names, O_PATH or os.O_RDONLY)
            try:
                if not modes.S_ISREG(os.fstat(handle).st_mode):
                    raise KernelError(Errno.EACCES, "not a regular file")
                fd = os.open(_path_of(handle), os.O_RDONLY | os.O_CLOEXEC)
            finally:
                os.close(handle)
            with open(fd, "rb") as stream:
                return stream.read(most)

    # Descriptors.

    def retain(self, place: Place) -> None:
        """See `OutsideTree`."""
        with self._lock:
            self._retained.add(place)

    def release(self, place: Place) -> int | None:
        """The file is no longer open in the sandbox. Returns a descriptor for the caller to
        close, which may block."""
        with self._lock:
            self._retained.discard(place)
            self._nameless.discard(place)
            file = self._files.pop(place, None)
            if file is None:
                return None
            file.is_kept = False
            return None if file.busy else file.fd

    @contextmanager
    def _file(self, place: Place, *, to_write: bool = False) -> Iterator[int]:
        """A descriptor of the regular file in a place."""
        with self._lock:
            file = self._files.get(place)
            if file is not None:
                file.busy += 1
                self._files.move_to_end(place)
        if file is None:
            file = self._open_file(place)
        try:
            if to_write and not file.is_writable:
                raise KernelError(Errno.EACCES)
            yield file.fd
        finally:
            with self._lock:
                file.busy -= 1
                is_over = not file.is_kept and not file.busy
            if is_over:
                os.close(file.fd)

    def _open_file(self, place: Place) -> _OpenFile:
        """Open a regular file, and keep the descriptor if it is open in the sandbox."""
        with self._opened(place, O_PATH or os.O_RDONLY) as handle:
            if not modes.S_ISREG(os.fstat(handle).st_mode):
                raise KernelError(Errno.EACCES, "not a regular file")
            file = self._reopen(handle)
        file.busy = 1
        unused = []
        with self._lock:
            if place in self._retained and place not in self._files:
                file.is_kept = True
                self._files[place] = file
                for other in list(self._files):
                    if len(self._files) <= MOUNT_FILES_MAX:
                        break
                    if not self._files[other].busy and other not in self._nameless:
                        unused.append(self._files.pop(other).fd)
        for fd in unused:
            os.close(fd)
        return file

    def _reopen(self, handle: int) -> _OpenFile:
        """Open the file of a handle."""
        path = _path_of(handle)
        common = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
        if self.is_writable:
            try:
                return _OpenFile(os.open(path, os.O_RDWR | common), is_writable=True)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ETXTBSY):
                    raise
        return _OpenFile(os.open(path, os.O_RDONLY | common), is_writable=False)


def _path_of(handle: int) -> str:
    return f"/proc/self/fd/{handle}" if O_PATH else f"/dev/fd/{handle}"


@contextmanager
def errors() -> Iterator[None]:
    """Turn an `OSError` of the host into the same errno for the guest."""
    try:
        yield
    except OSError as error:
        # By name, because systems have different numbers.
        number = Errno.__members__.get(errno.errorcode.get(error.errno or 0, ""), Errno.EIO)
        if number in (Errno.EMFILE, Errno.ENFILE):
            number = Errno.ENFILE  # the host's descriptors, not the guest's
        raise KernelError(number, error.strerror or "") from None
