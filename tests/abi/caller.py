"""System calls made by a test instead of by a WebAssembly program.

`Caller` is the machine's own driver, dispatcher and guest (waiting, signals, vfork), over the real
kernel and the real table of calls. Only the engine below is Python: `PythonInstance` is a memory
that a test fills and reads. So a test can make one call, look at the result, and continue. A call
that blocks runs on a thread of its own (`Caller.begin`).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from tests.waiting import wait_until
from wasmsand.abi.context import ProcessEnded
from wasmsand.abi.linux.table import SYSTEM_CALLS
from wasmsand.abi.memory import GuestMemory
from wasmsand.engine.abilities import Abilities, CompileHere
from wasmsand.engine.protocol import (
    BEGINNING,
    HostCalls,
    HostFunction,
    Instance,
    ModuleRejected,
    Start,
)
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.life import fork
from wasmsand.kernel.process.memory import MemoryAccount
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.thread import ProcessState
from wasmsand.kernel.process.timers import fire_timers
from wasmsand.kernel.vfs import ROOT, ImageBuilder, TreeFs, standard_tree
from wasmsand.machine.guest import Execute, Guest
from wasmsand.machine.loading import ModuleLoader
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.renewal import PreparedMemories
from wasmsand.machine.thread_driver import ThreadDriver
from wasmsand.machine.uncounted import UncountedTime

PATIENCE = 20.0
MEMORY = 1 << 20
_FLAG = 64
"""Address of the guest's __signal_flag."""
_HEAP = 4096
"""Arguments are stored from here on."""
WASM = b"\0asm\1\0\0\0"
_KEY = hashlib.sha256(WASM).hexdigest()
NUMBERS = {call.name: call.number for call in SYSTEM_CALLS}
AT_FDCWD = -100

calls_made: set[str] = set()
"""The names of the calls made since the last `clear`: what a test really covers."""


class CallArguments(NamedTuple):
    """Arguments of a call."""

    a: int
    b: int
    c: int
    d: int
    e: int
    f: int


class PythonInstance:
    """An `Instance` whose program is the test."""

    def __init__(self, size: int = MEMORY) -> None:
        self.space = bytearray(size)
        self.closed = False

    def bind(self, calls: HostCalls) -> None:
        pass

    def run(self) -> None:
        """A program started by exec does nothing, and so ends at once."""

    def memory_view(self) -> memoryview | None:
        return memoryview(self.space)

    def memory_size(self) -> int:
        return len(self.space)

    def read(self, address: int, count: int) -> bytes:
        return bytes(self._require(address, count)[address : address + count])

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self._require(address, len(data))[address : address + len(data)] = data

    def _require(self, address: int, count: int) -> bytearray:
        if not 0 <= address <= address + count <= len(self.space):
            raise IndexError(f"{count} bytes at {address}")
        return self.space

    def exported_address(self, name: str) -> int | None:
        return _FLAG if name == "__signal_flag" else None

    def exports_procedure(self, name: str) -> bool:
        return name == "__signal_run"

    def exported_variables(self) -> dict[str, int]:
        return {}

    def call(self, name: str) -> None:
        raise AssertionError("a test computes nothing, so it is never interrupted")

    def call_after_trap(self, name: str) -> None:
        raise AssertionError("a test never traps")

    def close(self) -> None:
        self.closed = True


class CopyingInstance(PythonInstance):
    """The same, but its memory can only be copied, as in a browser."""

    def memory_view(self) -> None:
        return None


class PythonThreads:
    """Threads in one memory, whose programs are tests."""

    def new_thread(self, program: Instance, stack_pointer: int, argument: int) -> PythonInstance:
        assert isinstance(program, PythonInstance)
        thread = type(program)(0)
        thread.space = program.space
        return thread

    def catch_up(self, thread: Instance) -> None:
        pass


class PythonModule:
    """A `Module` of any content."""

    key = ""
    imports: tuple[tuple[str, str], ...] = ()

    def __init__(self, kind: type[PythonInstance]) -> None:
        self._kind = kind

    def instantiate(self, memory_limit: int, *, start: Start = BEGINNING) -> PythonInstance:
        return self._kind()


