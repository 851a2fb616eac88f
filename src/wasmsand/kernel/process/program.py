"""From a path to the program that execve starts.

Owns finding the executable, `#!` interpreters, and the checks before the point of no return. Rules:
the process does not change until `become`, which cannot fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFMT, S_IFREG, X_OK
from wasmsand.kernel.limits import (
    ARGUMENT_BYTES_MAX,
    ARGUMENT_COST,
    ARGUMENT_STRING_MAX,
    INTERPRETER_DEPTH_MAX,
)
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.vfs import Node, Stat

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
            return Program(
                _path_of(kernel, node),
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
            )
        if not header.startswith(b"#!"):
            raise KernelError(Errno.ENOEXEC, _text(path))
        interpreter, argument = _parse_interpreter(header, path)
        extra = (argument,) if argument else ()
        argv = (interpreter, *extra, path, *argv[1:])
        base, path, follow = process.cwd, interpreter, True
    raise KernelError(Errno.ELOOP, _text(path))


def _path_of(kernel: Kernel, node: Node) -> bytes:
    """The path of the file itself, for /proc/PID/exe. The path that was passed to execve may be
    that very link."""
    try:
        return kernel.namespace.path_of(node)
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
    process.argv = program.argv
    process.environ = program.environ
    process.has_execed = True
    process.dumpable = True


def _text(path: bytes) -> str:
    return path.decode("utf-8", "replace")
