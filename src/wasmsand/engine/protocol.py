"""What every engine must do: all that the rest of wasmsand knows of WebAssembly.

Owns the protocol between the machine and an engine. What an engine may lack is in `abilities`.
Rules: nothing here imports a WebAssembly runtime; an engine never looks inside guest data (but for
the header of Asyncify), and never calls the kernel except through `HostCalls`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from wasmsand.engine.abilities import Abilities


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
    """A guest broke a rule of WebAssembly. Its instance cannot go on: its stack is lost, its
    memory is not (see `Instance.call_after_trap`)."""

    def __init__(self, kind: TrapKind, message: str = "") -> None:
        super().__init__(message or kind.value)
        self.kind = kind


class ModuleRejected(Exception):
    """The bytes are not a module this engine can run; the message says why."""


class NeedsMemory(ModuleRejected):
    """The module needs more memory to start than it may have; the message says how much."""


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
    """What one guest process can call. Each call runs on the guest's own thread.

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
        """After `fork_allowed`: the host had no room for the copy."""

    def tick(self) -> None:
        """Called every few milliseconds while the guest computes."""


class LinearMemory(Protocol):
    """The memory of a guest, as the host reaches it. `abi/memory.py` checks the addresses that
    guests give; an engine raises `IndexError` for one outside the memory."""

    def memory_size(self) -> int:
        """Bytes of linear memory."""

    def read(self, address: int, count: int) -> bytes:
        """A copy of `count` bytes."""

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Store a copy of `data`."""

    def memory_view(self) -> memoryview | None:
        """All of the memory as it is now, writable and without a copy; None if this engine's
        memory is out of the host's reach. The memory never shrinks or moves, so an older view
        stays valid, only shorter."""


class Instance(LinearMemory, Protocol):
    """One program in memory, used by one thread at a time."""

    def bind(self, calls: HostCalls) -> None:
        """Set whose calls these are; needed before `run`."""

    def run(self) -> None:
        """Run `_start` (or go on after a fork) until it returns, on a thread that
        `Engine.start_thread` started.

        Raises `GuestTrap`, what a host call raised, or another `GuestUnwind` when the
        engine itself ends its guests (the host process exits).
        """

    def exported_address(self, name: str) -> int | None:
        """The value of an exported immutable i32 global (a C variable's address)."""

    def exports_procedure(self, name: str) -> bool:
        """Whether there is an exported function `() -> ()` of this name."""

    def exported_variables(self) -> dict[str, int]:
        """The values of all exported mutable i32 globals, unsigned."""

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


class Module(Protocol):
    """A compiled program, shared by all sandboxes."""

    key: str
    imports: tuple[tuple[str, str], ...]

    def instantiate(self, memory_limit: int) -> Instance:
        """A fresh instance whose memory cannot grow past `memory_limit` bytes.

        Raises `NeedsMemory` if it needs more at once; `ModuleRejected` if it declares more
        than an instance may have; `MemoryError` when the host has no room.
        """


class GuestThreads(Protocol):
    """Threads of the host that guests run on. A driver that runs each guest on a thread needs
    them (`machine/thread_driver.py`); so do the machine's timers and loaders."""

    def start_thread(self, target: Callable[[], None]) -> None:
        """Run `target` on a pooled thread whose stack is deep enough for a guest. Raises
        `RuntimeError` when the host has no thread left."""

    def guest_resumed(self) -> None:
        """Must be called when a guest that has waited in a host call goes on computing: when all
        wait, ticks are far apart."""

    def interrupt(self) -> None:
        """Make every guest that computes call its `tick` at once."""


class Engine(GuestThreads, Protocol):
    """A WebAssembly implementation. `choosing` says which one this host process uses."""

    abilities: Abilities
    """What this engine can do beyond this protocol."""

    def offer(self, functions: Sequence[HostFunction]) -> None:
        """Let guests import these from now on. Offering them again does nothing."""

    def load(self, key: str, read: Callable[[], bytes]) -> Module:
        """The module with this content key (hex sha256 of its bytes): from memory, from the
        compiled-module cache, or compiled from `read()` and then cached. It is compiled in this
        process, without limits: for modules that the host trusts.

        Raises `ModuleRejected`, also for an unknown import.
        """

    def find(self, key: str) -> Module | None:
        """The same, if it need not be compiled; raises `ModuleRejected`."""

    def is_compiled(self, key: str) -> bool:
        """Whether `load` would need no compilation."""

    def unload(self, key: str) -> None:
        """Drop the engine's reference to the module; callers that hold one keep it alive. It
        stays in the cache of compiled modules."""