class PythonEngine:
    """An `Engine` that runs nothing; it refuses modules that are more than the magic."""

    def __init__(
        self, kind: type[PythonInstance] = PythonInstance, *, threads: bool = True
    ) -> None:
        self._kind = kind
        compiler = CompileHere(self.load)
        self.abilities = (
            Abilities(compiler, program_threads=PythonThreads()) if threads else Abilities(compiler)
        )

    def offer(self, functions: Sequence[HostFunction]) -> None:
        pass

    def load(self, key: str, read: Callable[[], bytes]) -> PythonModule:
        if read() != WASM:
            raise ModuleRejected("not a module that tests use")
        return PythonModule(self._kind)

    def find(self, key: str) -> PythonModule | None:
        return self.load(key, lambda: WASM) if key == _KEY else None

    def is_compiled(self, key: str) -> bool:
        return True

    def keep_compiled(self, key: str) -> None:
        pass

    def comes_compiled(self, key: str) -> bool:
        return False

    def why_not_compiled(self) -> tuple[str, ...]:
        return ()

    def unload(self, key: str) -> None:
        pass

    def start_thread(self, target: Callable[[], None]) -> None:
        threading.Thread(target=target, daemon=True).start()

    def guest_resumed(self) -> None:
        pass

    def interrupt(self) -> None:
        pass


