"""Whole trees of a sandbox's files: walking, removing, copying.

Rules: everything goes by nodes, not by paths, so that a tree may be deeper than a path can
name, and nothing recurses, so that it may be deeper than Python's stack; symbolic links are
never followed; all of it is called under the sandbox's lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.limits import IO_CHUNK, PATH_MAX
from wasmsand.kernel.vfs import ROOT, Namespace, Node, Stat

_STEP: Final = 1024


class Found(NamedTuple):
    """One entry below a directory."""

    path: bytes
    """Relative to where the walk began."""
    node: Node
    stat: Stat


def entries(namespace: Namespace, directory: Node) -> list[tuple[bytes, Node]]:
    """The entries of a directory, sorted by name, without `.` and `..`."""
    found = []
    cookie = 0
    while step := namespace.readdir(directory, cookie, _STEP):
        cookie = step[-1].cookie
        for item in step:
            if item.name not in (b".", b".."):
                node = namespace.resolve(ROOT, directory, item.name, follow=False)
                found.append((item.name, node))
    return sorted(found, key=lambda entry: entry[0])


def walk(namespace: Namespace, top: Node) -> Iterator[Found]:
    """Everything below a directory: each directory before its entries, which are sorted.

    ENAMETOOLONG where the tree is deeper than a path can be long.
    """
    waiting = [(b"", top)]
    while waiting:
        prefix, node = waiting.pop()
        if prefix:
            if len(prefix) >= PATH_MAX:
                raise KernelError(Errno.ENAMETOOLONG, f"tree deeper than {PATH_MAX} bytes of path")
            stat = namespace.stat(node)
            yield Found(prefix, node, stat)
            if stat.mode & S_IFMT != S_IFDIR:
                continue
            prefix += b"/"
        for name, child in reversed(entries(namespace, node)):
            waiting.append((prefix + name, child))


def remove_below(namespace: Namespace, top: Node) -> None:
    """Empty a directory."""
    stack = [(top, b"", iter(entries(namespace, top)))]
    while True:
        directory, own_name, rest = stack[-1]
        for name, child in rest:
            if namespace.stat(child).mode & S_IFMT == S_IFDIR:
                stack.append((child, name, iter(entries(namespace, child))))
                break
            namespace.unlink(ROOT, directory, name)
        else:
            stack.pop()
            if not stack:
                return
            namespace.rmdir(ROOT, stack[-1][0], own_name)


def is_within(namespace: Namespace, node: Node, top: Node) -> bool:
    """Whether a directory is `top` or below it."""
    while node != top:
        parent = namespace.resolve(ROOT, node, b"..")
        if parent == node:
            return False
        node = parent
    return True


def copy(namespace: Namespace, source: Node, target: bytes, uid: int, gid: int) -> None:
    """Copy a file, a link, a FIFO or a tree to the path `target`; devices are left out.

    What is made belongs to `uid` and has the modes of the source. A file at `target` is
    replaced; entries of a directory come into a directory that is there. EINVAL for a
    directory into itself.
    """
    root = namespace.root
    kind = namespace.stat(source).mode & S_IFMT
    existing = find(namespace, root, target)
    if existing == source:
        raise KernelError(Errno.EINVAL, "source and target are the same file")
    if kind == S_IFDIR:
        above = namespace.resolve_parent(ROOT, root, target.rstrip(b"/"))[0]
        if is_within(namespace, above, source):
            raise KernelError(Errno.EINVAL, "cannot copy a directory into itself")
    found = [Found(b"", source, namespace.stat(source))]
    if kind == S_IFDIR:
        found += walk(namespace, source)
    for entry in found:
        path = target.rstrip(b"/") + b"/" + entry.path if entry.path else target
        _copy_one(namespace, entry, path, uid, gid)


def _copy_one(namespace: Namespace, entry: Found, path: bytes, uid: int, gid: int) -> None:
    root, stat = namespace.root, entry.stat
    kind, mode = stat.mode & S_IFMT, stat.mode & 0o7777
    if kind not in (S_IFDIR, S_IFREG, S_IFLNK, S_IFIFO):
        return
    existing = find(namespace, root, path)
    if existing is not None:
        is_directory = namespace.stat(existing).mode & S_IFMT == S_IFDIR
        if kind == S_IFDIR:
            if not is_directory:
                raise KernelError(Errno.ENOTDIR, path.decode("utf-8", "replace"))
            return
        if is_directory:
            raise KernelError(Errno.EISDIR, path.decode("utf-8", "replace"))
        namespace.unlink(ROOT, root, path)
    if kind == S_IFDIR:
        node = namespace.mkdir(ROOT, root, path, mode)
    elif kind == S_IFLNK:
        node = namespace.symlink(ROOT, namespace.readlink(entry.node), root, path)
    else:
        node = namespace.mknod(ROOT, root, path, kind | mode, 0)
    namespace.chown(ROOT, node, uid, gid)
    if kind == S_IFREG:
        _copy_content(namespace, entry.node, node, stat.size)
    if kind != S_IFLNK:
        namespace.chmod(ROOT, node, mode)


def _copy_content(namespace: Namespace, source: Node, target: Node, size: int) -> None:
    """Copy the data, and leave the holes."""
    start = 0
    while start < size:
        try:
            start = namespace.seek_data(source, start)
        except KernelError as error:
            if error.errno is Errno.ENXIO:  # only a hole is left
                break
            raise
        end = namespace.seek_hole(source, start)
        while start < end:
            piece = namespace.read(source, start, min(end - start, IO_CHUNK))
            start += namespace.write(ROOT, target, start, piece)
    namespace.resize(ROOT, target, size)


def find(namespace: Namespace, base: Node, path: bytes) -> Node | None:
    """What is at a path, or None; a symbolic link is not followed."""
    try:
        return namespace.resolve(ROOT, base, path, follow=False)
    except KernelError as error:
        if error.errno in (Errno.ENOENT, Errno.ENOTDIR):
            return None
        raise
