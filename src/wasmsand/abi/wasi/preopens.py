"""The directories that a program starts with.

Owns their names, numbers and order. Through the preopens `/` and `.` a program can reach the whole
sandbox. The order, and the further names for parts of `/`, are due to how programs find the preopen
for a path:

- Descriptor 3 is the working directory: programs without a libc (Zig's) assume that.
- Go and others join absolute paths to `/`.
- wasi-libc (C, C++, Rust, Swift, interpreters) has no working directory. It drops leading slashes,
  so that it treats `/etc/passwd` and `etc/passwd` alike, and uses the preopen with the longest
  matching name; among equally long names it uses the last one. `/` and `.` both have length 0. So
  `.` is listed again at the end, for relative paths, and every directory in `/` is listed by its
  own name, for absolute paths.
- Nothing above a directory can be reached from it, so `..`, `../..` and so on are preopens too.

Rules: `.` confines, as does every directory that a program opens. All others are views of `/`:
paths that start there are confined by `/`, so that absolute symbolic links work in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from wasmsand.abi.wasi import rights
from wasmsand.abi.wasi.descriptors import DescriptorTable
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.files.regular import DirectoryFile
from wasmsand.kernel.flags import O_RDONLY, R_OK, S_IFDIR, S_IFLNK, S_IFMT
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import PREOPENED_LEVELS_MAX, PREOPENED_NAMES_MAX
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.vfs import Credentials, Namespace, Node

FIRST_PREOPEN: Final = 3


class _Preopen(NamedTuple):
    name: bytes
    node: Node
    confines: bool


def start_descriptors(kernel: Kernel, process: Process) -> DescriptorTable:
    """The initial descriptors of a program: standard files and preopens.

    If the process may not open that many files, the last ones are missing.
    """
    table = DescriptorTable(process.fds)
    namespace, credentials = kernel.namespace, process.identity.credentials()
    # All of them first: looking at a mounted directory may have to wait, and is then repeated.
    preopens = list(_preopens(namespace, credentials, process.cwd))
    for number, preopen in enumerate(preopens, FIRST_PREOPEN):
        node = preopen.node
        base = rights.DIRECTORY
        if not _may_list(namespace, credentials, node):
            base &= ~rights.READING
        file = DirectoryFile(O_RDONLY, namespace, node, credentials)
        try:
            start = None if preopen.confines else node
            table.preopen(number, file, preopen.name, base, start)
        except KernelError:
            break
    return table


def _preopens(namespace: Namespace, credentials: Credentials, cwd: Node) -> Iterator[_Preopen]:
    yield _Preopen(b".", cwd, True)
    yield _Preopen(b"/", namespace.root, False)
    yield from _directories_of_root(namespace, credentials)
    yield from _directories_above(namespace, credentials, cwd)
    yield _Preopen(b".", cwd, True)


def _directories_of_root(namespace: Namespace, credentials: Credentials) -> Iterator[_Preopen]:
    for entry in namespace.readdir(namespace.root, 2, PREOPENED_NAMES_MAX):
        if entry.type in (S_IFDIR, S_IFLNK):
            node = _directory(namespace, credentials, namespace.root, entry.name)
            if node is not None:
                yield _Preopen(b"/" + entry.name, node, False)


def _directories_above(
    namespace: Namespace, credentials: Credentials, cwd: Node
) -> Iterator[_Preopen]:
    node, name = cwd, b""
    while node != namespace.root and len(name) < 3 * PREOPENED_LEVELS_MAX:
        above = _directory(namespace, credentials, node, b"..")
        if above is None:
            return
        node, name = above, name + b"/.." if name else b".."
        yield _Preopen(name, node, False)


def _directory(
    namespace: Namespace, credentials: Credentials, base: Node, path: bytes
) -> Node | None:
    try:
        node = namespace.resolve(credentials, base, path)
        return node if namespace.stat(node).mode & S_IFMT == S_IFDIR else None
    except KernelError:
        return None


def _may_list(namespace: Namespace, credentials: Credentials, node: Node) -> bool:
    try:
        namespace.access(credentials, node, R_OK)
    except KernelError:
        return False
    return True
