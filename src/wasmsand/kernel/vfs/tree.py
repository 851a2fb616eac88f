"""TreeFs: the read-write file system of a sandbox, a copy-on-write tree.

Owns names (directories and what they hold), the lifetime of inodes and their charges.
The bytes of files are in `content`, layers in `layers`, accounting in `space`.
Rules: a method that fails has changed nothing. Room is taken before it is used. An inode
is freed when it has neither a name nor a user. Making a tree over a snapshot, freezing
and forking do not depend on the number of files.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import FILE_SIZE_MAX, LINK_MAX, NAME_MAX, Limits
from wasmsand.kernel.vfs.filesystem import Data, FileSystem
from wasmsand.kernel.vfs.inode import (
    DirectoryInode,
    FileInode,
    Inode,
    SpecialInode,
    SymlinkInode,
)
from wasmsand.kernel.vfs.layers import ROOT_INO, InodeTable, Snapshot
from wasmsand.kernel.vfs.model import (
    BLOCK_SIZE,
    PERMISSION_BITS,
    S_IFDIR,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    DirEntry,
    Stat,
    StatFs,
)
from wasmsand.kernel.vfs.space import Space, blocks_of

TREE_MAGIC = 0x01021994
"""f_type of tmpfs, which this file system is closest to."""
INLINE_TARGET_MAX = 60
"""A symbolic link's target up to this length needs no block (as on ext4)."""
_SCANS_KEPT = 16


