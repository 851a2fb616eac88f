"""Operations on whole trees of a sandbox's files: walk, remove, copy.

Rules: operations use nodes, not paths, so a tree may be deeper than a path can name, and a guest
cannot divert an operation by replacing a directory with a symbolic link. Nothing recurses, so a
tree may be deeper than Python's stack. Symbolic links are never followed. Nothing is removed in, or
copied from, a file system that is mounted inside the tree. The lock is released between steps (see
`host_access`); files that are removed meanwhile are left out.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Final, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.limits import HOST_ENTRIES_PER_HOLD, IO_CHUNK, PATH_MAX, REMOVAL_ROUNDS
from wasmsand.kernel.vfs import ROOT, DirEntry, FileContent, Namespace, Node, Stat
from wasmsand.kernel.vfs.space import Space
from wasmsand.machine.host_access import HostAccess, find

_DOTS: Final = (b".", b"..")


class Found(NamedTuple):
    """One entry of a directory or of a tree."""

    path: bytes
    """Relative to the start of the search; just the name for entries of the top directory."""
    node: Node
    stat: Stat


def content_of(data: bytes) -> FileContent:
    """A file content with these bytes, not yet charged to any file system."""
    content = FileContent()
    if data:
        content.write(0, data, Space(1 << 62, 0))
    return content


def temporary_name() -> bytes:
    """A random name, which a guest cannot guess."""
    return b"." + secrets.token_hex(16).encode()


def entries(access: HostAccess, directory: Node) -> list[Found]:
    """The entries of a directory, sorted by name, without `.` and `..`; empty if it was removed."""
    found: list[Found] = []
    cookie = 0
    while True:
        with access as namespace:
            step = _read_step(namespace, directory, cookie)
            for item in step:
                node = None if item.name in _DOTS else find(namespace, directory, item.name)
                if node is not None:
                    found.append(Found(item.name, node, namespace.stat(node)))
        if not step:
            break
        cookie = step[-1].cookie
    found.sort(key=lambda entry: entry.path)
    return found


def _read_step(namespace: Namespace, directory: Node, cookie: int) -> list[DirEntry]:
    try:
        return namespace.readdir(directory, cookie, HOST_ENTRIES_PER_HOLD)
    except KernelError as error:
        if error.errno is Errno.ENOENT:
            return []
        raise


def walk(access: HostAccess, top: Node, *, into_mounts: bool = False) -> Iterator[Found]:
    """Everything below a directory: each directory before its entries, which are sorted. The
    entries of a mounted file system are left out, unless `into_mounts` is set.

    ENAMETOOLONG if a path in the tree is too long; EBUSY if a guest keeps moving directories into
    the part not yet visited.
    """
    left = access.most_entries
    waiting = [(b"", iter(entries(access, top)))]
    while waiting:
        prefix, rest = waiting[-1]
        entry = next(rest, None)
        if entry is None:
            waiting.pop()
            continue
        left -= 1
        if left < 0:
            raise KernelError(Errno.EBUSY, "the tree keeps changing")
        path = prefix + entry.path
        if len(path) >= PATH_MAX:
            raise KernelError(Errno.ENAMETOOLONG, f"a path has {PATH_MAX} bytes or more")
        yield Found(path, entry.node, entry.stat)
        if _is_directory(entry.stat) and (into_mounts or entry.node.fs is top.fs):
            waiting.append((path + b"/", iter(entries(access, entry.node))))


# Removing.


class _Emptying:
    """A directory that is being emptied."""

    __slots__ = ("cookie", "name", "names", "node", "rounds")

    def __init__(self, node: Node, name: bytes) -> None:
        self.node = node
        self.name = name
        """Its name in the parent directory."""
        self.names: list[bytes] = []
        """Entries read but not removed yet."""
        self.cookie = 0
        self.rounds = 0

    def next_name(self, namespace: Namespace) -> bytes | None:
        """The next entry to remove; None when all entries were read."""
        while not self.names:
            step = _read_step(namespace, self.node, self.cookie)
            if not step:
                return None
            self.cookie = step[-1].cookie
            self.names = [item.name for item in reversed(step) if item.name not in _DOTS]
        return self.names.pop()

    def again(self) -> None:
        """A guest has created new entries: start another round."""
        self.rounds += 1
        self.cookie = 0
        if self.rounds >= REMOVAL_ROUNDS:
            raise KernelError(Errno.ENOTEMPTY, "a program keeps creating files in the directory")


def remove(access: HostAccess, path: bytes) -> None:
    """Remove a directory and everything in it.

    Only files inside the directory are removed, even if a guest moves directories meanwhile. EBUSY
    if the directory is the root of a file system, or when another file system is found mounted in
    it; ENOTEMPTY if guests create entries as fast as they are removed.
    """
    with access as namespace:
        above, name = namespace.resolve_parent(ROOT, namespace.root, path)
        top = namespace.resolve(ROOT, namespace.root, path, follow=False)
        if top.ino == top.fs.root_ino or name in (b"", *_DOTS):
            raise KernelError(Errno.EBUSY)
        if find(namespace, above, name) != top:  # a symbolic link with a trailing slash
            raise KernelError(Errno.ENOTDIR)
    left = access.most_entries
    stack = [_Emptying(top, name)]
    moves = -1
    while stack:
        with access as namespace:
            if top.fs.moves != moves:
                moves = top.fs.moves
                _cut_off_moved(stack, above)
            for _ in range(HOST_ENTRIES_PER_HOLD):
                if not stack:
                    return
                left -= 1
                if left < 0:
                    raise KernelError(Errno.ENOTEMPTY, "the tree keeps changing")
                _remove_one(namespace, stack, above)


def _cut_off_moved(stack: list[_Emptying], above: Node) -> None:
    """Forget directories that were moved away since they were entered."""
    outer = above
    for depth, level in enumerate(stack):
        try:
            nested = level.node.fs.parent(level.node.ino) == outer.ino
        except KernelError:
            nested = False
        if not nested:
            del stack[depth:]
            return
        outer = level.node


def _remove_one(namespace: Namespace, stack: list[_Emptying], above: Node) -> None:
    """Remove one entry of the innermost directory, enter it, or remove the empty directory."""
    level = stack[-1]
    name = level.next_name(namespace)
    if name is None:
        outer = stack[-2].node if len(stack) > 1 else above
        if find(namespace, outer, level.name) == level.node:
            try:
                namespace.rmdir(ROOT, outer, level.name)
            except KernelError as error:
                if error.errno is not Errno.ENOTEMPTY:
                    raise
                level.again()
                return
        stack.pop()
        return
    child = find(namespace, level.node, name)
    if child is None:
        return
    if child.fs is not level.node.fs:
        raise KernelError(Errno.EBUSY, f"a file system is mounted on {_text(name)}")
    if _is_directory(namespace.stat(child)):
        stack.append(_Emptying(child, name))
    else:
        namespace.unlink(ROOT, level.node, name)


# Copying.


def copy(access: HostAccess, source: bytes, target: bytes) -> None:
    """Copy a file, a symbolic link, a FIFO or a tree to the path `target`; devices are skipped.

    The copy belongs to the sandbox's user and has the modes of the source. A file at `target` is
    replaced; a directory at `target` is merged with the source. EINVAL if a directory would be
    copied into itself.
    """
    with access as namespace:
        root = namespace.root
        top = namespace.resolve(ROOT, root, source, follow=False)
        stat = namespace.stat(top)
        is_directory = _is_directory(stat)
        existing = find(namespace, root, target)
        if existing == top:
            raise KernelError(Errno.EINVAL, "source and target are the same file")
        above, name = namespace.resolve_parent(ROOT, root, target.rstrip(b"/") or b"/")
        if is_directory and above.fs is top.fs and top.fs.contains(top.ino, above.ino):
            raise KernelError(Errno.EINVAL, "cannot copy a directory into itself")
        if name in (b"", *_DOTS):
            # Only an existing directory has such a path.
            if not is_directory:
                raise KernelError(Errno.EISDIR, _text(target))
            made = existing
        else:
            whole = Found(target, top, stat)
            made = _copy_one(namespace, access, whole, above, name)
    if not is_directory or made is None:
        return
    # The walk enters a directory right after it has returned it.
    places = [(b"", made)]
    for entry in walk(access, top):
        prefix, _, name = entry.path.rpartition(b"/")
        while places[-1][0] != prefix:
            places.pop()
        with access as namespace:
            try:
                made = _copy_one(namespace, access, entry, places[-1][1], name)
            except KernelError as error:
                if error.errno is Errno.ENOENT and _is_gone(namespace, entry.node):
                    continue
                raise
        if made is not None and _is_directory(entry.stat):
            places.append((entry.path, made))


def _is_gone(namespace: Namespace, node: Node) -> bool:
    try:
        return namespace.stat(node).nlink == 0
    except KernelError:
        return True


def _copy_one(
    namespace: Namespace, access: HostAccess, entry: Found, above: Node, name: bytes
) -> Node | None:
    """Copy one file, or a directory without its entries; None if the type cannot be copied."""
    kind, mode = entry.stat.mode & S_IFMT, entry.stat.mode & 0o7777
    if kind not in (S_IFDIR, S_IFREG, S_IFLNK, S_IFIFO):
        return None
    existing = find(namespace, above, name)
    if existing is not None:
        meets_directory = _is_directory(namespace.stat(existing))
        if kind == S_IFDIR:
            if not meets_directory:
                raise KernelError(Errno.ENOTDIR, _text(entry.path))
            return existing
        if meets_directory:
            raise KernelError(Errno.EISDIR, _text(entry.path))
    content = _content(namespace, entry.node) if kind == S_IFREG else None
    text = namespace.readlink(entry.node) if kind == S_IFLNK else b""
    # Create the copy beside the existing file, which stays if this fails.
    made = name if existing is None else temporary_name()
    if kind == S_IFDIR:
        node = namespace.mkdir(ROOT, above, made, mode)
    elif kind == S_IFLNK:
        node = namespace.symlink(ROOT, text, above, made)
    else:
        node = namespace.mknod(ROOT, above, made, kind | mode, 0)
    namespace.chown(ROOT, node, access.uid, access.gid)
    try:
        if content is not None:
            namespace.replace_content(node, content)
    except KernelError:
        namespace.unlink(ROOT, above, made)
        raise
    if kind != S_IFLNK:
        namespace.chmod(ROOT, node, mode)
    if made != name:
        namespace.rename(ROOT, above, made, above, name)
    return node


def _content(namespace: Namespace, source: Node) -> FileContent:
    """A file's content, shared copy-on-write."""
    content = namespace.share_content(source)
    if content is None:  # a file of /proc, which is never longer
        content = content_of(namespace.read(source, 0, IO_CHUNK))
    return content


def _is_directory(stat: Stat) -> bool:
    return stat.mode & S_IFMT == S_IFDIR


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
