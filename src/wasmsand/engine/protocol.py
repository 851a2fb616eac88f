"""What the rest of wasmsand knows of WebAssembly.

Owns the protocol between the machine and an engine driver. Rules: nothing here
imports a WebAssembly runtime; an engine never looks inside guest data, and never
calls the kernel except through `HostCalls`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from typing import Any, Protocol


class TrapKind(Enum):
    """Why a guest stopped by its own fault."""

    MEMORY = "out of bounds memory access"
    STACK = "stack overflow"
    INDIRECT_CALL = "bad indirect call"
    ARITHMETIC = "integer division by zero or overflow"
    UNREACHABLE = "unreachable"
    UNCAUGHT_EXCEPTION = "uncaught WebAssembly exception"
    OTHER = "trap"


class GuestTrap(Exception):
    """A guest broke a rule of WebAssembly. Its instance cannot go on: what was on its stack is
    lost, though not its memory (see `Instance.call_after_trap`)."""

    def __init__(self, kind: TrapKind, message: str = "") -> None:
        super().__init__(message or kind.value)
        self.kind = kind


class ModuleRejected(Exception):
    """The bytes are not a module this engine can run; the message says why."""


class NeedsMemory(ModuleRejected):
    """The module needs more memory to start than it may have; the message says how much."""


class CompileTooCostly(ModuleRejected):
    """Compiling took more than its limits; the message says of what."""

    def __init__(self, message: str, *, of_time: bool) -> None:
        super().__init__(message)
        self.of_time = of_time


class CompileUnavailable(Exception):
    """The host cannot compile this now, which is not the module's fault; says why."""


class CompileCancelled(Exception):
    """Nobody wants the module any more."""