class TreeFs(FileSystem):
    """A tree of files over a snapshot."""

    type_name = "tmpfs"
    root_ino = ROOT_INO

    def __init__(
        self,
        base: Snapshot,
        limits: Limits | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
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
        self._scans: dict[int, tuple[list[int], list[bytes]]] = {}
        for ino in base.orphans:
            self._free(ino, self._get(ino))

    # The whole tree.

    def freeze(self) -> Snapshot:
        """The tree as it is now. Both go on independently."""
        return Snapshot(
            self._table.freeze(),
            self._table.next_ino,
            self._table.image_end,
            self.space.used_blocks,
            self.space.used_inodes,
            frozenset(self._orphans),
        )

    def fork(self, limits: Limits | None = None, now_ns: Callable[[], int] | None = None) -> TreeFs:
        """A second tree with the same files."""
        return TreeFs(self.freeze(), limits or self.limits, now_ns or self._now)

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

    # Reading attributes and names.

    def attributes(self, ino: int) -> Inode:
        return self._get(ino)

    def stat(self, ino: int) -> Stat:
        inode = self._get(ino)
        rdev = 0
        if type(inode) is FileInode:
            size = inode.content.size
            blocks = inode.content.stat_blocks()
        elif type(inode) is DirectoryInode:
            size, blocks = BLOCK_SIZE, BLOCK_SIZE // 512
        elif type(inode) is SymlinkInode:
            size = len(inode.target)
            blocks = _target_blocks(inode.target) * (BLOCK_SIZE // 512)
        else:
            assert type(inode) is SpecialInode
            size, blocks, rdev = 0, 0, inode.rdev
        return Stat(
            self.dev,
            ino,
            inode.mode,
            inode.nlink,
            inode.uid,
            inode.gid,
            rdev,
            size,
            BLOCK_SIZE,
            blocks,
            inode.atime,
            inode.mtime,
            inode.ctime,
            inode.btime,
        )

    def lookup(self, parent: int, name: bytes) -> int | None:
        entry = self._directory(parent).entries.get(name)
        return entry[0] if entry is not None else None

    def parent(self, ino: int) -> int:
        return self._directory(ino).parent

    def name_of(self, ino: int) -> tuple[int, bytes] | None:
        inode = self._get(ino)
        try:
            entry = self._directory(inode.parent).entries.get(inode.name)
        except KernelError:
            return None
        return (inode.parent, inode.name) if entry is not None and entry[0] == ino else None

    def readdir(self, ino: int, cookie: int, limit: int) -> list[DirEntry]:
        directory = self._directory(ino)
        if directory.nlink == 0:
            raise KernelError(Errno.ENOENT)
        found: list[DirEntry] = []
        if cookie < 1 and limit > 0:
            found.append(DirEntry(b".", ino, S_IFDIR, 1))
        if cookie < 2 and len(found) < limit:
            found.append(DirEntry(b"..", directory.parent, S_IFDIR, 2))
        cookies, names = self._scan(ino, directory, fresh=cookie < DirectoryInode.FIRST_COOKIE)
        entries = directory.entries
        for position in range(bisect_right(cookies, cookie), len(cookies)):
            if len(found) >= limit:
                break
            entry = entries.get(names[position])
            # Skip what was removed, or removed and made again, since the scan.
            if entry is not None and entry[1] == cookies[position]:
                kind = self._get(entry[0]).mode & S_IFMT
                found.append(DirEntry(names[position], entry[0], kind, entry[1]))
        return found

    def _scan(
        self, ino: int, directory: DirectoryInode, *, fresh: bool
    ) -> tuple[list[int], list[bytes]]:
        """Cookies and names as they were when the listing began. Kept for a few
        directories, so that a listing in small steps does not start over at each; and
        not extended, so that a program that renames what it lists comes to an end."""
        scan = None if fresh else self._scans.get(ino)
        if scan is None:
            scan = ([entry[1] for entry in directory.entries.values()], list(directory.entries))
            self._scans.pop(ino, None)
            if len(self._scans) >= _SCANS_KEPT:
                del self._scans[next(iter(self._scans))]
            self._scans[ino] = scan
        return scan

    def readlink(self, ino: int) -> bytes:
        inode = self._get(ino)
        if type(inode) is not SymlinkInode:
            raise KernelError(Errno.EINVAL)
        self._accessed(ino, inode)
        return inode.target

    # Lifetime.

    def retain(self, ino: int) -> None:
        self._users[ino] = self._users.get(ino, 0) + 1

    def release(self, ino: int) -> None:
        left = self._users[ino] - 1
        if left:
            self._users[ino] = left
            return
        del self._users[ino]
        if ino in self._orphans:
            inode = self._get(ino)
            self._free(ino, inode)
            if type(inode) is DirectoryInode:
                self.release(inode.parent)

    def _drop_name(self, ino: int, now: int) -> None:
        """One name less for something that is no directory."""
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
        # '..' of a removed directory works as long as somebody is in it.
        self.retain(inode.parent)

    def _free(self, ino: int, inode: Inode) -> None:
        if type(inode) is FileInode:
            self.space.give_blocks(inode.content.blocks)
        elif type(inode) is SymlinkInode and ino >= self._table.image_end:
            self.space.give_blocks(_target_blocks(inode.target))
        if ino >= self._table.image_end:
            self.space.give_inode()
        self._table.remove(ino)
        self._orphans.discard(ino)
        self._scans.pop(ino, None)

    # Changing names.

    def create(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        mode = mode & PERMISSION_BITS | S_IFREG
        return self._insert(parent, name, FileInode(mode, uid, gid, self._now()))

    def mkdir(self, parent: int, name: bytes, mode: int, uid: int, gid: int) -> int:
        if self._directory(parent).nlink >= LINK_MAX:
            raise KernelError(Errno.EMLINK)
        inode = DirectoryInode(mode & PERMISSION_BITS, uid, gid, self._now())
        ino = self._insert(parent, name, inode)
        self._table.own(parent).nlink += 1
        return ino

    def symlink(self, parent: int, name: bytes, target: bytes, uid: int, gid: int) -> int:
        blocks = _target_blocks(target)
        self.space.take_blocks(blocks)
        try:
            inode = SymlinkInode(S_IFLNK | 0o777, uid, gid, self._now(), target)
            return self._insert(parent, name, inode)
        except KernelError:
            self.space.give_blocks(blocks)
            raise

    def mknod(self, parent: int, name: bytes, mode: int, rdev: int, uid: int, gid: int) -> int:
        return self._insert(parent, name, SpecialInode(mode, uid, gid, self._now(), rdev))

    def _insert(self, parent: int, name: bytes, inode: Inode) -> int:
        directory = self._writable_directory(parent, name)
        self.space.take_inode()
        ino = self._table.add(inode)
        inode.parent = parent
        inode.name = name
        directory.add(name, ino)
        directory.mtime = directory.ctime = inode.ctime
        return ino

    def link(self, ino: int, parent: int, name: bytes) -> None:
        nlink = self._get(ino).nlink
        if nlink == 0:
            raise KernelError(Errno.ENOENT)
        if nlink >= LINK_MAX:
            raise KernelError(Errno.EMLINK)
        directory = self._writable_directory(parent, name)
        if nlink >= self._table.image_links(ino):
            self.space.take_inode()
        inode = self._table.own(ino)
        directory.add(name, ino)
        inode.nlink = nlink + 1
        inode.parent = parent
        inode.name = name
        inode.ctime = directory.mtime = directory.ctime = self._now()

    def unlink(self, parent: int, name: bytes) -> None:
        ino = self._entry(parent, name)
        directory = self._own_directory(parent)
        del directory.entries[name]
        directory.mtime = directory.ctime = now = self._now()
        self._drop_name(ino, now)

    def rmdir(self, parent: int, name: bytes) -> None:
        ino = self._entry(parent, name)
        if self._directory(ino).entries:
            raise KernelError(Errno.ENOTEMPTY)
        directory = self._own_directory(parent)
        del directory.entries[name]
        directory.nlink -= 1
        directory.mtime = directory.ctime = now = self._now()
        self._drop_directory(ino, now)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes) -> None:
        ino = self._entry(parent, name)
        is_directory = type(self._get(ino)) is DirectoryInode
        replaced = self._directory(new_parent).entries.get(new_name)
        if is_directory:
            if replaced is not None and self._directory(replaced[0]).entries:
                raise KernelError(Errno.ENOTEMPTY)
            if (
                replaced is None
                and parent != new_parent
                and self._directory(new_parent).nlink >= LINK_MAX
            ):
                raise KernelError(Errno.EMLINK)
        source, target = self._own_directory(parent), self._own_directory(new_parent)
        if target.nlink == 0:
            raise KernelError(Errno.ENOENT)
        now = self._now()
        if replaced is not None:
            del target.entries[new_name]
            if is_directory:
                target.nlink -= 1
                self._drop_directory(replaced[0], now)
            else:
                self._drop_name(replaced[0], now)
        del source.entries[name]
        target.add(new_name, ino)
        if is_directory:
            source.nlink -= 1
            target.nlink += 1
        self._moved(ino, new_parent, new_name, now)
        source.mtime = source.ctime = target.mtime = target.ctime = now

    def exchange(self, parent: int, name: bytes, other_parent: int, other_name: bytes) -> None:
        ino, other_ino = self._entry(parent, name), self._entry(other_parent, other_name)
        first, second = self._own_directory(parent), self._own_directory(other_parent)
        now = self._now()
        del first.entries[name]
        del second.entries[other_name]
        first.add(name, other_ino)
        second.add(other_name, ino)
        for moved, old, new in ((ino, first, second), (other_ino, second, first)):
            if type(self._get(moved)) is DirectoryInode:
                old.nlink -= 1
                new.nlink += 1
        self._moved(ino, other_parent, other_name, now)
        self._moved(other_ino, parent, name, now)
        first.mtime = first.ctime = second.mtime = second.ctime = now

    def _moved(self, ino: int, parent: int, name: bytes, now: int) -> None:
        inode = self._table.own(ino)
        inode.parent = parent
        inode.name = name
        inode.ctime = now

    def _directory(self, ino: int) -> DirectoryInode:
        inode = self._get(ino)
        if type(inode) is not DirectoryInode:
            raise KernelError(Errno.ENOTDIR)
        return inode

    def _own_directory(self, ino: int) -> DirectoryInode:
        inode = self._table.own(ino)
        assert type(inode) is DirectoryInode
        return inode

    def _writable_directory(self, parent: int, name: bytes) -> DirectoryInode:
        """A live directory in which `name` is free."""
        directory = self._directory(parent)
        if directory.nlink == 0:
            raise KernelError(Errno.ENOENT)
        if name in directory.entries:
            raise KernelError(Errno.EEXIST)
        return self._own_directory(parent)

    def _entry(self, parent: int, name: bytes) -> int:
        entry = self._directory(parent).entries.get(name)
        if entry is None:
            raise KernelError(Errno.ENOENT)
        return entry[0]

    # Changing attributes.

    def set_attributes(
        self,
        ino: int,
        *,
        mode: int | None = None,
        uid: int | None = None,
        gid: int | None = None,
        atime_ns: int | None = None,
        mtime_ns: int | None = None,
    ) -> None:
        inode = self._table.own(ino)
        if mode is not None:
            inode.mode = inode.mode & S_IFMT | mode & PERMISSION_BITS
        if uid is not None:
            inode.uid = uid
        if gid is not None:
            inode.gid = gid
        if atime_ns is not None:
            inode.atime = atime_ns
        if mtime_ns is not None:
            inode.mtime = mtime_ns
        inode.ctime = self._now()

    def _accessed(self, ino: int, inode: Inode) -> None:
        """relatime: note the first access since the last change. Reading does not copy
        an unchanged inode of the image."""
        if (inode.atime <= inode.mtime or inode.atime <= inode.ctime) and (
            ino >= self._table.image_end or ino in self._table.top
        ):
            self._table.own(ino).atime = self._now()

    # The bytes of files.

    def read(self, ino: int, offset: int, size: int) -> bytes:
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

    def content_key(self, ino: int) -> str | None:
        inode = self._get(ino)
        return inode.content.key if type(inode) is FileInode else None

    def _file(self, ino: int) -> FileInode:
        inode = self._get(ino)
        if type(inode) is not FileInode:
            raise KernelError(Errno.EISDIR if type(inode) is DirectoryInode else Errno.EINVAL)
        return inode

    def _own_file(self, ino: int) -> FileInode:
        self._file(ino)
        inode = self._table.own(ino)
        assert type(inode) is FileInode
        return inode


def _target_blocks(target: bytes) -> int:
    return blocks_of(len(target)) if len(target) >= INLINE_TARGET_MAX else 0
