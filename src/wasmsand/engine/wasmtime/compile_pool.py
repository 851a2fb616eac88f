"""The host's side of compile workers.

Owns the worker processes of this host process and who gets one. Rules: there are never more
than `workers` compilations at a time, and one more of a small module; who has used least goes
first, and a sandbox waits for one module at a time, so that none can keep the others waiting
for long; a worker that failed or was ended is not used again; one that did well is kept for a
moment, since programs come in groups. A worker inherits no file and no environment.
"""

from __future__ import annotations

import contextlib
import itertools
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

from wasmsand.engine.protocol import CompileCancelled, CompileOrder, CompileUnavailable
from wasmsand.engine.wasmtime import compile_worker
from wasmsand.engine.wasmtime.compile_worker import FRAME, ORDER, REPORT

logger = logging.getLogger("wasmsand.engine")

VARIABLE = "WASMSAND_PYTHON"
"""Of the host's environment: the interpreter of workers, where sys.executable is none."""
MODE_VARIABLE = "WASMSAND_COMPILE"
"""Likewise: `in-process` does without workers, and so without limits of time and memory. For
hosts that cannot start processes, and trust what runs in their sandboxes."""
IDLE_SECONDS = 5.0
_START_SECONDS = 60.0
_END_SECONDS = 5.0
_PIECE = 1 << 20
_SHOWN_BYTES = 2000
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""Variables without which an interpreter may not find its own libraries."""
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
    """What a worker is started with; another set-up needs another worker."""

    library: str
    configuration: tuple[tuple[str, int], ...]
    shape: tuple[tuple[str, int], ...]
    probe: bytes
    """An empty module, as the worker must compile it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a compilation ended."""

    rejection: str | None
    """Why the module was refused."""
    code: int
    """0, or what ended it: minus the number of a signal."""
    cpu_seconds: float


class Worker:
    """One worker process; used by one thread at a time, ended by any."""

    def __init__(self, setup: WorkerSetup, order: CompileOrder) -> None:
        """Start it; raises `CompileUnavailable`, `CompileCancelled`."""
        self.setup = setup
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
            raise CompileUnavailable(f"no process to compile in: {error}") from None
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
                f"{_interpreter()} started no compile worker: set {VARIABLE} to a Python "
                f"{sys.version_info.major}.{sys.version_info.minor} that has cffi"
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, order: CompileOrder, sink: Callable[[bytes], None]) -> Outcome:
        """Compile, and give the result to `sink` piece by piece.

        Raises `CompileCancelled`, and what reading the module or `sink` raise. After those, and
        after an outcome that has a code, the worker is to be ended.
        """
        started = time.monotonic()
        limits, rejection = order.limits, b""
        patience = 60 + 10 * limits.cpu_seconds
        header = ORDER.pack(order.size, limits.cpu_seconds, limits.memory_bytes, patience)
        with order.cancellation.calling(self.cancel):
            with contextlib.suppress(BrokenPipeError):  # it is gone; its report says why
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
        """End a compilation under way, and the worker with it. Never waits."""
        self._process.terminate()

    def end(self) -> None:
        """End the worker and wait until it is gone. It ends its compilation before."""
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
        """The kind of an answer and its pieces; no kind, and no pieces, if there is none."""
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
        logger.warning("%s started no compile worker: %s", _interpreter(), said)


_warned = False


class OutputTooLarge(Exception):
    """The result has more bytes than it may have."""


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
    assert stream is not None  # all are pipes
    return stream


def _interpreter() -> str:
    return os.environ.get(VARIABLE) or sys.executable


def _command(setup: WorkerSetup) -> list[str]:
    if VARIABLE not in os.environ and (not sys.executable or getattr(sys, "frozen", False)):
        raise CompileUnavailable(
            "programs that guests made are compiled by a Python process of their own, and here "
            f"sys.executable is not one: set {VARIABLE} to an interpreter, or "
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


class _Ticket:
    """Somebody who waits for a worker."""

    def __init__(self, order: CompileOrder, number: int) -> None:
        self.order = order
        self.rank = (order.priority, number)
        self.called = threading.Event()
        self.admitted = False
        self.beside = False
        """Whether it has the place that only small modules get."""


class CompilePool:
    """The workers of a host process."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._waiting: list[_Ticket] = []
        self._running = 0
        self._beside = False
        self.idle: list[tuple[float, Worker]] = []
        self._ending_idle = False

    def run(
        self, setup: WorkerSetup, order: CompileOrder, sink: Callable[[bytes], None]
    ) -> Outcome:
        """See `Worker.run`; raises `CompileUnavailable` too. Called while `admitted`."""
        order.begun = True
        worker = self._take_idle(setup) or Worker(setup, order)
        try:
            outcome = worker.run(order, sink)
        except BaseException:
            worker.end()
            raise
        if outcome.code:
            worker.end()
        else:
            self._keep(worker)
        return outcome

    @contextlib.contextmanager
    def admitted(self, order: CompileOrder) -> Iterator[None]:
        """Wait for permission to compile, which lasts for this block; raises
        `CompileUnavailable`, `CompileCancelled`."""
        ticket = _Ticket(order, next(self._numbers))
        with self._lock:
            if len(self._waiting) >= order.limits.queue:
                raise CompileUnavailable(f"{len(self._waiting)} programs wait to be compiled")
            self._waiting.append(ticket)
            self._admit()
        try:
            with order.cancellation.calling(ticket.called.set):
                ticket.called.wait()
                if order.cancellation.cancelled:
                    raise CompileCancelled
            yield
        finally:
            with self._lock:
                if not ticket.admitted:
                    self._waiting.remove(ticket)
                elif ticket.beside:
                    self._beside = False
                else:
                    self._running -= 1
                self._admit()

    def _admit(self) -> None:
        for ticket in sorted(self._waiting, key=lambda waiting: waiting.rank):
            if self._running < self._workers:
                self._running += 1
            elif ticket.order.limits.small and not self._beside:
                self._beside = ticket.beside = True
            else:
                continue
            ticket.admitted = True
            self._waiting.remove(ticket)
            ticket.called.set()

    def _take_idle(self, setup: WorkerSetup) -> Worker | None:
        with self._lock:
            for entry in reversed(self.idle):
                if entry[1].setup == setup:
                    self.idle.remove(entry)
                    return entry[1]
        return None

    def _keep(self, worker: Worker) -> None:
        with self._lock:
            self.idle.append((time.monotonic() + IDLE_SECONDS, worker))
            if self._ending_idle:
                return
            self._ending_idle = True
        try:
            threading.Thread(target=self._end_idle, name="wasmsand-workers", daemon=True).start()
        except RuntimeError:  # the host has no thread left
            with self._lock:
                self._ending_idle = False
                idle, self.idle = self.idle, []
            for _, each in idle:
                each.end()

    def _end_idle(self) -> None:
        while True:
            with self._lock:
                now = time.monotonic()
                over = [entry for entry in self.idle if entry[0] <= now]
                self.idle = [entry for entry in self.idle if entry[0] > now]
                next_time = min((entry[0] for entry in self.idle), default=None)
                if next_time is None and not over:
                    self._ending_idle = False
                    return
            for _, worker in over:
                worker.end()
            if next_time is not None:
                time.sleep(max(0.0, next_time - now))

    def end_idle_now(self) -> None:
        """End the workers that wait for an order."""
        with self._lock:
            idle, self.idle = self.idle, []
        for _, worker in idle:
            worker.end()

    def waiting(self) -> int:
        """How many wait for a worker."""
        with self._lock:
            return len(self._waiting)


def _new_pool() -> CompilePool:
    if hasattr(os, "sched_getaffinity"):
        processors = len(os.sched_getaffinity(0))
    else:
        processors = os.cpu_count() or 1
    return CompilePool(max(1, processors - 1))


def shared_pool() -> CompilePool:
    """The pool of this host process."""
    return _pool


def _forget_pool() -> None:
    # Workers belong to the process that started them. Nothing is waited for here.
    global _pool
    for _, worker in _pool.idle:
        worker.close_streams()
    _abandoned.append(_pool)
    _pool = _new_pool()


_abandoned: list[CompilePool] = []
_pool = _new_pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
