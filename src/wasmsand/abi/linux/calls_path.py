"""Names and metadata: stat, mkdir, unlink, rename, links, modes, owners, times.

Owns the calls that work on paths. Rules: a path is read once; the namespace makes every check.
"""

from __future__ import annotations

from typing import Final

from wasmsand.abi.file_size import require_file_size
from wasmsand.abi.linux.context import (
    AT_FDCWD_U32,
    CallContext,
    optional_id,
    signed,
    signed64,
)
from wasmsand.abi.linux.structs import TIMESPEC, nanoseconds, pack_statfs, pack_statx
from wasmsand.kernel.clock import SECOND
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.opening import referenced_file
from wasmsand.kernel.flags import (
    AT_EACCESS,
    AT_EMPTY_PATH,
    AT_REMOVEDIR,
    AT_SYMLINK_FOLLOW,
    AT_SYMLINK_NOFOLLOW,
    S_IFDIR,
    S_IFMT,
    X_OK,
)
from wasmsand.kernel.limits import FILE_SIZE_MAX, IO_CHUNK
from wasmsand.kernel.vfs import NOW, Credentials, FileTime, Node

_STATX_SYNC_TYPE: Final = 0x6000
_AT_NO_AUTOMOUNT: Final = 0x800
_NO_STATX_FLAGS: Final = ~(
    AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | _AT_NO_AUTOMOUNT | _STATX_SYNC_TYPE
)
_UTIME_NOW: Final = 0x3FFFFFFF
_UTIME_OMIT: Final = 0x3FFFFFFE


def _credentials(context: CallContext) -> Credentials:
    return context.process.identity.credentials()


def _base(context: CallContext, directory: int, path: bytes) -> Node:
    return context.process.cwd if path.startswith(b"/") else context.directory(directory)


def _node(context: CallContext, directory: int, path: bytes, *, follow: bool) -> Node:
    return context.kernel.namespace.resolve(
        _credentials(context), _base(context, directory, path), path, follow=follow
    )


def _node_or_self(context: CallContext, directory: int, address: int, flags: int) -> Node:
    """Resolve a path; for an empty path with AT_EMPTY_PATH, use the fd's own node."""
    if flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW):
        raise KernelError(Errno.EINVAL)
    path = context.memory.read_path(address) if address else b""
    if not path and flags & AT_EMPTY_PATH:
        return context.directory(directory)
    return _node(context, directory, path, follow=not flags & AT_SYMLINK_NOFOLLOW)


def statx(
    context: CallContext, directory: int, address: int, flags: int, mask: int, result: int
) -> int:
    """statx(2)."""
    if flags & _NO_STATX_FLAGS:
        raise KernelError(Errno.EINVAL)
    memory = context.memory
    path = memory.read_path(address)
    follow = not flags & AT_SYMLINK_NOFOLLOW
    process = context.process
    if path or not flags & AT_EMPTY_PATH:
        base = process.cwd if directory == AT_FDCWD_U32 else _base(context, directory, path)
        cred = process.identity.credentials()
        fs, ino = context.kernel.namespace.locate(cred, base, path, follow)
    elif directory == AT_FDCWD_U32:
        fs, ino = process.cwd.fs, process.cwd.ino
    else:
        memory.write(result, pack_statx(process.fds.get(directory).stat()))
        return 0
    # An object outside any file system is reached through a link in /proc.
    reference = fs.fd_reference(ino) if fs.has_descriptors and follow else None
    if reference is None:
        stat = fs.stat(ino)
    else:
        stat = referenced_file(context.kernel, *reference).stat()
    memory.write(result, pack_statx(stat))
    return 0


def faccessat(context: CallContext, directory: int, address: int, mode: int) -> int:
    """faccessat(2): checks with the real ids."""
    return faccessat2(context, directory, address, mode, 0)


def faccessat2(context: CallContext, directory: int, address: int, mode: int, flags: int) -> int:
    """faccessat2(2)."""
    if mode & ~7 or flags & ~(AT_EACCESS | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW):
        raise KernelError(Errno.EINVAL)
    identity = context.process.identity
    who = identity.credentials() if flags & AT_EACCESS else identity.real_credentials()
    path = context.memory.read_path(address)
    namespace = context.kernel.namespace
    if not path and flags & AT_EMPTY_PATH:
        node = context.directory(directory)
    else:
        node = namespace.resolve(
            who, _base(context, directory, path), path, follow=not flags & AT_SYMLINK_NOFOLLOW
        )
    namespace.access(who, node, mode)
    return 0