class Sandbox:
    """A kernel and its lock, with processes whose programs are tests."""

    def __init__(
        self,
        limits: Limits | None = None,
        kind: type[PythonInstance] = PythonInstance,
        *,
        threads: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self._kind = kind
        builder = ImageBuilder()
        standard_tree(builder)
        builder.add_file(b"/usr/bin/prog", WASM, 0o755)
        clock = clock or Clock()
        self.kernel = Kernel(TreeFs(builder.build(), self.limits, clock.realtime), self.limits,
                             clock=clock)  # fmt: skip
        self.lock = SandboxLock()
        engine = PythonEngine(kind, threads=threads)
        uncounted = UncountedTime(clock)
        self.loader = ModuleLoader(engine, self.lock, PreparedMemories(engine), uncounted)

    def process(self, uid: int = 1000, argv: tuple[bytes, ...] = (b"test",)) -> Caller:
        """A process in /tmp, as the host starts one."""
        namespace = self.kernel.namespace
        home = namespace.resolve(ROOT, namespace.root, b"/tmp")
        identity = Identity.of(uid, uid, frozenset({uid}))
        process = self.kernel.new_process(identity, home, (b"HOME=/tmp",))
        process.argv = argv
        return Caller(self.kernel, self.lock, self.loader, process, self._kind())

    def fire_timers(self) -> None:
        with self.lock:
            fire_timers(self.kernel)


class Pending:
    """A call that runs on a thread of its own."""

    def __init__(self, caller: Caller, name: str, arguments: tuple[int | bytes, ...]) -> None:
        self._caller = caller
        self._results: list[int | BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(name, arguments), daemon=True)
        self._thread.start()

    def _run(self, name: str, arguments: tuple[int | bytes, ...]) -> None:
        try:
            self._results.append(self._caller.call(name, *arguments))
        except BaseException as error:
            self._results.append(error)

    def is_blocked(self) -> bool:
        """Wait until the caller sleeps; false if the call ended instead."""
        return self._comes_to(lambda: self._caller.process.state is ProcessState.SLEEPING)

    def is_stopped(self) -> bool:
        """Wait until the caller is stopped; false if the call ended instead."""
        return self._comes_to(lambda: self._caller.process.stopped)

    def _comes_to(self, state: Callable[[], bool]) -> bool:
        wait_until(
            lambda: self._results or state(), "the call neither blocks nor ends", pause=0.0005
        )
        return not self._results

    def ended(self, within: float = 0.0) -> bool:
        self._thread.join(within)
        return not self._thread.is_alive()

    def result(self) -> int:
        """What the call returned."""
        self._thread.join(PATIENCE)
        assert self._results, "the call did not end"
        result = self._results[0]
        if isinstance(result, BaseException):
            raise result
        return result


class Caller:
    """One process, whose calls a test makes through a driver of its own."""

    def __init__(
        self,
        kernel: Kernel,
        lock: SandboxLock,
        loader: ModuleLoader,
        process: Process,
        instance: PythonInstance,
    ) -> None:
        process.memory = MemoryAccount(kernel.ledger, len(instance.space), 0)
        thread = process.first_thread
        guest = Guest(kernel, loader, thread, instance, process.memory)
        self.driver = ThreadDriver(lock, guest)
        self.guest = guest
        self.kernel = kernel
        self.lock = lock
        self._loader = loader
        self._next = _HEAP

    @property
    def process(self) -> Process:
        """The process on which its calls act now."""
        return self.driver.process

    @property
    def memory(self) -> GuestMemory:
        """What handlers read and write."""
        return self.guest.memory

    @property
    def _python(self) -> PythonInstance:
        instance = self.guest.instance
        assert isinstance(instance, PythonInstance)
        return instance

    @property
    def space(self) -> bytearray:
        """The guest's memory."""
        return self._python.space

    # Memory.

    def room(self, size: int, fill: int = 0) -> int:
        """The address of `size` fresh bytes."""
        address = self._next
        self._next += (size + 15) & ~7
        if self._next > len(self.space):
            self._next = _HEAP
            return self.room(size, fill)
        self.space[address : address + size] = bytes([fill]) * size
        return address

    def put(self, data: bytes) -> int:
        """The address of a copy of `data`."""
        address = self.room(len(data))
        self.space[address : address + len(data)] = data
        return address

    def string(self, text: bytes) -> int:
        """The address of a NUL-terminated string."""
        return self.put(text + b"\0")

    def pack(self, layout: str, *values: Any) -> int:
        """The address of a struct."""
        return self.put(Struct("<" + layout).pack(*values))

    def unpack(self, layout: str, address: int) -> tuple[Any, ...]:
        return Struct("<" + layout).unpack_from(self.space, address)

    def get(self, address: int, size: int) -> bytes:
        return bytes(self.space[address : address + size])

    def strings(self, *texts: bytes) -> int:
        """A NULL-terminated array of strings, as execve takes."""
        return self.pack(f"{len(texts) + 1}I", *(self.string(t) for t in texts), 0)

    def vectors(self, *places: tuple[int, int]) -> int:
        """An array of iovec."""
        return self.pack(f"{2 * len(places)}I", *(word for place in places for word in place))

    # Calls.

    def call(self, name: str, *arguments: int | bytes) -> int:
        """The raw result: a count or minus errno. Bytes are passed as C strings."""
        calls_made.add(name)
        words = [(self.string(a) if isinstance(a, bytes) else a) & 0xFFFF_FFFF for a in arguments]
        words += [0] * (6 - len(words))
        try:
            return self.driver.syscall(NUMBERS[name], CallArguments(*words))
        except Execute as change:
            self.guest.instance.close()
            self.driver.load(change)
            self._next = _HEAP
            return 0
        finally:
            self.lock.wake_postponed()  # a program would compute, and tick

    def ok(self, name: str, *arguments: int | bytes) -> int:
        """The result of a call that must succeed."""
        result = self.call(name, *arguments)
        assert result >= 0, f"{name}: {Errno(-result).name}"
        return result

    def errno(self, name: str, *arguments: int | bytes) -> Errno:
        """The error of a call that must fail."""
        result = self.call(name, *arguments)
        assert result < 0, f"{name} succeeded with {result}"
        return Errno(-result)

    def begin(self, name: str, *arguments: int | bytes) -> Pending:
        """Make a call that may block."""
        return Pending(self, name, arguments)

    def exit(self, code: int = 0) -> None:
        """Call exit_group, and do what the thread would do afterwards."""
        try:
            self.call("exit_group", code)
        except ProcessEnded:
            self.guest.instance.close()

    def fork(self) -> Caller:
        """Fork as the `fork` import does; Python copies the memory."""
        instance = type(self._python)(len(self.space))
        instance.space[:] = self.space
        with self.lock:
            child = fork(self.kernel, self.guest.thread)
        caller = Caller(self.kernel, self.lock, self._loader, child, instance)
        caller._next = self._next
        return caller

    # Shortcuts for most tests.

    def open(self, path: bytes, flags: int, mode: int = 0o644) -> int:
        return self.ok("openat", AT_FDCWD, path, flags, mode)

    def pipe(self, flags: int = 0) -> tuple[int, int]:
        address = self.room(8)
        self.ok("pipe2", address, flags)
        read_fd, write_fd = self.unpack("II", address)
        return read_fd, write_fd

    def write(self, fd: int, data: bytes) -> int:
        return self.ok("write", fd, self.put(data), len(data))

    def read(self, fd: int, count: int = 4096) -> bytes:
        address = self.room(count)
        return self.get(address, self.ok("read", fd, address, count))

    def make_file(self, path: bytes, content: bytes = b"", mode: int = 0o644) -> bytes:
        """Make a file; returns its path."""
        fd = self.open(path, 0o101 | 0o1000, mode)
        self.write(fd, content)
        self.ok("close", fd)
        return path

    def content(self, path: bytes) -> bytes:
        fd = self.open(path, 0)
        data = self.read(fd, 65536)
        self.ok("close", fd)
        return data

    def handle(self, signo: int, handler: int = 77, flags: int = 0, mask: int = 0) -> None:
        action = self.pack("IIIQ", handler, flags, 0, mask)
        self.ok("rt_sigaction", signo, action, 0, 8)

    def take_signal(self) -> tuple[int, int]:
        """(number, mask to restore) of the next signal for a handler, (0, 0) if none."""
        address = self.room(152)
        signo = self.ok("signal_take", address)
        return signo, (self.unpack("Q", address + 16)[0] if signo else 0)

    @property
    def signal_flag(self) -> int:
        flag: int = self.unpack("I", _FLAG)[0]
        return flag
