"""Loading programs as compiled modules, without blocking the sandbox.

Owns `ModuleLoader`: which module belongs to a program, and the wait for its compilation. Rules: the
sandbox's lock is not held during compilation, and only for one piece at a time while a file is
read. A process that waits for a module can be killed like any other, and a compilation that nobody
waits for any longer is cancelled. A sandbox hashes one module and compiles one module at a time,
each on one thread, which bounds its load on the host. Trusted modules (the image, `wasm_dir`) are
compiled in this process, and nobody's timeout counts that time (see `uncounted`); all others are
compiled by a worker within the sandbox's budget. A program belongs to one ABI, which its imports
determine.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Protocol

from wasmsand.abi.wasi.table import MODULE, UNSTABLE_MODULE
from wasmsand.engine.abilities import MemoryImage
from wasmsand.engine.compile_orders import (
    CompileCancellation,
    CompileCancelled,
    CompileOrder,
    CompileTooCostly,
    CompileUnavailable,
)
from wasmsand.engine.protocol import Engine, Instance, Module, ModuleRejected
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import GUEST_MODULE_BYTES_MAX, IO_CHUNK, MODULE_BYTES_MAX
from wasmsand.kernel.process.program import Program
from wasmsand.kernel.process.thread import Thread
from wasmsand.kernel.wait import WaitQueue, WouldBlock
from wasmsand.machine.bug_log import log_bug
from wasmsand.machine.compile_budget import BudgetSpent, CompileBudget, seconds_for
from wasmsand.machine.image_directory import program_name
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.module_source import ProgramRejected
from wasmsand.machine.uncounted import UncountedTime, announced

_LINUX = "linux"
_WASI = frozenset({MODULE, UNSTABLE_MODULE})


class Memories(Protocol):
    """The memory with which prepared programs start, by its hash."""

    def find(self, key: str) -> MemoryImage | None:
        """The newest memory, or None if its file has to be read first. Returns at once."""

    def load(self, key: str) -> MemoryImage:
        """The newest memory. May read a file. Raises `ModuleRejected` if that is damaged."""


class _Load:
    """The load of one program for one thread."""

    __slots__ = (
        "cancellation", "done", "ended", "error", "key", "module", "program", "thread",
    )  # fmt: skip

    def __init__(self, thread: Thread, program: Program) -> None:
        self.thread = thread
        self.program = program
        self.key = program.content_key
        self.cancellation = CompileCancellation()
        self.ended = WaitQueue()
        self.done = False
        self.module: Module | None = None
        self.error: BaseException | None = None


class _Stage:
    """A queue of loads and the thread that serves it, which ends when the queue is empty. Guarded
    by the sandbox's lock."""

    __slots__ = ("current", "has_thread", "waiting", "work")

    def __init__(self, work: Callable[[_Load], None]) -> None:
        self.work = work
        self.waiting: deque[_Load] = deque()
        self.current: _Load | None = None
        self.has_thread = False

    def next(self) -> _Load | None:
        """The next load whose thread is still alive, or None."""
        self.current = None
        while self.waiting and self.current is None:
            load = self.waiting.popleft()
            if not load.thread.dead:
                self.current = load
        return self.current


