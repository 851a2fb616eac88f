"""TreeStore: the inodes of a tree, their attributes, bytes, lifetime and charges.

Owns what a tree holds, except names, which are in `tree`. Rules: an inode is changed only in the
top layer. Space is taken before it is used. An inode is freed when it has neither a name nor a
user; freeing gives back exactly what was taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Unpack

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import PERMISSION_BITS, S_IFMT
from wasmsand.kernel.limits import FILE_SIZE_MAX, FREED_PER_CALL, NAME_MAX, Limits
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.filesystem import AttributeChanges, Data, FileSystem
from wasmsand.kernel.vfs.inode import (
    REMOVED,
    DirectoryInode,
    FileInode,
    Inode,
    SpecialInode,
    SymlinkInode,
)
from wasmsand.kernel.vfs.layers import ROOT_INO, FrozenTree, InodeTable
from wasmsand.kernel.vfs.model import (
    BLOCK_SIZE,
    NOW,
    TRANSFER_SIZE,
    Stat,
    StatFs,
    new_record,
)
from wasmsand.kernel.vfs.space import Space, blocks_of

TREE_MAGIC: Final = 0x01021994
"""f_type of tmpfs, the closest Linux file system."""
_SECTORS: Final = BLOCK_SIZE // 512
"""Units of st_blocks per block."""
INLINE_TARGET_MAX: Final = 60
"""A symbolic link's target up to this length needs no block (as on ext4)."""


