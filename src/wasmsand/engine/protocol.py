"""What every engine must do: everything that the rest of wasmsand knows of WebAssembly.

Owns the interface between the machine and an engine. `abilities` lists what an engine may lack.
Rules: nothing here imports a WebAssembly runtime. An engine never reads guest data (except the
Asyncify header), and calls the kernel only through `HostCalls`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from wasmsand.engine.abilities import Abilities


class TrapKind(Enum):
    """Why a guest trapped."""

    MEMORY = "out of bounds memory access"
    STACK = "stack overflow"
    INDIRECT_CALL = "bad indirect call"
    ARITHMETIC = "integer division by zero or overflow"
    UNREACHABLE = "unreachable"
    UNCAUGHT_EXCEPTION = "uncaught WebAssembly exception"
    OTHER = "trap"


class GuestTrap(Exception):
    """A guest violated a rule of WebAssembly. Its instance cannot continue: its stack is lost, but
    not its memory (see `Instance.call_after_trap`)."""

    def __init__(self, kind: TrapKind, message: str = "") -> None:
        super().__init__(message or kind.value)
        self.kind = kind


class ModuleRejected(Exception):
    """The bytes are not a module that this engine can run; the message says why."""


class NeedsMemory(ModuleRejected):
    """The module needs more memory to start than it may have; the message says how much."""


class GuestUnwind(Exception):
    """Base of exceptions by which a host call leaves a guest (exit, exec, kill).

    `Instance.run` raises the same object that the host call raised.
    """


@dataclass(frozen=True, slots=True)
class HostFunction:
    """One function that guests can import, beside the system call of the Linux ABI.

    `parameters` and `results` have one letter per value: `i` for i32, `I` for i64. There is at most
    one result, an i32.
    """

    module: str
    name: str
    parameters: str
    results: str
    handler: Callable[..., Any]
    """Passed to `HostCalls.invoke` with each call of this function; the engine never calls it."""


@dataclass(frozen=True, slots=True)
class Start:
    """How an instance starts, if not from the beginning."""

    entry: str = "_start"
    """The exported function `() -> ()` that `Instance.run` calls."""
    memory_size: int = 0
    """Bytes of linear memory to start with, at least. A multiple of 64 KiB."""
    variables: Mapping[str, int] = field(default_factory=dict)
    """The values of exported mutable i32 globals, unsigned."""


BEGINNING = Start()
"""A start from the beginning."""


class Arguments(Protocol):
    """The six arguments of a system call, unsigned 32-bit, valid during the call. Each is fetched
    on access, because most calls have fewer."""

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
    """What one guest can call. Each call runs on the guest's own thread.

    A method may raise a `GuestUnwind`. Any other exception is a host bug: `Instance.run` raises it
    unchanged, and it never reaches the guest.
    """

    @property
    def realm(self) -> object:
        """The same object for all guests of a sandbox: an engine may use the memory of one that has
        ended for another one of the same sandbox, never for one of another sandbox."""

    def syscall(self, nr: int, arguments: Arguments) -> int:
        """One system call; the result is a signed 32-bit number."""

    def invoke(self, handler: Callable[..., Any], *arguments: int) -> int:
        """Call the `HostFunction` with this handler. Arguments are unsigned, the result is a signed
        32-bit number."""

    def fork_allowed(self) -> int:
        """Called before any work for a fork. 0, or a negative errno to refuse it."""

    def fork_child(self, child: Instance) -> int:
        """`child` is a copy of the caller: create its process and start it on a thread of its own
        with `child.run()`. Return its pid; or close `child` and return a negative errno.
        """

    def fork_failed(self) -> None:
        """Called after `fork_allowed` if the host had no room for the copy."""

    def tick(self) -> None:
        """Called every few milliseconds while the guest computes."""


class LinearMemory(Protocol):
    """The host's access to a guest's memory. `abi/memory.py` checks addresses from guests; an
    engine raises `IndexError` for an address outside the memory."""

    def memory_size(self) -> int:
        """Bytes of linear memory."""

    def read(self, address: int, count: int) -> bytes:
        """Copy `count` bytes from the memory."""

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Copy `data` to the memory."""

    def memory_view(self) -> memoryview | None:
        """The whole current memory, writable and without a copy; None if the host cannot address
        this engine's memory. The memory never shrinks or moves, so an older view stays valid, only
        shorter."""


