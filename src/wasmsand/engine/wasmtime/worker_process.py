"""One compile worker process, from the host's side.

Owns starting a worker, giving it orders, and ending it. Rules: a worker inherits no files and no
environment. One thread at a time uses it; any thread may end it. A worker that failed or was ended
is not used again. The worker's own code is in `compile_worker`; `compile_pool` assigns workers.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import _cffi_backend  # type: ignore[import-untyped]  # it has no stubs

from wasmsand.engine.compile_orders import CompileCancelled, CompileOrder, CompileUnavailable
from wasmsand.engine.placement import free_this_thread
from wasmsand.engine.wasmtime import compile_worker
from wasmsand.engine.wasmtime.compile_worker import FRAME, ORDER, REPORT

logger = logging.getLogger("wasmsand.engine")

VARIABLE = "WASMSAND_PYTHON"
"""Host environment variable: the interpreter for workers, if sys.executable is not one."""
MODE_VARIABLE = "WASMSAND_COMPILE"
"""Host environment variable: `in-process` disables workers, and with them the time and memory
limits. For hosts that cannot start processes and trust what runs in their sandboxes."""
_START_SECONDS = 60.0
_END_SECONDS = 5.0
_PIECE = 1 << 20
_SHOWN_BYTES = 2000
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""Variables that an interpreter may need to find its own libraries."""
_PACKAGES = ("wasmsand", "wasmsand.engine", "wasmsand.engine.wasmtime")
_BOOT = f"""\
import sys
backend, folder, *arguments = sys.argv[1:]
sys.path.append(backend)
for name in {_PACKAGES}:  # without what their __init__ imports
    package = sys.modules[name] = type(sys)(name)
    package.__path__ = [folder]
from wasmsand.engine.wasmtime.compile_worker import main
main(arguments)
"""


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """The parameters of a worker; other parameters need another worker."""

    library: str
    configuration: tuple[tuple[str, int], ...]
    shape: tuple[tuple[str, int], ...]
    probe: bytes
    """An empty module, as the worker must compile it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a compilation ended."""

    rejection: str | None
    """Why the module was refused, or None."""
    code: int
    """0, or the exit code; negative for a signal."""
    cpu_seconds: float


class Worker:
    """One worker process. One thread at a time uses it; any thread may end it."""

    def __init__(self, setup: WorkerSetup, order: CompileOrder) -> None:
        """Start the worker. Raises `CompileUnavailable`, `CompileCancelled`."""
        self.setup = setup
        free_this_thread()
        try:
            self._process = subprocess.Popen(
                _command(setup),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=os.path.abspath(os.sep),
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            )
        except OSError as error:
            raise CompileUnavailable(f"cannot start a compile worker: {error}") from None
        timer = threading.Timer(_START_SECONDS, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            with order.cancellation.calling(self.cancel):
                probe = b"".join(self._frame(1 << 20)[1])
        except BaseException:
            self.end()
            raise
        finally:
            timer.cancel()
        if probe != setup.probe:
            self._process.kill()
            said = _read(_stream(self._process.stderr), _SHOWN_BYTES)
            self.end()
            if order.cancellation.cancelled:
                raise CompileCancelled
            _warn_once(said.decode("utf-8", "replace"))
            raise CompileUnavailable(
                f"{_interpreter()} did not start a compile worker: set {VARIABLE} to a Python "
                f"{sys.version_info.major}.{sys.version_info.minor} that has cffi"
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, order: CompileOrder, sink: Callable[[bytes], None]) -> Outcome:
        """Compile a module, and pass the result to `sink` piece by piece.

        Raises `CompileCancelled`, and what reading the module or `sink` raises. After an exception,
        or an outcome with a non-zero code, the worker must be ended.
        """
        started = time.monotonic()
        limits, rejection = order.limits, b""
        patience = 60 + 10 * limits.cpu_seconds
        header = ORDER.pack(order.size, limits.cpu_seconds, limits.memory_bytes, patience)
        with order.cancellation.calling(self.cancel):
            with contextlib.suppress(BrokenPipeError):  # it has ended; its report says why
                self._write(header)
                for piece in order.pieces():
                    self._write(piece)
            kind, pieces = self._frame(limits.output_bytes)
            if kind == compile_worker.REJECTED:
                rejection = b"".join(pieces)
            else:
                for piece in pieces:
                    sink(piece)
            report = _read(_stream(self._process.stderr), REPORT.size)
        if len(report) == REPORT.size:
            code, cpu_us, _ = REPORT.unpack(report)
            cpu_seconds = cpu_us / 1_000_000
        else:
            code, cpu_seconds = -9, time.monotonic() - started
        order.cpu_seconds += cpu_seconds
        if order.cancellation.cancelled:
            raise CompileCancelled
        if not kind and code == 0:
            code = 1
        text = rejection.decode("utf-8", "replace")
        return Outcome(text if kind == compile_worker.REJECTED else None, code, cpu_seconds)

    def cancel(self) -> None:
        """End the current compilation and the worker. Never waits."""
        self._process.terminate()

    def end(self) -> None:
        """End the worker, and its compilation, and wait until it has ended."""
        _stream(self._process.stdin).close()
        self.cancel()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.close_streams()

    def close_streams(self) -> None:
        """Close our ends of its pipes."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            _stream(stream).close()

    def _write(self, content: bytes) -> None:
        stream, view, at = _stream(self._process.stdin), memoryview(content), 0
        while at < len(view):
            at += stream.write(view[at:]) or 0

    def _frame(self, limit: int) -> tuple[bytes, Iterator[bytes]]:
        """The kind of an answer and its pieces; both empty if there is no answer."""
        stream = _stream(self._process.stdout)
        header = _read(stream, FRAME.size)
        if len(header) < FRAME.size:
            return b"", iter(())
        kind, size = FRAME.unpack(header)
        if size > limit:
            raise OutputTooLarge(size)
        return kind, _pieces(stream, size)


def _warn_once(said: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        logger.warning("%s did not start a compile worker: %s", _interpreter(), said)


_warned = False


class OutputTooLarge(Exception):
    """The result exceeds its size limit."""


def _pieces(stream: IO[bytes], size: int) -> Iterator[bytes]:
    while size:
        piece = stream.read(min(size, _PIECE))
        if not piece:
            return
        size -= len(piece)
        yield piece


def _read(stream: IO[bytes], size: int) -> bytes:
    return b"".join(_pieces(stream, size))


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # all three are pipes
    return stream


def _interpreter() -> str:
    return os.environ.get(VARIABLE) or sys.executable


def _command(setup: WorkerSetup) -> list[str]:
    if VARIABLE not in os.environ and (not sys.executable or getattr(sys, "frozen", False)):
        raise CompileUnavailable(
            "programs that guests made are compiled by a separate Python process, but "
            f"sys.executable is not an interpreter: set {VARIABLE} to one, or "
            f"{MODE_VARIABLE}=in-process, without limits"
        )
    values = (*setup.configuration, *setup.shape)
    return [
        _interpreter(), "-I", "-S", "-B", "-c", _BOOT,
        str(Path(_cffi_backend.__file__).parent),
        str(Path(compile_worker.__file__).parent),
        setup.library,
        *(f"{name}={int(value)}" for name, value in values),
    ]  # fmt: skip