class TreeStore(FileSystem):
    """Inodes over a frozen tree."""

    type_name = "tmpfs"

    def __init__(
        self,
        base: FrozenTree,
        limits: Limits | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.root_ino = ROOT_INO
        self.limits = limits or Limits()
        self._now = now_ns
        self._table = InodeTable(base)
        self._get = self._table.get
        self.space = Space(
            self.limits.fs_limit_bytes,
            self.limits.max_inodes,
            base.used_blocks,
            base.used_inodes,
        )
        self._users: dict[int, int] = {}
        self._orphans: set[int] = set()
        self._unreleased: list[int] = []
        """Removed directories that still have one user to release."""
        kept = self._with_parents(base)
        for ino in base.orphans - kept:
            self._free(ino, self._get(ino))
        self._orphans |= kept
        for ino in kept:
            inode = self._get(ino)
            if isinstance(inode, DirectoryInode):
                self.retain(inode.parent)  # as `_drop_directory` does

    def _with_parents(self, base: FrozenTree) -> set[int]:
        """The inodes without a name that are kept: those that are held, and the removed directories
        above them."""
        kept = set(base.orphans & base.held)
        waiting = list(kept)
        while waiting:
            inode = self._get(waiting.pop())
            if not isinstance(inode, DirectoryInode):
                continue
            if inode.parent in base.orphans and inode.parent not in kept:
                kept.add(inode.parent)
                waiting.append(inode.parent)
        return kept

    def freeze(self) -> FrozenTree:
        """The current tree, frozen. Both continue independently."""
        return FrozenTree(
            self._table.freeze(),
            self._table.next_ino,
            self._table.image_end,
            self.space.used_blocks,
            self.space.used_inodes,
            frozenset(self._orphans),
            shared=self._table.shared,
        )

    def stand_on(self, merged: FrozenTree, instead_of: FrozenTree) -> None:
        """From now on use the layers of `merged`, which is `instead_of.merged()`."""
        self._table.stand_on(merged.layers, instead_of.layers)

    def statfs(self) -> StatFs:
        space = self.space
        return StatFs(
            type=TREE_MAGIC,
            block_size=BLOCK_SIZE,
            blocks=space.limit_blocks,
            blocks_free=space.free_blocks(),
            files=space.max_inodes,
            files_free=max(0, space.max_inodes - space.used_inodes),
            name_max=NAME_MAX,
            flags=0,
        )

    # Attributes.

    def attributes(self, ino: int) -> Inode:
        return self._get(ino)

    def stat(self, ino: int) -> Stat:
        inode = self._table.top.get(ino)
        if inode is None or inode is REMOVED:
            inode = self._get(ino)
        rdev = 0
        block_size = BLOCK_SIZE
        if type(inode) is FileInode:
            block_size = TRANSFER_SIZE
            content = inode.content
            size = content.size
            blocks = content.stat_blocks() if content.image_end else content.blocks * _SECTORS
        elif isinstance(inode, DirectoryInode):
            size, blocks = BLOCK_SIZE, _SECTORS
        elif type(inode) is SymlinkInode:
            size = len(inode.target)
            blocks = target_blocks(inode.target) * _SECTORS
        else:
            assert type(inode) is SpecialInode
            size, blocks, rdev = 0, 0, inode.rdev
        return new_record(
            Stat,
            (
                self.dev,
                ino,
                inode.mode,
                inode.nlink,
                inode.uid,
                inode.gid,
                rdev,
                size,
                block_size,
                blocks,
                inode.atime,
                inode.mtime,
                inode.ctime,
                inode.btime,
            ),
        )

    def readlink(self, ino: int) -> bytes:
        inode = self._get(ino)
        if type(inode) is not SymlinkInode:
            raise KernelError(Errno.EINVAL)
        self._accessed(ino, inode)
        return inode.target

    def set_attributes(self, ino: int, **changes: Unpack[AttributeChanges]) -> None:
        inode = self._table.own(ino)
        if (mode := changes.get("mode")) is not None:
            inode.mode = inode.mode & S_IFMT | mode & PERMISSION_BITS
        if (uid := changes.get("uid")) is not None:
            inode.uid = uid
        if (gid := changes.get("gid")) is not None:
            inode.gid = gid
        inode.ctime = now = self._now()
        if (atime := changes.get("atime")) is not None:
            inode.atime = now if atime is NOW else atime
        if (mtime := changes.get("mtime")) is not None:
            inode.mtime = now if mtime is NOW else mtime

    def _accessed(self, ino: int, inode: Inode) -> None:
        """relatime: record the first access since the last change. Reading does not copy an
        unchanged inode of the image."""
        if (inode.atime <= inode.mtime or inode.atime <= inode.ctime) and (
            self._table.is_charged(ino) or ino in self._table.top
        ):
            self._table.own(ino).atime = self._now()

    # The bytes of files.

    def read(self, ino: int, offset: int, size: int) -> bytes:
        inode = self._table.top.get(ino)
        if type(inode) is not FileInode:
            inode = self._file(ino)
        if inode.atime <= inode.mtime or inode.atime <= inode.ctime:
            self._accessed(ino, inode)
        return inode.content.read(offset, size)

    def size(self, ino: int) -> int:
        inode = self._get(ino)
        return inode.content.size if type(inode) is FileInode else self.stat(ino).size

    def write(self, ino: int, offset: int, data: Data) -> int:
        if offset + len(data) > FILE_SIZE_MAX:
            if offset >= FILE_SIZE_MAX:
                raise KernelError(Errno.EFBIG)
            data = data[: FILE_SIZE_MAX - offset]
        if not data:
            return 0
        inode = self._table.top.get(ino)
        if type(inode) is not FileInode or not inode.owns_content:
            inode = self._own_file(ino)
            inode.writable_content()
        written = inode.content.write(offset, data, self.space)
        if written:
            inode.mtime = inode.ctime = self._now()
        return written

    def truncate(self, ino: int, size: int) -> None:
        if size > FILE_SIZE_MAX:
            raise KernelError(Errno.EFBIG)
        inode = self._own_file(ino)
        inode.writable_content().truncate(size, self.space)
        inode.mtime = inode.ctime = self._now()

    def allocate(self, ino: int, offset: int, length: int, *, keep_size: bool) -> None:
        if offset + length > FILE_SIZE_MAX:
            raise KernelError(Errno.EFBIG)
        inode = self._own_file(ino)
        inode.writable_content().allocate(offset, length, self.space, keep_size=keep_size)
        inode.mtime = inode.ctime = self._now()

    def punch_hole(self, ino: int, offset: int, length: int) -> None:
        inode = self._own_file(ino)
        inode.writable_content().punch_hole(offset, length, self.space)
        inode.mtime = inode.ctime = self._now()

    def seek_data(self, ino: int, offset: int) -> int:
        return self._file(ino).content.seek_data(offset)

    def seek_hole(self, ino: int, offset: int) -> int:
        return self._file(ino).content.seek_hole(offset)

    def share_content(self, ino: int) -> FileContent:
        inode = self._file(ino)
        self._accessed(ino, inode)
        return inode.content.share()

    def replace_content(self, ino: int, content: FileContent) -> None:
        if content.size > FILE_SIZE_MAX:
            raise KernelError(Errno.EFBIG)
        inode = self._own_file(ino)
        self.space.take_blocks(content.blocks - inode.content.blocks)
        self.space.used_blocks += inode.content.blocks
        inode.content.free(self.space)
        inode.content = content
        inode.owns_content = True
        inode.mtime = inode.ctime = self._now()

    def content_key(self, ino: int) -> str | None:
        inode = self._get(ino)
        return inode.content.key if type(inode) is FileInode else None

    def set_content_key(self, ino: int, key: str) -> None:
        # Layers that share the content get the key too, which is correct for them.
        content = self._file(ino).content
        content.key = key
        content.key_of_image = False

    def is_of_image(self, ino: int) -> bool:
        inode = self._get(ino)
        return type(inode) is FileInode and bool(inode.content.key) and inode.content.key_of_image

    def memory_key(self, ino: int) -> str | None:
        if not self.is_of_image(ino):
            return None
        return self._file(ino).content.memory_key

    def _file(self, ino: int) -> FileInode:
        inode = self._get(ino)
        if type(inode) is not FileInode:
            raise KernelError(Errno.EISDIR if isinstance(inode, DirectoryInode) else Errno.EINVAL)
        return inode

    def _own_file(self, ino: int) -> FileInode:
        self._file(ino)
        inode = self._table.own(ino)
        assert type(inode) is FileInode
        return inode

    # Lifetime.

    @property
    def is_used(self) -> bool:
        """Whether something of it is open, a working directory, or a mount point."""
        return bool(self._users)

    def retain(self, ino: int) -> None:
        self._users[ino] = self._users.get(ino, 0) + 1

    def release(self, ino: int) -> None:
        # A loop, because guests can nest removed directories to any depth.
        for _ in range(FREED_PER_CALL):
            left = self._users[ino] - 1
            if left:
                self._users[ino] = left
                return
            del self._users[ino]
            if ino not in self._orphans:
                return
            inode = self._get(ino)
            self._free(ino, inode)
            if not isinstance(inode, DirectoryInode):
                return
            ino = inode.parent
        self._unreleased.append(ino)

    def _free_some(self) -> None:
        """Continue freeing what earlier calls freed only in part."""
        if self._unreleased:
            self.release(self._unreleased.pop())
        if self.space.discarded_blocks:
            self.space.free_discarded()

    def _drop_name(self, ino: int, now: int) -> None:
        """Remove one name of an object that is not a directory."""
        inode = self._get(ino)
        if inode.nlink == 1 and ino not in self._users:
            self._free(ino, inode)
            return
        inode = self._table.own(ino)
        if inode.nlink > max(1, self._table.image_links(ino)):
            self.space.give_inode()
        inode.nlink -= 1
        inode.ctime = now
        if inode.nlink == 0:
            self._orphans.add(ino)

    def _drop_directory(self, ino: int, now: int) -> None:
        if ino not in self._users:
            self._free(ino, self._get(ino))
            return
        inode = self._table.own(ino)
        inode.nlink = 0
        inode.ctime = now
        self._orphans.add(ino)
        # '..' of a removed directory must work as long as the directory is in use.
        self.retain(inode.parent)

    def _free(self, ino: int, inode: Inode) -> None:
        if type(inode) is FileInode:
            if inode.content.blocks:
                inode.content.free(self.space)
        elif type(inode) is SymlinkInode and self._table.is_charged(ino):
            self.space.give_blocks(target_blocks(inode.target))
        if self._table.is_charged(ino):
            self.space.give_inode()
        self._table.remove(ino)
        self._orphans.discard(ino)

    def _directory(self, ino: int) -> DirectoryInode:
        inode = self._get(ino)
        if not isinstance(inode, DirectoryInode):
            raise KernelError(Errno.ENOTDIR)
        return inode


def target_blocks(target: bytes) -> int:
    return blocks_of(len(target)) if len(target) >= INLINE_TARGET_MAX else 0
