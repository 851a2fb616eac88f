"""What an engine may lack, and what happens then.

Owns `Abilities`, one value per engine with a field for each ability, and for each a stand-in that
defines the behaviour without it. Rules: the rest of wasmsand uses `engine.abilities` and never asks
which engine it has; a stand-in keeps every promise of its ability but the one it is about. An
ability is a fact of the running engine, not of its type: it may depend on the operating system or
the browser. Objects that an ability takes or gives belong to the same engine.
"""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time
from typing import NamedTuple, NoReturn, Protocol

from wasmsand.engine.compile_orders import CompileCancelled, CompileOrder
from wasmsand.engine.protocol import Instance, Module, ModuleRejected


class ProgramThreads(Protocol):
    """Several threads of a program in one memory."""

    def new_thread(self, program: Instance, stack_pointer: int, argument: int) -> Instance:
        """Another thread of the program, in the same memory: its `run` calls the exported
        `__thread_start(argument)` with this stack pointer. Only one of a program's instances
        may run or be called at a time; the first one's memory stays until all are closed.

        Raises `ModuleRejected` if the program has no threads, `MemoryError` when the host has
        no room.
        """

    def catch_up(self, thread: Instance) -> None:
        """Needed before a thread goes on after others of the program have run: see the memory
        as large as they left it."""


class NoProgramThreads:
    """Every program has one thread: `clone` of a thread is ENOSYS."""

    def new_thread(self, program: Instance, stack_pointer: int, argument: int) -> NoReturn:
        """Refuse."""
        raise ModuleRejected("this engine has no threads that share a memory")

    def catch_up(self, thread: Instance) -> None:
        """The only thread has seen everything."""


class MemoryImage(Protocol):
    """The memory of a program as it was at some moment. It never changes; instances that begin
    with it share it until they write."""

    size: int
    """Bytes of linear memory."""


class MemoryImages(Protocol):
    """Memory that was captured, for new instances to begin with."""

    available: bool
    """Whether it is worth preparing a program for `capture`."""

    def capture(self, program: Instance, *, stack: bool) -> MemoryImage:
        """The memory as it is now, and the values of `Instance.exported_variables`. Without the
        `stack`, instances begin with an empty one, as always.

        Raises `OSError` if the host cannot keep it.
        """

    def instantiate(self, module: Module, memory_limit: int, image: MemoryImage) -> Instance:
        """As `Module.instantiate`, but the instance begins with an image of a module that has the
        same code. Raises `ModuleRejected` if the image cannot be of this code."""


class NoMemoryImages:
    """Every instance begins with its module's own data. The image's prepared programs still start
    prepared, since that is in their module; they are not prepared again by this host."""

    available = False

    def capture(self, program: Instance, *, stack: bool) -> NoReturn:
        """Refuse."""
        raise OSError("this engine has no memory images")

    def instantiate(self, module: Module, memory_limit: int, image: MemoryImage) -> NoReturn:
        """Refuse: there can be no image."""
        raise ModuleRejected("this engine has no memory images")


class CompileWorkers(Protocol):
    """Compiling modules that guests made apart from this process, within limits."""

    def compile_apart(self, order: CompileOrder) -> Module:
        """The module: from memory, from the cache, or compiled. Such modules have a bounded part
        of the cache, and a module that was rejected is not compiled again.

        Raises `ModuleRejected`, `CompileTooCostly`, `CompileUnavailable`, `CompileCancelled`.
        """


class CompileHere:
    """Modules that guests made are compiled by `Engine.load`. The limits of an order do not hold,
    but its size does, and its cost is charged to the sandbox afterwards. For engines that compile
    in linear time, and hosts that can be ended from outside, as browsers are."""

    def __init__(self, load: Callable[[str, Callable[[], bytes]], Module]) -> None:
        self._load = load

    def compile_apart(self, order: CompileOrder) -> Module:
        """Compile it in this process."""
        if order.cancellation.cancelled:
            raise CompileCancelled
        order.begun = True
        started = thread_time()
        try:
            return self._load(order.key, lambda: b"".join(order.pieces()))
        finally:
            order.cpu_seconds += thread_time() - started


class MemoryControl(Protocol):
    """Knowing and bounding what an instance takes of the host's memory, while it runs."""

    def stack_reserve(self, program: Instance) -> int:
        """Bytes at the low end of memory that are the C stack, mostly never touched: the first
        value of `__stack_pointer`. `stacks_in_use` tells how much of them is in use."""

    def stacks_in_use(self, program: Instance, c_stack: int) -> tuple[int, int]:
        """How many bytes take room of the lowest `c_stack` bytes of the memory, and, beyond
        what every thread has, of the stack of the thread that runs it. Asking takes 5 us. A
        system that cannot tell gives 0."""

    def held_bytes(self, program: Instance) -> int:
        """What the instance holds beside its linear memory: tables, exceptions, globals."""

    def limit_memory(self, program: Instance, limit: int) -> None:
        """The memory cannot grow past `limit` bytes from now on. Called while the guest is in
        a host call, or does not run."""


class NoMemoryControl:
    """A program is charged for all of its linear memory, touched or not, and for nothing beside
    it. The limit that it was instantiated with stays; growth is entered in the ledger when the
    host next looks, and a sandbox that is over its limit by then loses a process."""

    def stack_reserve(self, program: Instance) -> int:
        """Nothing is left out."""
        return 0

    def stacks_in_use(self, program: Instance, c_stack: int) -> tuple[int, int]:
        """All of the C stack."""
        return c_stack, 0

    def held_bytes(self, program: Instance) -> int:
        """Unknown."""
        return 0

    def limit_memory(self, program: Instance, limit: int) -> None:
        """The first limit stays."""


def _nothing() -> None:
    pass


class Abilities(NamedTuple):
    """What one engine can do beyond `protocol.Engine`. How guests' modules are compiled has no
    default, since it decides whether a guest can keep the host busy: see `CompileHere`."""

    compile_workers: CompileWorkers
    program_threads: ProgramThreads = NoProgramThreads()
    memory_images: MemoryImages = NoMemoryImages()
    memory_control: MemoryControl = NoMemoryControl()
    give_memory_back: Callable[[], None] = _nothing
    """A large sandbox has ended: have the host's allocator return what is free, some time. Never
    waits. Without it, freed memory stays with the process."""
