"""Paths: opening, metadata, creating, renaming and removing names.

Owns the path_* functions. Rules: a path is relative to a directory and cannot lead out of it
(`vfs.Beneath`); the namespace makes every other check.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.wasi import rights as right_sets
from wasmsand.abi.wasi.calls_fd import (
    FLAG_DSYNC,
    FLAG_RSYNC,
    FLAG_SYNC,
    SYNC_FLAGS,
    open_flags,
    set_times,
)
from wasmsand.abi.wasi.context import WasiContext
from wasmsand.abi.wasi.errno import NotCapable
from wasmsand.abi.wasi.rights import READING, WRITING, Right
from wasmsand.abi.wasi.structs import pack_filestat, pack_filestat_unstable
from wasmsand.kernel.errno import Errno, KernelError, PathEscapes
from wasmsand.kernel.files.opening import open_path, referenced_file
from wasmsand.kernel.flags import (
    O_CREAT,
    O_DIRECTORY,
    O_EXCL,
    O_NOCTTY,
    O_NOFOLLOW,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
)
from wasmsand.kernel.limits import IO_CHUNK
from wasmsand.kernel.vfs import Node, Stat

_LOOKUP_FOLLOW: Final = 1
_OPEN_CREATE, _OPEN_DIRECTORY, _OPEN_EXCLUSIVE, _OPEN_TRUNCATE = 1, 2, 4, 8
_OPEN_FLAGS: Final = (
    (_OPEN_CREATE, O_CREAT, Right.PATH_CREATE_FILE),
    (_OPEN_DIRECTORY, O_DIRECTORY, 0),
    (_OPEN_EXCLUSIVE, O_EXCL, 0),
    (_OPEN_TRUNCATE, O_TRUNC, Right.PATH_FILESTAT_SET_SIZE),
)
"""The flag, the kernel's flag, and the directory right that it needs."""
_FILE_MODE: Final = 0o666
_DIRECTORY_MODE: Final = 0o777


def _follow(flags: int) -> bool:
    if flags & ~_LOOKUP_FOLLOW:
        raise KernelError(Errno.EINVAL)
    return bool(flags & _LOOKUP_FOLLOW)


def path_open(
    context: WasiContext,
    fd: int,
    lookup_flags: int,
    path: int,
    size: int,
    flags: int,
    base: int,
    inheriting: int,
    fd_flags: int,
    result: int,
) -> int:
    """Open a file or directory; create it if requested."""
    context.memory.require(result, 4)
    directory = context.descriptors.get(fd)
    follow = _follow(lookup_flags)
    if flags & ~(_OPEN_CREATE | _OPEN_DIRECTORY | _OPEN_EXCLUSIVE | _OPEN_TRUNCATE):
        raise KernelError(Errno.EINVAL)
    wanted, needed = open_flags(fd_flags) | O_NOCTTY, Right.PATH_OPEN
    for bit, kernel_flag, right in _OPEN_FLAGS:
        if flags & bit:
            wanted |= kernel_flag
            needed |= right
    directory.require(needed, Errno.ENOTDIR)
    # Programs that want all rights also request bits that do not exist.
    base &= right_sets.ALL
    inheriting &= right_sets.ALL
    if (base | inheriting | _rights_of_flags(fd_flags)) & ~directory.inheriting:
        raise NotCapable
    wanted |= _access(base) | (0 if follow else O_NOFOLLOW)
    name = context.path(path, size)
    start = directory.start
    assert start is not None
    context.process.fds.require_room()  # before a file is created or truncated
    file = open_path(context.kernel, context.thread, start, name, wanted, _FILE_MODE)
    number = context.descriptors.install(file, base, inheriting)
    context.descriptors.get(number).sync_flags = fd_flags & SYNC_FLAGS
    context.memory.write_u32(result, number)
    return 0


def _rights_of_flags(fd_flags: int) -> int:
    needed = Right.FD_DATASYNC if fd_flags & FLAG_DSYNC else 0
    return needed | (Right.FD_SYNC if fd_flags & (FLAG_RSYNC | FLAG_SYNC) else 0)


def _access(base: int) -> int:
    if not base & WRITING:
        return O_RDONLY
    return O_RDWR if base & READING else O_WRONLY


def _node(context: WasiContext, start: Node, path: bytes, *, follow: bool) -> Node:
    return context.kernel.namespace.resolve(context.credentials(), start, path, follow=follow)


def path_filestat_get(
    context: WasiContext, fd: int, lookup_flags: int, path: int, size: int, result: int
) -> int:
    """Metadata of the object at a path."""
    context.memory.write(result, pack_filestat(_stat(context, fd, lookup_flags, path, size)))
    return 0


