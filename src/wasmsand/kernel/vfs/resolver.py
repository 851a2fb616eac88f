"""The path walk: from a path to a node. Every path from a guest or the host goes through here.

Owns `Resolver`. Rules, all Linux's: every directory on the way must grant search permission. '..'
stops at the root and leaves a mounted file system through its mount point. At most 40 symbolic
links are followed. A trailing slash requires a directory and follows a symbolic link. Names are
looked up one by one, so that no string manipulation can bypass a check. A file system may take
simple steps by itself (`descend`, `find`): through directories that everyone may search, but not
through a symbolic link or a mount point. A walk that starts at a `Beneath` takes every step here:
it counts its depth below that directory, and fails rather than leave it. One rule is our own: a
walk holds the sandbox's lock, so it visits at most PATH_NAMES_MAX names.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError, PathEscapes
from wasmsand.kernel.flags import S_IFDIR, S_IFLNK, S_IFMT, X_OK
from wasmsand.kernel.limits import NAME_MAX, PATH_MAX, PATH_NAMES_MAX, SYMLINK_DEPTH_MAX
from wasmsand.kernel.vfs.filesystem import FileSystem, Node
from wasmsand.kernel.vfs.model import Credentials
from wasmsand.kernel.vfs.mounts import Mount, MountTable
from wasmsand.kernel.vfs.permissions import allowed

_SLASH: Final = 0x2F


class Walked(NamedTuple):
    """Where a walk ended. If `name` is set, the walk stopped before the last component, and `fs`
    and `ino` are its directory. The name is empty if the path was the root."""

    fs: FileSystem
    ino: int
    name: bytes
    slash: bool
    """Whether the path ended in a slash."""
    links: int
    """Symbolic links followed so far."""
    depth: int
    """How many directories below the base, if the base confines the walk."""


class Resolver(MountTable):
    """The mount table with the path walk."""

    def resolve(self, cred: Credentials, base: Node, path: bytes, follow: bool = True) -> Node:
        """The object at `path`. A relative path starts at `base`; `follow` says whether a symbolic
        link at the end is followed."""
        fs, ino = self.locate(cred, base, path, follow)
        return Node(fs, ino)

    def locate(
        self, cred: Credentials, base: Node, path: bytes, follow: bool
    ) -> tuple[FileSystem, int]:
        """Like `resolve`, without making a `Node`, which costs more than a short walk."""
        if not base.confines and len(path) < PATH_MAX:
            start = self.root if path[:1] == b"/" else base
            fs = start.fs
            mount = self._mount_of.get(fs)
            if mount is not None:
                ino = fs.find(start.ino, path, mount.covered)
                if ino is not None:
                    return fs, ino
        walked = self._walk(cred, base, path, follow, False)
        return walked[0], walked[1]

    def resolve_parent(self, cred: Credentials, base: Node, path: bytes) -> tuple[Node, bytes]:
        """The directory of the last component, and that component: '.' and '..' unchanged, empty
        for the root. A symbolic link at the end is not followed."""
        walked = self._walk(cred, base, path, False, True)
        return Node(walked.fs, walked.ino), walked.name

    def path_of(self, node: Node) -> bytes:
        """An absolute path of an object: exact for a directory; for a file, its latest name. ENOENT
        if it was removed, ENAMETOOLONG if the path is too long."""
        names: list[bytes] = []
        length = 0
        fs, ino = node.fs, node.ino
        while fs is not self.root.fs or ino != self.root.ino:
            if ino == fs.root_ino:
                mount = self._mount_of.get(fs)
                if mount is None or mount.point is None:
                    raise KernelError(Errno.ENOENT)
                fs, ino = mount.point.fs, mount.point.ino
                continue
            place = fs.name_of(ino)
            if place is None:
                raise KernelError(Errno.ENOENT)
            ino = place[0]
            names.append(place[1])
            length += len(place[1]) + 1
            if length >= PATH_MAX:
                raise KernelError(Errno.ENAMETOOLONG)
        names.reverse()
        return b"/" + b"/".join(names)

    def _walk(
        self,
        cred: Credentials,
        base: Node,
        path: bytes,
        follow: bool,
        to_parent: bool,
        links: int = 0,
        depth: int = 0,
    ) -> Walked:
        """`links` and `depth` continue an earlier part of the same walk."""
        if not path:
            raise KernelError(Errno.ENOENT)
        if len(path) >= PATH_MAX:
            raise KernelError(Errno.ENAMETOOLONG)
        root = self.root
        confined = base.confines
        if path[0] == _SLASH:
            if confined:
                raise PathEscapes(_text(path))
            start = root
        else:
            start = base
        fs, ino = start.fs, start.ino
        mount = self._mount_of.get(fs)
        attributes = fs.attributes(ino)
        slash = path[-1] == _SLASH
        # The names still to walk, the next one last.
        names = (path.rstrip(b"/") if slash else path).split(b"/")
        names.reverse()
        walked = len(names)
        keep = 1 if to_parent else 0
        while names:
            if not confined:
                covered = mount.covered if mount is not None else ()
                ino, attributes = fs.descend(ino, attributes, names, keep, covered)
                if not names:
                    break
            name = names.pop()
            if not name:
                continue
            mode = attributes.mode
            if mode & S_IFMT != S_IFDIR:
                raise KernelError(Errno.ENOTDIR, _text(path))
            # Fast path: most directories let everyone search.
            if mode & 0o111 != 0o111 and not allowed(cred, attributes, X_OK):
                raise KernelError(Errno.EACCES, _text(path))
            if confined and name == b"..":
                depth -= 1
                if depth < 0:
                    raise PathEscapes(_text(path))
            if to_parent and not names:
                return Walked(fs, ino, name, slash, links, depth)
            if name == b".":
                continue
            if name == b"..":
                fs, ino, mount = self._up(fs, ino, mount)
                attributes = fs.attributes(ino)
                continue
            step = fs.step(ino, attributes, name)
            if step is None:
                raise KernelError(
                    Errno.ENAMETOOLONG if len(name) > NAME_MAX else Errno.ENOENT, _text(path)
                )
            child, found = step
            depth += 1
            if mount is not None and child in mount.covered:
                mount = mount.covered[child]
                fs, ino = mount.fs, mount.fs.root_ino
                if mount.covered:
                    fs, ino, mount = self._down(fs, ino, mount)
                attributes = fs.attributes(ino)
                continue
            if found.mode & S_IFMT == S_IFLNK and (names or follow or slash):
                links += 1
                if links > SYMLINK_DEPTH_MAX:
                    raise KernelError(Errno.ELOOP, _text(path))
                depth -= 1  # the link itself is not entered
                target = fs.follow(child)
                if confined and (isinstance(target, Node) or target[:1] == b"/"):
                    raise PathEscapes(_text(path))
                if isinstance(target, Node):
                    # A magic link exposes a process's files: only its owner and root may follow it.
                    if cred.uid not in (0, found.uid):
                        raise KernelError(Errno.EACCES, _text(path))
                    fs, ino = target.fs, target.ino
                    mount = self._mount_of.get(fs)
                    attributes = fs.attributes(ino)
                    continue
                if not target:
                    raise KernelError(Errno.ENOENT, _text(path))
                if target[0] == _SLASH:
                    fs, ino = root.fs, root.ino
                    mount = self._mount_of[fs]
                    attributes = fs.attributes(ino)
                trimmed = target.rstrip(b"/")
                if not names and len(trimmed) != len(target):
                    slash = True
                more = trimmed.split(b"/")
                walked += len(more)
                if walked > PATH_NAMES_MAX:
                    raise KernelError(Errno.ELOOP, _text(path))
                names.extend(reversed(more))
                continue
            ino, attributes = child, found
        if slash and attributes.mode & S_IFMT != S_IFDIR:
            raise KernelError(Errno.ENOTDIR, _text(path))
        return Walked(fs, ino, b"", slash, links, depth)

    def _up(
        self, fs: FileSystem, ino: int, mount: Mount | None
    ) -> tuple[FileSystem, int, Mount | None]:
        """One '..' step, through mount points, but not above the root."""
        while ino == fs.root_ino:
            if mount is None or mount.point is None:
                return fs, ino, mount
            fs, ino = mount.point.fs, mount.point.ino
            mount = self._mount_of[fs]
        return self._down(fs, fs.parent(ino), mount)

    def _down(
        self, fs: FileSystem, ino: int, mount: Mount | None
    ) -> tuple[FileSystem, int, Mount | None]:
        """Enter the file systems mounted on a directory, if any."""
        while mount is not None and ino in mount.covered:
            mount = mount.covered[ino]
            fs, ino = mount.fs, mount.fs.root_ino
        return fs, ino, mount


def _text(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
