"""Who may do what: Linux's rules for owners, groups, the sticky bit and set-id bits.

Owns pure functions over `Credentials` and `Attributes`. Rules: they raise EACCES when a
permission bit is missing and EPERM when only an owner may; uid 0 stands for all
capabilities.
"""

from __future__ import annotations

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import (
    PERMISSION_BITS,
    R_OK,
    S_IFDIR,
    S_IFMT,
    S_ISGID,
    S_ISUID,
    S_ISVTX,
    S_IXGRP,
    W_OK,
    X_OK,
)
from wasmsand.kernel.vfs.filesystem import Attributes
from wasmsand.kernel.vfs.model import Credentials


def allowed(cred: Credentials, attributes: Attributes, mask: int) -> bool:
    """Whether all of `mask` (R_OK, W_OK, X_OK) is granted."""
    mode = attributes.mode
    if cred.uid == 0:
        return not mask & X_OK or bool(mode & 0o111) or mode & S_IFMT == S_IFDIR
    if cred.uid == attributes.uid:
        mode >>= 6
    elif cred.in_group(attributes.gid):
        mode >>= 3
    return mode & mask & (R_OK | W_OK | X_OK) == mask


def require(cred: Credentials, attributes: Attributes, mask: int) -> None:
    """EACCES unless all of `mask` is granted."""
    if not allowed(cred, attributes, mask):
        raise KernelError(Errno.EACCES)


def owns(cred: Credentials, attributes: Attributes) -> bool:
    """Whether the caller counts as the owner (CAP_FOWNER)."""
    return cred.uid == 0 or cred.uid == attributes.uid


def require_removal(cred: Credentials, directory: Attributes, victim: Attributes) -> None:
    """Whether `victim` may lose its name in `directory`."""
    require(cred, directory, W_OK | X_OK)
    if directory.mode & S_ISVTX and not (owns(cred, victim) or cred.uid == directory.uid):
        raise KernelError(Errno.EPERM)


def owner_of_new(
    cred: Credentials, directory: Attributes, mode: int, umask: int, *, is_directory: bool
) -> tuple[int, int, int]:
    """(mode, uid, gid) of what the caller creates in `directory`: a set-group-id
    directory hands down its group, and itself to directories."""
    if not directory.mode & S_ISGID:
        return mode & ~umask, cred.uid, cred.gid
    gid = directory.gid
    if is_directory:
        mode |= S_ISGID
    elif mode & S_ISGID and mode & S_IXGRP and cred.uid != 0 and not cred.in_group(gid):
        # Linux looks at the mode before the umask.
        mode &= ~S_ISGID
    return mode & ~umask, cred.uid, gid


def without_set_id(cred: Credentials, attributes: Attributes) -> int:
    """Permission bits after the content changed hands or was written. Without group
    execution the set-group-id bit means something else, and a member may keep it."""
    mode = attributes.mode & ~S_ISUID
    if mode & S_IXGRP or not (cred.uid == 0 or cred.in_group(attributes.gid)):
        mode &= ~S_ISGID
    return mode & PERMISSION_BITS