def mkdirat(context: CallContext, directory: int, address: int, mode: int) -> int:
    """mkdirat(2)."""
    path = context.memory.read_path(address)
    context.kernel.namespace.mkdir(
        _credentials(context),
        _base(context, directory, path),
        path,
        mode & 0o7777,
        context.process.umask,
    )
    return 0


def mknodat(context: CallContext, directory: int, address: int, mode: int, device: int) -> int:
    """mknodat(2)."""
    path = context.memory.read_path(address)
    context.kernel.namespace.mknod(
        _credentials(context),
        _base(context, directory, path),
        path,
        mode,
        device,
        context.process.umask,
    )
    return 0


def unlinkat(context: CallContext, directory: int, address: int, flags: int) -> int:
    """unlinkat(2)."""
    if flags & ~AT_REMOVEDIR:
        raise KernelError(Errno.EINVAL)
    path = context.memory.read_path(address)
    namespace = context.kernel.namespace
    remove = namespace.rmdir if flags & AT_REMOVEDIR else namespace.unlink
    remove(_credentials(context), _base(context, directory, path), path)
    return 0


def symlinkat(context: CallContext, target: int, directory: int, address: int) -> int:
    """symlinkat(2)."""
    text = context.memory.read_path(target)
    path = context.memory.read_path(address)
    context.kernel.namespace.symlink(
        _credentials(context), text, _base(context, directory, path), path
    )
    return 0


def linkat(
    context: CallContext,
    old_directory: int,
    old_address: int,
    new_directory: int,
    new_address: int,
    flags: int,
) -> int:
    """linkat(2)."""
    if flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH):
        raise KernelError(Errno.EINVAL)
    old = context.memory.read_path(old_address)
    new = context.memory.read_path(new_address)
    if not old and flags & AT_EMPTY_PATH:
        node = context.directory(old_directory)
    else:
        node = _node(context, old_directory, old, follow=bool(flags & AT_SYMLINK_FOLLOW))
    context.kernel.namespace.link(
        _credentials(context), node, _base(context, new_directory, new), new
    )
    return 0


def renameat2(
    context: CallContext,
    old_directory: int,
    old_address: int,
    new_directory: int,
    new_address: int,
    flags: int,
) -> int:
    """renameat2(2)."""
    old = context.memory.read_path(old_address)
    new = context.memory.read_path(new_address)
    context.kernel.namespace.rename(
        _credentials(context),
        _base(context, old_directory, old),
        old,
        _base(context, new_directory, new),
        new,
        flags,
    )
    return 0


def readlinkat(context: CallContext, directory: int, address: int, result: int, size: int) -> int:
    """readlinkat(2)."""
    if signed(size) <= 0:
        raise KernelError(Errno.EINVAL)
    path = context.memory.read_path(address)
    node = _node(context, directory, path, follow=False) if path else context.directory(directory)
    text = context.kernel.namespace.readlink(node)[: min(size, IO_CHUNK)]
    context.memory.write(result, text)
    return len(text)


def fchmod(context: CallContext, fd: int, mode: int) -> int:
    """fchmod(2)."""
    node = context.file(fd).node
    if node is None:
        raise KernelError(Errno.EINVAL)
    context.kernel.namespace.chmod(_credentials(context), node, mode & 0o7777)
    return 0


def fchmodat(context: CallContext, directory: int, address: int, mode: int) -> int:
    """fchmodat(2)."""
    return fchmodat2(context, directory, address, mode, 0)


def fchmodat2(context: CallContext, directory: int, address: int, mode: int, flags: int) -> int:
    """fchmodat2(2)."""
    node = _node_or_self(context, directory, address, flags)
    namespace = context.kernel.namespace
    if namespace.stat(node).mode & S_IFMT == 0o120000:
        raise KernelError(Errno.EOPNOTSUPP)
    namespace.chmod(_credentials(context), node, mode & 0o7777)
    return 0


