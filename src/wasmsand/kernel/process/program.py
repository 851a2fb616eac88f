"""From a path to a program: what execve starts.

Owns finding the executable, `#!` interpreters, and the checks before the point of
no return. Rules: nothing of the process changes here; `become` then cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFMT, S_IFREG, X_OK
from wasmsand.kernel.limits import (
    ARGUMENT_BYTES_MAX,
    ARGUMENT_STRING_MAX,
    INTERPRETER_DEPTH_MAX,
)
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.vfs import Node

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel

_HEADER_BYTES: Final = 256
WASM_MAGIC: Final = b"\0asm"
_POINTER_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Program:
    """An executable WebAssembly file and the arguments it gets."""

    path: bytes
    argv: tuple[bytes, ...]
    environ: tuple[bytes, ...]
    content_key: str | None
    """sha256 of the file when the image knows it; else the content must be hashed."""
    read: Callable[[], bytes]


def find_program(
    kernel: Kernel, process: Process, base: Node, path: bytes,
    argv: tuple[bytes, ...], environ: tuple[bytes, ...], *, follow: bool = True,
) -> Program:
    """Resolve `path`, through interpreters, to a program; or the errno execve gives."""
    _require_size(argv, environ)
    argv = argv or (b"",)
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
                path, argv, environ, namespace.content_key(node), _reader(kernel, node, stat.size)
            )
        if not header.startswith(b"#!"):
            raise KernelError(Errno.ENOEXEC, _text(path))
        interpreter, argument = _parse_interpreter(header, path)
        extra = (argument,) if argument else ()
        argv = (interpreter, *extra, path, *argv[1:])
        base, path, follow = process.cwd, interpreter, True
    raise KernelError(Errno.ELOOP, _text(path))


def _reader(kernel: Kernel, node: Node, size: int) -> Callable[[], bytes]:
    def read() -> bytes:
        return kernel.namespace.read(node, 0, size)

    return read


def _parse_interpreter(header: bytes, path: bytes) -> tuple[bytes, bytes]:
    line, newline, _ = header[2:].partition(b"\n")
    if not newline and len(header) == _HEADER_BYTES:
        # As on Linux: a cut-off interpreter path is an error, a cut-off argument is not.
        if not any(blank in line.strip(b" \t") for blank in (b" ", b"\t")):
            raise KernelError(Errno.ENOEXEC, _text(path))
    words = line.strip(b" \t").split(None, 1)
    if not words:
        raise KernelError(Errno.ENOEXEC, _text(path))
    return words[0], words[1].rstrip(b" \t") if len(words) > 1 else b""


def _require_size(argv: tuple[bytes, ...], environ: tuple[bytes, ...]) -> None:
    total = 0
    for string in (*argv, *environ):
        if len(string) >= ARGUMENT_STRING_MAX:
            raise KernelError(Errno.E2BIG, "an argument is too long")
        total += len(string) + 1 + _POINTER_BYTES
    if total > ARGUMENT_BYTES_MAX:
        raise KernelError(Errno.E2BIG, f"arguments and environment need {total} bytes")


def become(kernel: Kernel, process: Process, program: Program) -> None:
    """The point of no return of execve: `process` is now `program`."""
    process.fds.close_for_exec()
    process.signals.reset_for_exec()
    process.name = program.path.rsplit(b"/", 1)[-1][:15]
    process.executable = program.path
    process.argv = program.argv
    process.environ = program.environ
    process.has_execed = True


def _text(path: bytes) -> str:
    return path.decode("utf-8", "replace")
