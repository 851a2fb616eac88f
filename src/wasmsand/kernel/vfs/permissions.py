"""Permission checks: Linux's rules for owners, groups, the sticky bit and set-id bits.

Owns pure functions over `Credentials` and `Attributes`. Rules: they raise EACCES if a permission
bit is missing and EPERM if only the owner may act; uid 0 has all capabilities.
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
    """Whether the caller is the owner or has CAP_FOWNER (is root)."""
    return cred.uid == 0 or cred.uid == attributes.uid


def require_removal(cred: Credentials, directory: Attributes, victim: Attributes) -> None:
    """EACCES or EPERM if the caller may not remove the name of `victim` from `directory`."""
    require(cred, directory, W_OK | X_OK)
    if directory.mode & S_ISVTX and not (owns(cred, victim) or cred.uid == directory.uid):
        raise KernelError(Errno.EPERM)


def owner_of_new(
    cred: Credentials, directory: Attributes, mode: int, umask: int, *, is_directory: bool
) -> tuple[int, int, int]:
    """(mode, uid, gid) of an object that the caller creates in `directory`: a set-group-ID
    directory passes on its group, and the bit itself to subdirectories."""
    if not directory.mode & S_ISGID:
        return mode & ~umask, cred.uid, cred.gid
    gid = directory.gid
    if is_directory:
        mode |= S_ISGID
    elif mode & S_ISGID and mode & S_IXGRP and cred.uid != 0 and not cred.in_group(gid):
        # Linux checks the mode before applying the umask.
        mode &= ~S_ISGID
    return mode & ~umask, cred.uid, gid


def without_set_id(cred: Credentials, attributes: Attributes) -> int:
    """The permission bits after the owner changed or the file was written. Without group execute
    permission, the set-group-ID bit has another meaning, and a group member may keep it."""
    mode = attributes.mode & ~S_ISUID
    if mode & S_IXGRP or not (cred.uid == 0 or cred.in_group(attributes.gid)):
        mode &= ~S_ISGID
    return mode & PERMISSION_BITS