def path_filestat_get_unstable(
    context: WasiContext, fd: int, lookup_flags: int, path: int, size: int, result: int
) -> int:
    """Metadata of the object at a path, in the layout of wasi_unstable."""
    stat = _stat(context, fd, lookup_flags, path, size)
    context.memory.write(result, pack_filestat_unstable(stat))
    return 0


def _stat(context: WasiContext, fd: int, lookup_flags: int, path: int, size: int) -> Stat:
    start = context.directory(fd, Right.PATH_FILESTAT_GET)
    follow = _follow(lookup_flags)
    namespace = context.kernel.namespace
    node = _node(context, start, context.path(path, size), follow=follow)
    reference = namespace.fd_reference(node)
    if reference is not None and follow:
        return referenced_file(context.kernel, *reference).stat()
    return namespace.stat(node)


def path_filestat_set_times(
    context: WasiContext,
    fd: int,
    lookup_flags: int,
    path: int,
    size: int,
    access: int,
    modified: int,
    flags: int,
) -> int:
    """Set the times of the object at a path."""
    start = context.directory(fd, Right.PATH_FILESTAT_SET_TIMES)
    follow = _follow(lookup_flags)
    node = _node(context, start, context.path(path, size), follow=follow)
    set_times(context, node, access, modified, flags)
    return 0


def path_create_directory(context: WasiContext, fd: int, path: int, size: int) -> int:
    """Create a directory."""
    start = context.directory(fd, Right.PATH_CREATE_DIRECTORY)
    name = context.path(path, size)
    context.kernel.namespace.mkdir(
        context.credentials(), start, name, _DIRECTORY_MODE, context.process.umask
    )
    return 0


def path_link(
    context: WasiContext,
    old_fd: int,
    lookup_flags: int,
    old_path: int,
    old_size: int,
    new_fd: int,
    new_path: int,
    new_size: int,
) -> int:
    """Create a hard link."""
    old_start = context.directory(old_fd, Right.PATH_LINK_SOURCE)
    new_start = context.directory(new_fd, Right.PATH_LINK_TARGET)
    follow = _follow(lookup_flags)
    old, new = context.path(old_path, old_size), context.path(new_path, new_size)
    node = _node(context, old_start, old, follow=follow)
    context.kernel.namespace.link(context.credentials(), node, new_start, new)
    return 0


def path_symlink(
    context: WasiContext, target: int, target_size: int, fd: int, path: int, size: int
) -> int:
    """Create a symbolic link. A relative target is not checked until it is followed. An absolute
    target is refused where a directory confines, because it could never be followed there."""
    start = context.directory(fd, Right.PATH_SYMLINK)
    text, name = context.path_text(target, target_size), context.path(path, size)
    if text.startswith(b"/") and start.confines:
        raise PathEscapes
    context.kernel.namespace.symlink(context.credentials(), text, start, name)
    return 0


def path_readlink(
    context: WasiContext, fd: int, path: int, size: int, buffer: int, room: int, result: int
) -> int:
    """The target of a symbolic link, as much as fits."""
    context.memory.require(result, 4)
    start = context.directory(fd, Right.PATH_READLINK)
    node = _node(context, start, context.path(path, size), follow=False)
    text = context.kernel.namespace.readlink(node)[: min(room, IO_CHUNK)]
    context.memory.write(buffer, text)
    context.memory.write_u32(result, len(text))
    return 0


def path_rename(
    context: WasiContext,
    old_fd: int,
    old_path: int,
    old_size: int,
    new_fd: int,
    new_path: int,
    new_size: int,
) -> int:
    """Rename or move, replacing the target."""
    old_start = context.directory(old_fd, Right.PATH_RENAME_SOURCE)
    new_start = context.directory(new_fd, Right.PATH_RENAME_TARGET)
    old, new = context.path(old_path, old_size), context.path(new_path, new_size)
    context.kernel.namespace.rename(context.credentials(), old_start, old, new_start, new)
    return 0


def path_remove_directory(context: WasiContext, fd: int, path: int, size: int) -> int:
    """Remove an empty directory."""
    start = context.directory(fd, Right.PATH_REMOVE_DIRECTORY)
    context.kernel.namespace.rmdir(context.credentials(), start, context.path(path, size))
    return 0


def path_unlink_file(context: WasiContext, fd: int, path: int, size: int) -> int:
    """Remove a name that does not refer to a directory."""
    start = context.directory(fd, Right.PATH_UNLINK_FILE)
    context.kernel.namespace.unlink(context.credentials(), start, context.path(path, size))
    return 0
