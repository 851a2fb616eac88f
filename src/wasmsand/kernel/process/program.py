"""From a path to the program that execve starts.

Owns finding the executable, `#!` interpreters, set-id programs, and the checks before the point of
no return. Rules: the process does not change until `become`, which cannot fail. The set-id bits of
a script have no effect, as on Linux: those of its interpreter count.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFLNK, S_IFMT, S_IFREG, S_ISGID, S_ISUID, S_IXGRP, X_OK
from wasmsand.kernel.limits import (
    ARGUMENT_BYTES_MAX,
    ARGUMENT_COST,
    ARGUMENT_STRING_MAX,
    INTERPRETER_DEPTH_MAX,
    SYMLINK_DEPTH_MAX,
)
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.vfs import Credentials, Node, Stat

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel

_HEADER_BYTES: Final = 256
WASM_MAGIC: Final = b"\0asm"
_POINTER_BYTES: Final = 4
_NAME_BYTES: Final = 15


@dataclass(frozen=True, slots=True)
class Program:
    """An executable WebAssembly file and its arguments."""

    path: bytes
    """The absolute path of the WebAssembly file."""
    name: bytes
    """What ps shows: the name of the executed file, which may be a script."""
    argv: tuple[bytes, ...]
    environ: tuple[bytes, ...]
    argument_cost: int
    """Bytes charged for `argv` and `environ`."""
    content_key: str | None
    """sha256 of the content; None if it is not known yet."""
    memory_key: str | None
    """sha256 of the memory with which it starts; None for the data of the file."""
    of_image: bool
    """Whether the file belongs to the image or to `wasm_dir`; otherwise the content is
    untrusted."""
    size: int
    read: Callable[[int, int], bytes]
    """Read (offset, size); returns fewer bytes if the file has become shorter."""
    keep_key: Callable[[str], None]
    """Stores the hash of the content, so that the next start need not compute it."""
    uid: int | None = None
    """The user as whom it runs, if the file has the set-user-ID bit."""
    gid: int | None = None
    """The group, if the file has the set-group-ID bit."""


def find_program(
    kernel: Kernel,
    process: Process,
    base: Node,
    path: bytes,
    argv: tuple[bytes, ...],
    environ: tuple[bytes, ...],
    *,
    follow: bool = True,
) -> Program:
    """Resolve `path`, following interpreters, to a program. Raises the errnos of execve. The caller
    has checked the arguments with `require_arguments`."""
    argv = argv or (b"",)
    name = path.rpartition(b"/")[2][:_NAME_BYTES]
    namespace = kernel.namespace
    credentials = process.identity.credentials()
    for _ in range(INTERPRETER_DEPTH_MAX + 1):
        node = namespace.resolve(credentials, base, path, follow=follow)
        stat = namespace.stat(node)
        if stat.mode & S_IFMT != S_IFREG:
            raise KernelError(Errno.EACCES, _text(path))
        namespace.access(credentials, node, X_OK)
        header = namespace.read(node, 0, _HEADER_BYTES)
        if header.startswith(WASM_MAGIC):
            uid, gid = _set_ids(kernel, node, stat)
            return Program(
                _path_of(kernel, credentials, base, path, node, stat),
                name,
                argv,
                environ,
                argument_cost(argv, environ),
                namespace.content_key(node),
                namespace.memory_key(node),
                namespace.is_of_image(node),
                stat.size,
                _reader(kernel, node),
                _key_keeper(kernel, node, stat),
                uid,
                gid,
            )
        if not header.startswith(b"#!"):
            raise KernelError(Errno.ENOEXEC, _text(path))
        interpreter, argument = _parse_interpreter(header, path)
        extra = (argument,) if argument else ()
        argv = (interpreter, *extra, path, *argv[1:])
        base, path, follow = process.cwd, interpreter, True
    raise KernelError(Errno.ELOOP, _text(path))


def _set_ids(kernel: Kernel, node: Node, stat: Stat) -> tuple[int | None, int | None]:
    """The user and the group as whom the program in `node` runs, whoever starts it."""
    mode = stat.mode
    if not mode & (S_ISUID | S_ISGID) or not kernel.namespace.honours_set_ids(node):
        return None, None
    set_group = S_ISGID | S_IXGRP
    return (
        stat.uid if mode & S_ISUID else None,
        stat.gid if mode & set_group == set_group else None,
    )


def _path_of(
    kernel: Kernel, cred: Credentials, base: Node, path: bytes, node: Node, stat: Stat
) -> bytes:
    """The path of the file itself, for /proc/PID/exe. The path that was passed to execve may be
    that very link. A file with several names (`ls` and `cat` are one) has the one that was used."""
    namespace = kernel.namespace
    try:
        for _ in range(SYMLINK_DEPTH_MAX if stat.nlink > 1 else 0):
            directory, name = namespace.resolve_parent(cred, base, path)
            if name in (b"", b".", b".."):
                break
            entry = namespace.resolve(cred, directory, name, follow=False)
            if entry == node:
                return namespace.path_of(directory).rstrip(b"/") + b"/" + name
            if namespace.stat(entry).mode & S_IFMT != S_IFLNK:
                break
            base, path = directory, namespace.readlink(entry)
        return namespace.path_of(node)
    except KernelError:  # executed by descriptor after it was unlinked
        return b"/ (deleted)"


def _reader(kernel: Kernel, node: Node) -> Callable[[int, int], bytes]:
    def read(offset: int, size: int) -> bytes:
        return kernel.namespace.read(node, offset, size)

    return read


def _key_keeper(kernel: Kernel, node: Node, stat: Stat) -> Callable[[str], None]:
    def keep(key: str) -> None:
        kernel.namespace.keep_content_key(node, key, stat)

    return keep


def _parse_interpreter(header: bytes, path: bytes) -> tuple[bytes, bytes]:
    """The interpreter and its optional argument, separated by blanks. As on Linux, an interpreter
    path that is cut off at the end of the header is an error."""
    line, newline, _ = header[2:].partition(b"\n")
    if not newline:
        line = line[: _HEADER_BYTES - 3]
    line, nul, _ = line.partition(b"\0")
    interpreter, *argument = re.split(rb"[ \t]+", line.strip(b" \t"), maxsplit=1)
    cut_off = len(header) == _HEADER_BYTES and not newline and not nul and not argument
    if not interpreter or cut_off:
        raise KernelError(Errno.ENOEXEC, _text(path))
    return interpreter, argument[0] if argument else b""


def require_arguments(kernel: Kernel, argv: tuple[bytes, ...], environ: tuple[bytes, ...]) -> None:
    """E2BIG if the arguments are too long, ENOMEM if the ledger has no room for them."""
    lengths = [*map(len, argv), *map(len, environ)]
    if lengths and max(lengths) >= ARGUMENT_STRING_MAX:
        raise KernelError(Errno.E2BIG, "an argument is too long")
    strings, count = sum(lengths), len(lengths)
    total = strings + count * (1 + _POINTER_BYTES)
    if total > ARGUMENT_BYTES_MAX:
        raise KernelError(Errno.E2BIG, f"arguments and environment need {total} bytes")
    kernel.ledger.require(ARGUMENT_COST * count + strings)


def argument_cost(argv: tuple[bytes, ...], environ: tuple[bytes, ...]) -> int:
    """Bytes charged for these arguments."""
    count = len(argv) + len(environ)
    return ARGUMENT_COST * count + sum(map(len, argv)) + sum(map(len, environ))


def become(kernel: Kernel, process: Process, program: Program) -> None:
    """The point of no return of execve: `process` becomes `program`."""
    cost = program.argument_cost
    kernel.ledger.drop_object(process.argument_cost - cost)  # room was checked, so this cannot fail
    process.argument_cost = cost
    process.fds.close_for_exec()
    process.signals.reset_for_exec()
    process.name = process.first_thread.name = program.name
    process.executable = program.path
    process.identity = process.identity.after_exec(program.uid, program.gid)
    process.argv = program.argv
    process.environ = program.environ
    process.has_execed = True
    process.dumpable = program.uid is None and program.gid is None


def _text(path: bytes) -> str:
    return path.decode("utf-8", "replace")