class ModuleLoader:
    """Loads the modules of one machine's programs."""

    def __init__(
        self,
        engine: Engine,
        lock: SandboxLock,
        memories: Memories,
        uncounted: UncountedTime,
    ) -> None:
        self.engine = engine
        self._uncounted = uncounted
        self._lock = lock
        self._memories = memories
        self._budget = CompileBudget()
        """Used only by the compiling thread."""
        # Guarded by the sandbox's lock:
        self._hashing = _Stage(self._hash)
        self._compiling = _Stage(self._compile)
        self._loads: dict[int, _Load] = {}
        """By tid."""

    def module(self, thread: Thread, program: Program) -> Module:
        """The module that `thread` is about to run. Needs the sandbox's lock.

        Raises `WouldBlock` until the module is compiled; raises `ProgramRejected`. A caller that
        does not retry must call `abandon`.
        """
        load = self._loads.get(thread.tid)
        if load is None:
            if program.content_key is not None:
                module = self._find(program, program.content_key)
                if module is not None and self._memory_is_ready(program):
                    return module
            load = self._begin(thread, program)
        if not load.done:
            raise WouldBlock((load.ended,), interruptible=False)
        del self._loads[thread.tid]
        if load.error is not None:
            raise load.error
        assert load.module is not None
        return load.module

    def abandon(self, thread: Thread) -> None:
        """The thread has ended, possibly while it waited for a module. Needs the sandbox's lock."""
        load = self._loads.pop(thread.tid, None)
        if load is not None and not load.done:
            self._cancel_unwanted()

    def cancel(self) -> None:
        """All processes were killed: cancel the current compilation."""
        current = self._compiling.current
        if current is not None:
            current.cancellation.cancel()

    def instantiate(self, program: Program, module: Module, memory_limit: int) -> Instance:
        """A new instance of the program's module, with the memory that it starts with. Raises as
        `protocol.Module` does."""
        if program.memory_key is None:
            return module.instantiate(memory_limit)
        image = self._memories.find(program.memory_key) or self._memories.load(program.memory_key)
        return self.engine.abilities.memory_images.instantiate(module, memory_limit, image)

    def shared_bytes(self, program: Program) -> int:
        """How much of the memory of a new instance is shared with others until it is written."""
        image = None if program.memory_key is None else self._memories.find(program.memory_key)
        return 0 if image is None else image.shared_bytes

    def _memory_is_ready(self, program: Program) -> bool:
        key = program.memory_key
        return key is None or self._memories.find(key) is not None

    def _find(self, program: Program, key: str) -> Module | None:
        """The module, if it is already compiled."""
        try:
            module = self.engine.find(key)
            if module is not None:
                require_one_abi(module)
            return module
        except ModuleRejected as error:
            raise ProgramRejected(program, str(error)) from error

    def _begin(self, thread: Thread, program: Program) -> _Load:
        most = MODULE_BYTES_MAX
        if not program.of_image and most > GUEST_MODULE_BYTES_MAX:
            most = GUEST_MODULE_BYTES_MAX
        if program.size > most:
            raise ProgramRejected(program, f"larger than {most} bytes")
        load = _Load(thread, program)
        self._enter(self._hashing if load.key is None else self._compiling, load)
        self._loads[thread.tid] = load
        return load

    def _enter(self, stage: _Stage, load: _Load) -> None:
        """Needs the lock."""
        if not stage.has_thread:
            try:
                self.engine.start_thread(partial(self._serve, stage))
            except RuntimeError as error:
                raise ProgramRejected(load.program, str(error), Errno.EAGAIN) from error
            stage.has_thread = True
        # Drop the loads of dead threads here, so that the queue stays short.
        stage.waiting = deque(other for other in stage.waiting if not other.thread.dead)
        stage.waiting.append(load)

    def _serve(self, stage: _Stage) -> None:
        """Runs on a thread of its own, without the lock."""
        while True:
            with self._lock:
                load = stage.next()
                if load is None:
                    stage.has_thread = False
                    return
            try:
                stage.work(load)
            except KernelError as failure:
                self._finish(load, None, failure)
            except Exception as failure:
                log_bug("host bug while %r was loaded", load.program.path)
                self._finish(load, None, KernelError(Errno.ENOEXEC, str(failure)))

    def _finish(self, load: _Load, module: Module | None, error: KernelError | None) -> None:
        with self._lock:
            load.module, load.error, load.done = module, error, True
            load.ended.wake()

    def _cancel_unwanted(self) -> None:
        """Cancel the current compilation if no living thread waits for it. Needs the lock."""
        current = self._compiling.current
        if current is None or not current.thread.dead:
            return
        for other in self._compiling.waiting:
            if other.key == current.key and not other.thread.dead:
                return
        current.cancellation.cancel()

    # The two stages.

    def _hash(self, load: _Load) -> None:
        program, digest = load.program, hashlib.sha256()
        for piece in self._pieces(load):
            digest.update(piece)
        key = digest.hexdigest()
        with self._lock:
            program.keep_key(key)
        load.key = key
        module = self._find(program, key)
        if module is not None:
            self._finish(load, module, None)
            return
        with self._lock:
            self._enter(self._compiling, load)

    def _compile(self, load: _Load) -> None:
        with self._uncounted.counting() if load.program.of_image else nullcontext():
            module = self._compiled(load)
            self._load_memory(load.program)
        self._finish(load, module, None)

    def _compiled(self, load: _Load) -> Module:
        assert load.key is not None
        module = self._find(load.program, load.key)
        if module is None:
            compiled = self._compile_here if load.program.of_image else self._compile_apart
            try:
                module = compiled(load, load.key)
                require_one_abi(module)
            except ModuleRejected as error:
                raise ProgramRejected(load.program, str(error)) from error
        return module

    def _load_memory(self, program: Program) -> None:
        """Have the memory ready with which the program starts: the first time, its file has to be
        read."""
        if program.memory_key is not None:
            try:
                self._memories.load(program.memory_key)
            except ModuleRejected as error:
                raise ProgramRejected(program, str(error)) from error

    def _compile_here(self, load: _Load, key: str) -> Module:
        def read() -> bytes:
            return b"".join(self._verified_pieces(load, key))

        if self.engine.comes_compiled(key):
            return self.engine.load(key, read)
        path = load.program.path.decode("utf-8", "replace")
        name = program_name(key) or path.rsplit("/", 1)[-1]
        with announced(name, load.program.size):
            return self.engine.load(key, read)

    def _compile_apart(self, load: _Load, key: str) -> Module:
        program, budget = load.program, self._budget
        try:
            limits = budget.limits(program.size)
        except BudgetSpent as spent:
            raise ProgramRejected(program, str(spent), Errno.EAGAIN) from None
        order = CompileOrder(
            key=key,
            size=program.size,
            pieces=lambda: self._verified_pieces(load, key),
            limits=limits,
            priority=budget.spent,
            cancellation=load.cancellation,
            limited_by_module=limits.cpu_seconds == seconds_for(program.size),
        )
        try:
            return self.engine.abilities.compile_workers.compile_apart(order)
        except CompileTooCostly as costly:
            if costly.of_time and not order.limited_by_module:
                reason = f"{costly}, the rest of this sandbox's compile budget"
                raise ProgramRejected(program, reason, Errno.EAGAIN) from None
            raise
        except CompileUnavailable as unavailable:
            raise ProgramRejected(program, str(unavailable), Errno.EAGAIN) from None
        except CompileCancelled:
            raise KernelError(Errno.EINTR) from None
        finally:
            if order.begun:
                budget.charge(order.cpu_seconds)

    def _pieces(self, load: _Load) -> Iterator[bytes]:
        """The program's content, one piece per hold of the lock."""
        program, at = load.program, 0
        while at < program.size:
            with self._lock:
                if load.thread.dead:
                    raise KernelError(Errno.EINTR)
                piece = program.read(at, min(IO_CHUNK, program.size - at))
            if not piece:
                raise ProgramRejected(program, "changed while it was loaded")
            yield piece
            at += len(piece)

    def _verified_pieces(self, load: _Load, key: str) -> Iterator[bytes]:
        """The same pieces. Raises `ProgramRejected` at the end if their hash is not `key`."""
        digest = hashlib.sha256()
        for piece in self._pieces(load):
            digest.update(piece)
            yield piece
        if digest.hexdigest() != key:
            raise ProgramRejected(load.program, "changed while it was loaded")


def require_one_abi(module: Module) -> None:
    """Raise `ModuleRejected` if a module imports from both ABIs, whose process models are
    incompatible."""
    namespaces = {namespace for namespace, _ in module.imports}
    if _LINUX in namespaces and namespaces & _WASI:
        raise ModuleRejected("imports from two ABIs, `linux` and WASI")