class Cancellation:
    """Ends a compilation from another thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._callbacks: list[Callable[[], None]] = []
        self.cancelled = False

    def cancel(self) -> None:
        """End it; idempotent. Never waits."""
        with self._lock:
            self.cancelled = True
            for callback in self._callbacks:
                callback()

    @contextmanager
    def calling(self, callback: Callable[[], None]) -> Iterator[None]:
        """Have `callback` called when it is cancelled, in this block only. It must not wait."""
        with self._lock:
            if self.cancelled:
                raise CompileCancelled
            self._callbacks.append(callback)
        try:
            yield
        finally:
            with self._lock:
                self._callbacks.remove(callback)


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """What a compilation may cost."""

    cpu_seconds: int
    memory_bytes: int
    output_bytes: int
    shape: Mapping[str, int]
    """What the module may hold; names as in `kernel/limits.py`."""
    small: bool
    """Whether it is done soon, so that it need not wait for larger ones."""
    queue: int
    """How many others may wait at the same time."""


@dataclass(slots=True)
class CompileOrder:
    """A module that a guest made, to be compiled apart from the host process."""

    key: str
    size: int
    pieces: Callable[[], Iterable[bytes]]
    """Reads the module; what that raises ends the compilation."""
    limits: CompileLimits
    priority: float
    """Of those who wait, the one with the least goes first."""
    cancellation: Cancellation
    limited_by_module: bool = True
    """Whether a module that takes more than `limits` is refused for that from now on."""
    begun: bool = False
    """Whether it was compiled, or tried to; set by the engine."""
    cpu_seconds: float = 0.0
    """Processor time that this took; set by the engine."""


class GuestUnwind(Exception):
    """Base of exceptions by which a host call leaves a guest (exit, exec, kill).

    `Instance.run` raises the very object that the host call raised.
    """


@dataclass(frozen=True, slots=True)
class HostFunction:
    """One function that guests can import, beside the system call of the Linux ABI.

    `parameters` and `results` have a letter for each value, `i` for i32 and `I` for i64;
    there is at most one result, an i32.
    """

    module: str
    name: str
    parameters: str
    results: str
    handler: Callable[..., Any]
    """Given to `HostCalls.invoke` with each call of this function; the engine never calls it."""


class Arguments(Protocol):
    """The six arguments of a system call, unsigned 32-bit, for as long as it lasts. Each is
    fetched when it is asked for, because most calls have fewer."""

    @property
    def a(self) -> int: ...
    @property
    def b(self) -> int: ...
    @property
    def c(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def e(self) -> int: ...
    @property
    def f(self) -> int: ...


class HostCalls(Protocol):
    """What one guest process can call. Each runs on the guest's own thread.

    A method may raise a `GuestUnwind`; any other exception is a host bug, is
    raised by `Instance.run` as it is, and never reaches the guest.
    """

    def syscall(self, nr: int, arguments: Arguments) -> int:
        """One system call; the result is a signed 32-bit number."""

    def invoke(self, handler: Callable[..., Any], *arguments: int) -> int:
        """One call of the `HostFunction` that has this handler; arguments are unsigned, the
        result is a signed 32-bit number."""

    def fork_allowed(self) -> int:
        """Before any work for a fork: 0, or minus errno to refuse it."""

    def fork_child(self, child: Instance) -> int:
        """`child` is a copy of the caller: adopt it and start it on a thread of
        its own by `child.run()`; return its pid, or close it and return minus errno.
        """

    def fork_failed(self) -> None:
        """After `fork_allowed`: there is no copy, since the host has no room for it."""

    def tick(self) -> None:
        """Called about every `Engine.tick_seconds` while the guest computes."""


class Instance(Protocol):
    """One program in memory, used by one thread at a time."""

    def run(self) -> None:
        """Run `_start` (or go on after a fork) until it returns, on a thread that
        `Engine.start_thread` started.

        Raises `GuestTrap`, what a host call raised, or another `GuestUnwind` when the
        engine itself ends its guests (the host process exits).
        """

    def bind(self, calls: HostCalls) -> None:
        """Set whose calls these are; needed before `run`."""

    def memory(self) -> memoryview:
        """The guest's memory as it is now, writable. It never shrinks or moves, so
        an older view stays valid, only shorter."""

    def memory_size(self) -> int:
        """Bytes of linear memory."""

    def stack_reserve(self) -> int:
        """Bytes at the low end of memory that are the C stack, mostly never touched: the
        first value of `__stack_pointer`."""

    def limit_memory(self, limit: int) -> None:
        """The memory cannot grow past `limit` bytes from now on. Called while the guest is in
        a host call, or does not run."""

    def held_bytes(self) -> int:
        """What it holds of the host's memory beside its linear memory: tables, exceptions,
        globals."""

    def stacks_in_use(self, c_stack: int) -> tuple[int, int]:
        """How many bytes take room of the lowest `c_stack` bytes of the memory, and, beyond
        what every thread has, of the stack of the thread that runs it. Asking takes 5 us. A
        system that cannot tell gives 0."""

    def new_thread(self, stack_pointer: int, argument: int) -> Instance:
        """Another thread of this program, in the same memory: its `run` calls the exported
        `__thread_start(argument)` with this stack pointer. Only one of a program's instances
        may run or be called at a time; the first one's memory stays until all are closed.

        Raises `ModuleRejected` if the program has no threads, `MemoryError` when the host has
        no room.
        """

    def catch_up(self) -> None:
        """Needed before a thread goes on after others of the program have run: see the memory
        as large as they left it."""

    def exported_address(self, name: str) -> int | None:
        """The value of an exported immutable i32 global (a C variable's address)."""

    def exports_procedure(self, name: str) -> bool:
        """Whether there is an exported function `() -> ()` of this name."""

    def exported_variables(self) -> dict[str, int]:
        """The values of all exported mutable i32 globals, unsigned."""

    def capture(self, *, stack: bool) -> MemoryImage:
        """The memory as it is now, and the values of `exported_variables`, for new instances to
        begin with. Without the `stack` these begin with an empty one, as always.

        Raises `OSError` where the host cannot.
        """

    def call(self, name: str) -> None:
        """Call an exported function `() -> ()`, from inside `HostCalls.tick` too.

        Does nothing during a fork or when calls are nested too deeply: the caller asks
        again at a later tick.
        """

    def call_after_trap(self, name: str) -> None:
        """When `run` has raised `GuestTrap`: call an exported function `() -> ()`, which finds
        the memory as the trap left it. If the C stack had overflowed, it gets half of it.

        Raises what `run` raises. Does nothing if the trap came during a fork.
        """

    def close(self) -> None:
        """Free everything; idempotent; only on the thread that ran it or when idle."""


class MemoryImage(Protocol):
    """The memory of a program as it was at some moment, see `Instance.capture`. It never
    changes; instances that begin with it share it until they write."""

    size: int
    """Bytes of linear memory."""


class Module(Protocol):
    """A compiled program, shared by all sandboxes."""

    key: str
    imports: tuple[tuple[str, str], ...]

    def instantiate(self, memory_limit: int, image: MemoryImage | None = None) -> Instance:
        """A fresh instance whose memory cannot grow past `memory_limit` bytes. It begins with
        the module's own data, or with an `image` of a module that has the same code.

        Raises `NeedsMemory` if it needs more at once; `ModuleRejected` if it declares more
        than an instance may have, or the image cannot be of its code; `MemoryError` when the
        host has no room.
        """


class Engine(Protocol):
    """A WebAssembly implementation."""

    tick_seconds: float

    def offer(self, functions: Sequence[HostFunction]) -> None:
        """Let guests import these from now on. Offering them again does nothing."""

    def load(self, key: str, read: Callable[[], bytes]) -> Module:
        """The module with this content key (hex sha256 of its bytes): from memory, from the
        compiled-module cache, or compiled from `read()` and then cached. It is compiled in this
        process, without limits: for modules that the host trusts.

        Raises `ModuleRejected`, also when it imports what there is not.
        """

    def find(self, key: str) -> Module | None:
        """The same, if it need not be compiled; raises `ModuleRejected`."""

    def compile_apart(self, order: CompileOrder) -> Module:
        """The same, of a module that a guest made: compiled by another process, within limits.
        There is a part of the cache for such modules that is bounded, and a module that was
        rejected is not compiled again.

        Raises `ModuleRejected`, `CompileTooCostly`, `CompileUnavailable`, `CompileCancelled`.
        """

    def is_compiled(self, key: str) -> bool:
        """Whether `load` would need no compilation."""

    def unload(self, key: str) -> None:
        """Keep the module no longer in memory than somebody has it; it stays compiled."""

    def start_thread(self, target: Callable[[], None]) -> None:
        """Run `target` on a pooled thread whose stack is deep enough for a guest."""

    def give_memory_back(self) -> None:
        """A large sandbox has ended: have the host's allocator return what is free, some time.
        Never waits."""

    def guest_resumed(self) -> None:
        """Must be called when a guest that has waited in a host call goes on computing: when all
        wait, ticks are far apart."""

    def interrupt(self) -> None:
        """Make every guest that computes call its `tick` at once."""
