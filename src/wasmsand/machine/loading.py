"""Programs to compiled modules, without holding up the sandbox.

Owns `ModuleLoader`: which module a program is, and the wait for its compilation. Rules: the
sandbox's lock is never held while a module is compiled, and for one piece of it at a time while
it is read; a process that waits for one can be ended like any other, and a compilation that
nobody waits for any more is ended with it; a sandbox hashes and compiles one module at a time,
on one thread each, so that its programs cannot take more of the host than that; what the host
trusts (the image, `wasm_dir`) is compiled in this process, everything else by a worker, within
the sandbox's budget; a program belongs to one ABI, known by what it imports.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

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
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.module_source import ProgramRejected

_LINUX = "linux"
_WASI = frozenset({MODULE, UNSTABLE_MODULE})


class _Load:
    """One program on its way to a module, for one thread."""

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
    """Loads that wait for one thread, which serves one after another and then ends. Guarded by
    the sandbox's lock."""

    __slots__ = ("current", "has_thread", "waiting", "work")

    def __init__(self, work: Callable[[_Load], None]) -> None:
        self.work = work
        self.waiting: deque[_Load] = deque()
        self.current: _Load | None = None
        self.has_thread = False

    def next(self) -> _Load | None:
        """The next load, unless its process is gone."""
        self.current = None
        while self.waiting and self.current is None:
            load = self.waiting.popleft()
            if not load.thread.dead:
                self.current = load
        return self.current


class ModuleLoader:
    """The modules of one machine's programs."""

    def __init__(
        self,
        engine: Engine,
        lock: SandboxLock,
        newest_image: Callable[[str], MemoryImage | None] = lambda key: None,
    ) -> None:
        """`newest_image` says what instances of the module with a key begin with, if not with
        its own data."""
        self.engine = engine
        self._lock = lock
        self._newest_image = newest_image
        self._budget = CompileBudget()
        """Used by the thread that compiles."""
        # Guarded by the sandbox's lock:
        self._hashing = _Stage(self._hash)
        self._compiling = _Stage(self._compile)
        self._loads: dict[int, _Load] = {}
        """By thread."""

    def module(self, thread: Thread, program: Program) -> Module:
        """The module that `thread` is about to run; called under the sandbox's lock.

        Raises `WouldBlock` until it is compiled, and `ProgramRejected`. Who does not come back
        calls `abandon`.
        """
        load = self._loads.get(thread.tid)
        if load is None:
            if program.content_key is not None:
                module = self._find(program, program.content_key)
                if module is not None:
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
        """The thread has ended, perhaps while it waited; called under the sandbox's lock."""
        load = self._loads.pop(thread.tid, None)
        if load is not None and not load.done:
            self._cancel_unwanted()

    def cancel(self) -> None:
        """All processes have been ended: so is the compilation under way."""
        current = self._compiling.current
        if current is not None:
            current.cancellation.cancel()

    def instantiate(self, module: Module, memory_limit: int) -> Instance:
        """A fresh instance of a module, which begins with its newest image, if it has one. Raises
        as `protocol.Module`."""
        image = self._newest_image(module.key)
        if image is None:
            return module.instantiate(memory_limit)
        return self.engine.abilities.memory_images.instantiate(module, memory_limit, image)

    def _find(self, program: Program, key: str) -> Module | None:
        """The module, if it need not be compiled."""
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
        """Under the lock."""
        if not stage.has_thread:
            try:
                self.engine.start_thread(partial(self._serve, stage))
            except RuntimeError as error:
                raise ProgramRejected(load.program, str(error), Errno.EAGAIN) from error
            stage.has_thread = True
        # Entries of dead processes go when others come, so that there are never many.
        stage.waiting = deque(other for other in stage.waiting if not other.thread.dead)
        stage.waiting.append(load)

    def _serve(self, stage: _Stage) -> None:
        """On a thread of its own, without the lock."""
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
        """End the compilation under way if nobody waits for it; under the lock."""
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
        assert load.key is not None
        module = self._find(load.program, load.key)
        if module is None:
            compiled = self._compile_here if load.program.of_image else self._compile_apart
            try:
                module = compiled(load, load.key)
                require_one_abi(module)
            except ModuleRejected as error:
                raise ProgramRejected(load.program, str(error)) from error
        self._finish(load, module, None)

    def _compile_here(self, load: _Load, key: str) -> Module:
        return self.engine.load(key, lambda: b"".join(self._verified_pieces(load, key)))

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
                reason = f"{costly}, all that this sandbox has left for compiling"
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
        """The program's content, a piece at a time under the lock."""
        program, at = load.program, 0
        while at < program.size:
            with self._lock:
                if load.thread.dead:
                    raise KernelError(Errno.EINTR)
                piece = program.read(at, min(IO_CHUNK, program.size - at))
            if not piece:
                raise ProgramRejected(program, "was changed while it was loaded")
            yield piece
            at += len(piece)

    def _verified_pieces(self, load: _Load, key: str) -> Iterator[bytes]:
        """The same; raises `ProgramRejected` at the end if they are not what has this key."""
        digest = hashlib.sha256()
        for piece in self._pieces(load):
            digest.update(piece)
            yield piece
        if digest.hexdigest() != key:
            raise ProgramRejected(load.program, "was changed while it was loaded")


def require_one_abi(module: Module) -> None:
    """Raise `ModuleRejected` if a module would be a program of both ABIs, whose ideas of a
    process do not go together."""
    namespaces = {namespace for namespace, _ in module.imports}
    if _LINUX in namespaces and namespaces & _WASI:
        raise ModuleRejected("imports functions of two ABIs, `linux` and WASI")