class Instance(LinearMemory, Protocol):
    """One program in memory. Only one thread at a time uses it."""

    def bind(self, calls: HostCalls) -> None:
        """Set the receiver of the guest's calls; required before `run`."""

    def run(self) -> None:
        """Run the program (or continue after a fork) until it returns, on a thread started by
        `Engine.start_thread`.

        Raises `GuestTrap`, what a host call raised, or another `GuestUnwind` if the engine itself
        ends its guests (because the host process exits).
        """

    def exported_address(self, name: str) -> int | None:
        """The value of an exported immutable i32 global (the address of a C variable), or None."""

    def exports_procedure(self, name: str) -> bool:
        """Whether the program exports a function `() -> ()` with this name."""

    def exported_variables(self) -> dict[str, int]:
        """The values of all exported mutable i32 globals, unsigned."""

    def call(self, name: str) -> None:
        """Call an exported function `() -> ()`; also allowed inside `HostCalls.tick`.

        Does nothing during a fork, or if calls are nested too deeply: the caller tries again at a
        later tick.
        """

    def call_after_trap(self, name: str) -> None:
        """After `run` has raised `GuestTrap`: call an exported function `() -> ()`, which finds the
        memory as the trap left it. If the C stack has overflowed, the function gets half of it.

        Raises what `run` raises. Does nothing if the trap happened during a fork.
        """

    def close(self) -> None:
        """Free everything. Idempotent. Only on the thread that ran the instance, or when idle."""


class Module(Protocol):
    """A compiled program, shared by all sandboxes."""

    key: str
    imports: tuple[tuple[str, str], ...]

    def instantiate(self, memory_limit: int, *, start: Start = BEGINNING) -> Instance:
        """A new instance whose memory cannot grow past `memory_limit` bytes.

        Raises `NeedsMemory` if its initial memory is larger, `ModuleRejected` if it declares more
        than an instance may have or lacks what `start` names, `MemoryError` if the host has no
        room.
        """


class GuestThreads(Protocol):
    """Host threads on which guests run. Required by a driver that runs each guest on a thread
    (`machine/thread_driver.py`), and by the machine's timers and loaders."""

    def start_thread(self, target: Callable[[], None]) -> None:
        """Run `target` on a pool thread whose stack is deep enough for a guest. Raises
        `RuntimeError` if the host has no thread available."""

    def guest_resumed(self) -> None:
        """Must be called when a guest that waited in a host call resumes computing: while all
        guests wait, ticks are less frequent."""

    def interrupt(self) -> None:
        """Make every computing guest call its `tick` at once."""


class Engine(GuestThreads, Protocol):
    """A WebAssembly implementation. `choosing` decides which one this host process uses."""

    abilities: Abilities
    """What this engine can do beyond this protocol."""

    def offer(self, functions: Sequence[HostFunction]) -> None:
        """Let guests import these functions from now on. Idempotent."""

    def load(self, key: str, read: Callable[[], bytes]) -> Module:
        """The module with this content key (hex sha256 of its bytes): from memory, from the cache
        of compiled modules, or compiled from `read()` and then cached. It is compiled in this
        process without limits: only for modules that the host trusts.

        Raises `ModuleRejected`, also for an unknown import.
        """

    def find(self, key: str) -> Module | None:
        """The module, if it need not be compiled, or None. Raises `ModuleRejected`."""

    def is_compiled(self, key: str) -> bool:
        """Whether `load` returns at once: it neither compiles nor checks a file."""

    def keep_compiled(self, key: str) -> None:
        """The module belongs to the image: if it was compiled for a guest, which had the same
        program first, keep the result for good."""

    def comes_compiled(self, key: str) -> bool:
        """Whether an installed package brings this module, compiled for this engine."""

    def why_not_compiled(self) -> Sequence[str]:
        """Why the compiled modules of installed packages cannot be used; empty if they can."""

    def unload(self, key: str) -> None:
        """Drop the engine's reference to the module; callers that hold one keep it alive. It
        stays in the cache of compiled modules."""