def fchown(context: CallContext, fd: int, uid: int, gid: int) -> int:
    """fchown(2)."""
    node = context.file(fd).node
    if node is None:
        raise KernelError(Errno.EINVAL)
    context.kernel.namespace.chown(_credentials(context), node, optional_id(uid), optional_id(gid))
    return 0


def fchownat(
    context: CallContext, directory: int, address: int, uid: int, gid: int, flags: int
) -> int:
    """fchownat(2)."""
    node = _node_or_self(context, directory, address, flags)
    context.kernel.namespace.chown(_credentials(context), node, optional_id(uid), optional_id(gid))
    return 0


def utimensat(context: CallContext, directory: int, address: int, times: int, flags: int) -> int:
    """utimensat_time64(2). A NULL path means the fd itself (futimens)."""
    node = (
        _node_or_self(context, directory, address, flags)
        if address
        else context.file(directory).node
    )
    if node is None:
        raise KernelError(Errno.EINVAL)
    namespace, who = context.kernel.namespace, _credentials(context)
    access: FileTime | None = NOW
    modified: FileTime | None = NOW
    if times:
        access = _time_argument(context, times)
        modified = _time_argument(context, times + 16)
    namespace.utimens(who, node, access, modified)
    return 0


def _time_argument(context: CallContext, address: int) -> FileTime | None:
    seconds, rest = context.memory.unpack(TIMESPEC, address)
    rest &= 0xFFFF_FFFF  # the upper half pads a 32-bit long
    if rest == _UTIME_OMIT:
        return None
    if rest == _UTIME_NOW:
        return NOW
    if rest >= SECOND:
        raise KernelError(Errno.EINVAL)
    return nanoseconds(seconds, rest)


def truncate(context: CallContext, address: int, low: int, high: int) -> int:
    """truncate64(2)."""
    length = signed64(low, high)
    if length < 0:
        raise KernelError(Errno.EINVAL)
    if length > FILE_SIZE_MAX:
        raise KernelError(Errno.EFBIG)
    path = context.memory.read_path(address)
    node = _node(context, AT_FDCWD_U32, path, follow=True)
    require_file_size(context, node, length)
    context.kernel.namespace.truncate(_credentials(context), node, length)
    return 0


def statfs(context: CallContext, address: int, size: int, result: int) -> int:
    """statfs64(2)."""
    path = context.memory.read_path(address)
    node = _node(context, AT_FDCWD_U32, path, follow=True)
    context.memory.write(result, pack_statfs(context.kernel.namespace.statfs(node)))
    return 0


def fstatfs(context: CallContext, fd: int, size: int, result: int) -> int:
    """fstatfs64(2)."""
    node = context.file_or_path(fd).node or context.kernel.namespace.root
    context.memory.write(result, pack_statfs(context.kernel.namespace.statfs(node)))
    return 0


def getcwd(context: CallContext, address: int, size: int) -> int:
    """getcwd(2). Returns the length including the NUL."""
    path = context.kernel.namespace.path_of(context.process.cwd) + b"\0"
    if len(path) > size:
        raise KernelError(Errno.ERANGE)
    context.memory.write(address, path)
    return len(path)


def chdir(context: CallContext, address: int) -> int:
    """chdir(2)."""
    path = context.memory.read_path(address)
    _change_directory(context, _node(context, AT_FDCWD_U32, path, follow=True))
    return 0


def fchdir(context: CallContext, fd: int) -> int:
    """fchdir(2)."""
    node = context.file_or_path(fd).node
    if node is None:
        raise KernelError(Errno.ENOTDIR)
    _change_directory(context, node)
    return 0


def _change_directory(context: CallContext, node: Node) -> None:
    namespace, process = context.kernel.namespace, context.process
    if namespace.stat(node).mode & S_IFMT != S_IFDIR:
        raise KernelError(Errno.ENOTDIR)
    namespace.access(_credentials(context), node, X_OK)
    namespace.retain(node)
    namespace.release(process.cwd)
    process.cwd = node


def umask(context: CallContext, mask: int) -> int:
    """umask(2)."""
    old = context.process.umask
    context.process.umask = mask & 0o777
    return old


def chroot(context: CallContext, address: int) -> int:
    """chroot(2): always refused, also for root."""
    context.memory.read_path(address)
    raise KernelError(Errno.EPERM)
