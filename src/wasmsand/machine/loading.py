"""Programs to compiled modules, without holding up the sandbox.

Owns `ModuleLoader`: which module a program is, and the wait for its compilation. Rules: the
sandbox's lock is never held while a module is compiled; a process that waits for one can be
ended like any other; a sandbox compiles one module at a time, so that its programs cannot
take more of the host than that; a program belongs to one ABI, known by what it imports.
"""

from __future__ import annotations

import hashlib
from _thread import allocate_lock
from collections.abc import Callable
from functools import partial

from wasmsand.abi.wasi.table import MODULE, UNSTABLE_MODULE
from wasmsand.engine.protocol import Engine, Instance, MemoryImage, Module, ModuleRejected
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import MODULE_BYTES_MAX
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import Program
from wasmsand.kernel.wait import WaitQueue, WouldBlock
from wasmsand.machine.bug_log import log_bug
from wasmsand.machine.lock import SandboxLock

_LINUX = "linux"
_WASI = frozenset({MODULE, UNSTABLE_MODULE})


class ProgramRejected(KernelError):
    """A WebAssembly file is no program that can run here; the message names it and says why."""

    def __init__(self, program: Program, reason: str) -> None:
        path = program.path.decode("utf-8", "replace")
        super().__init__(Errno.ENOEXEC, f"{path}: {reason}")


class _Load:
    """One program on its way to a module, for one process."""

    __slots__ = ("done", "ended", "error", "module", "process", "program")

    def __init__(self, process: Process, program: Program) -> None:
        self.process = process
        self.program = program
        self.ended = WaitQueue()
        self.done = False
        self.module: Module | None = None
        self.error: BaseException | None = None


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
        # Held by the one that hashes, and by the one that compiles, so that no more than two
        # programs are in the host's memory. Taken before the sandbox's lock, never after.
        self._hashing = allocate_lock()
        self._compiling = allocate_lock()
        self._loads: dict[int, _Load] = {}
        """By thread; guarded by the sandbox's lock."""

    def module(self, process: Process, program: Program) -> Module:
        """The module that `process` is about to run; called under the sandbox's lock.

        Raises `WouldBlock` until it is compiled, and `ProgramRejected`.
        """
        load = self._loads.get(process.tid)
        if load is None:
            key = program.content_key
            if key is not None and self.engine.is_compiled(key):
                return _load(self.engine, key, program, None)
            load = self._begin(process, program)
        if not load.done:
            raise WouldBlock((load.ended,), interruptible=False)
        del self._loads[process.tid]
        if load.error is not None:
            raise load.error
        assert load.module is not None
        return load.module

    def instantiate(self, module: Module, memory_limit: int) -> Instance:
        """A fresh instance of a module, see `protocol.Module`, with what it is to begin with."""
        return module.instantiate(memory_limit, self._newest_image(module.key))

    def _begin(self, process: Process, program: Program) -> _Load:
        if program.size > MODULE_BYTES_MAX:
            raise ProgramRejected(program, f"larger than {MODULE_BYTES_MAX} bytes")
        for pid, other in list(self._loads.items()):
            if other.done and other.process.dead:  # died before it could take it
                del self._loads[pid]
        load = self._loads[process.tid] = _Load(process, program)
        self.engine.start_thread(partial(self._work, load))
        return load

    def _work(self, load: _Load) -> None:
        """On a thread of its own, without the lock."""
        module, error = None, None
        try:
            module = self._compiled(load)
        except KernelError as failure:
            error = failure
        except Exception as failure:
            log_bug("host bug while %r was loaded", load.program.path)
            error = KernelError(Errno.ENOEXEC, str(failure))
        with self._lock:
            load.module, load.error, load.done = module, error, True
            if load.process.dead:
                self._loads.pop(load.process.tid, None)
            load.ended.wake()

    def _compiled(self, load: _Load) -> Module:
        program = load.program
        key = program.content_key or self._hash(program)

        def read() -> bytes:
            with self._lock:
                content = program.read()
            if hashlib.sha256(content).hexdigest() != key:
                raise ProgramRejected(program, "was changed while it was loaded")
            return content

        if self.engine.is_compiled(key):
            return _load(self.engine, key, program, read)
        with self._compiling:
            if load.process.dead:  # nobody waits for it any more
                raise KernelError(Errno.EINTR)
            return _load(self.engine, key, program, read)

    def _hash(self, program: Program) -> str:
        with self._hashing:
            with self._lock:
                content = program.read()
            key = hashlib.sha256(content).hexdigest()
        with self._lock:
            program.keep_key(key)
        return key


def _load(engine: Engine, key: str, program: Program, read: Callable[[], bytes] | None) -> Module:
    try:
        module = engine.load(key, read or program.read, transient=not program.of_image)
        require_one_abi(module)
    except ModuleRejected as error:
        raise ProgramRejected(program, str(error)) from error
    return module


def require_one_abi(module: Module) -> None:
    """Raise `ModuleRejected` if a module would be a program of both ABIs, whose ideas of a
    process do not go together."""
    namespaces = {namespace for namespace, _ in module.imports}
    if _LINUX in namespaces and namespaces & _WASI:
        raise ModuleRejected("imports functions of two ABIs, `linux` and WASI")
