"""What an engine may lack, and the fallback for each ability.

Owns `Abilities`, one value per engine with a field for each ability, and a stand-in for each that
defines the behaviour without it. Rules: the rest of wasmsand uses `engine.abilities` and never asks
which engine it has. A stand-in keeps every promise except the ability itself. An ability belongs to
the running engine, not to its type: it may depend on the operating system or the browser. Objects
that an ability takes or returns belong to the same engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NoReturn, Protocol

from wasmsand.engine.compile_orders import CompileCancelled, CompileOrder
from wasmsand.engine.dormant import DormantProgram
from wasmsand.engine.protocol import Instance, Module, ModuleRejected, Start
from wasmsand.engine.stored_memory import StoredMemory


class ProgramThreads(Protocol):
    """Several threads of a program in one memory."""

    def new_thread(self, program: Instance, stack_pointer: int, argument: int) -> Instance:
        """Create another thread of the program, in the same memory: its `run` calls the exported
        `__thread_start(argument)` with this stack pointer. Only one instance of a program may run
        or be called at a time. The first instance's memory stays until all are closed.

        Raises `ModuleRejected` if the program does not support threads, `MemoryError` if the host
        has no room.
        """

    def catch_up(self, thread: Instance) -> None:
        """Must be called before a thread resumes after other threads of the program have run:
        updates the size of the memory."""


class NoProgramThreads:
    """Every program has one thread: `clone` of a thread is ENOSYS."""

    def new_thread(self, program: Instance, stack_pointer: int, argument: int) -> NoReturn:
        """Always refuse."""
        raise ModuleRejected("this engine does not support threads")

    def catch_up(self, thread: Instance) -> None:
        """Nothing to do: there is only one thread."""


class MemoryImage(Protocol):
    """The memory of a program at some moment. It never changes."""

    size: int
    """Bytes of linear memory."""
    start: Start
    """How instances start with it."""
    shared_bytes: int
    """How much of their memory instances share until they write; 0 if each has a copy, or if the
    host cannot tell what they have written."""


class MemoryImages(Protocol):
    """Memory with which new instances start, which share it until they write."""

    available: bool
    """Whether preparing programs for `capture` is worthwhile."""

    def find(self, stored: StoredMemory) -> MemoryImage | None:
        """The image of a file, if nothing has to be read for it. Returns at once."""

    def load(self, stored: StoredMemory) -> MemoryImage:
        """The image of a file. Raises `ModuleRejected` if the file is not what was stored."""

    def capture(self, program: Instance, *, stack: bool, entry: str = "_start") -> MemoryImage:
        """Capture the current memory and the values of `Instance.exported_variables`; instances
        start at `entry`. Without `stack`, they start with an empty stack, as usual.

        Raises `OSError` if the host cannot store it.
        """

    def instantiate(self, module: Module, memory_limit: int, image: MemoryImage) -> Instance:
        """Like `Module.instantiate`, but the instance starts with an image of a module with the
        same code. Raises `ModuleRejected` if the image does not fit this code."""


class CopiedImage:
    """Stored memory that is copied to each instance."""

    def __init__(self, stored: StoredMemory) -> None:
        """Raises `ModuleRejected` if the file is not what was stored."""
        self.start = stored.start
        self.size = stored.start.memory_size
        self.shared_bytes = 0
        self._first = stored.first
        self._content = stored.read()

    def copy_to(self, instance: Instance) -> None:
        """Fill the memory of a new instance."""
        instance.write(self._first, self._content)
        end = self._first + len(self._content)
        # The module may have data beyond the end of the image.
        instance.write(end, bytes(instance.memory_size() - end))


class CopiedImages:
    """Nothing is shared: the host keeps stored memory in its own memory, and copies it to each
    instance. Prepared programs start prepared, but this host does not prepare them again."""

    available = False

    def find(self, stored: StoredMemory) -> None:
        """The file has to be read."""
        return None

    def load(self, stored: StoredMemory) -> CopiedImage:
        """Read the file."""
        return CopiedImage(stored)

    def capture(self, program: Instance, *, stack: bool, entry: str = "_start") -> NoReturn:
        """Always refuse."""
        raise OSError("this engine cannot capture memory")

    def instantiate(self, module: Module, memory_limit: int, image: MemoryImage) -> Instance:
        """An instance with a copy of the image."""
        assert isinstance(image, CopiedImage)
        instance = module.instantiate(memory_limit, start=image.start)
        image.copy_to(instance)
        return instance


class MemoryCopies(Protocol):
    """Copies of programs that wait, which go on elsewhere."""

    available: bool

    def duplicate(
        self, program: Instance, memory_limit: int, fork_result: int | None = None
    ) -> Instance:
        """A new instance with a copy of the memory of `program`, which does not compute now. If
        `program` was made by a fork and has not run yet, so was the copy: its fork returns
        `fork_result`, or what it would have returned in `program`. Otherwise the copy starts at the
        program's entry with an empty stack.

        Raises `MemoryError` if there is no room.
        """

    def share(self, program: Instance) -> None:
        """Prepare for several copies of `program`, which does not compute now: further calls of
        `duplicate` let the copies share most of its memory until they write. The content of the
        memory stays the same. Does nothing where memory cannot be shared, or if it is small."""

    def describe(self, program: Instance) -> DormantProgram:
        """What `duplicate` copies, without the content of the memory."""

    def differences(self, program: Instance, base: Instance) -> Iterator[tuple[int, bytes]]:
        """The parts of the memory that `duplicate` copies and that differ from `base`, a new
        instance of the same module: address and content, in ascending order."""

    def fill(
        self, instance: Instance, dormant: DormantProgram, parts: Iterable[tuple[int, bytes]]
    ) -> None:
        """Make a new instance the program that was described, with these differences. Nothing of
        the description is trusted. Raises `ModuleRejected` if the program cannot be of this module,
        `MemoryError` if its memory is larger than the instance may have."""


class NoMemoryCopies:
    """Programs cannot be copied."""

    available = False

    def duplicate(
        self, program: Instance, memory_limit: int, fork_result: int | None = None
    ) -> NoReturn:
        """Always refuse."""
        raise MemoryError("this engine cannot copy programs")

    def share(self, program: Instance) -> None:
        """Nothing can be copied."""

    def describe(self, program: Instance) -> NoReturn:
        """Always refuse."""
        raise MemoryError("this engine cannot copy programs")

    def differences(self, program: Instance, base: Instance) -> NoReturn:
        """Always refuse."""
        raise MemoryError("this engine cannot copy programs")

    def fill(
        self, instance: Instance, dormant: DormantProgram, parts: Iterable[tuple[int, bytes]]
    ) -> NoReturn:
        """Always refuse."""
        raise MemoryError("this engine cannot copy programs")


class CompileWorkers(Protocol):
    """Compiling modules that guests made in separate processes, within limits."""

    def compile_apart(self, order: CompileOrder) -> Module:
        """The module: from memory, from the cache, or compiled. Such modules have a bounded part of
        the cache of their own. A rejected module is not compiled again.

        Raises `ModuleRejected`, `CompileTooCostly`, `CompileUnavailable`, `CompileCancelled`.
        """


class CompileHere:
    """`Engine.load` compiles the modules that guests made. The limits of an order are not enforced,
    except its size; the cost is charged to the sandbox afterwards. For engines that compile in
    linear time, and for hosts that can be ended from outside, such as browsers."""

    def __init__(self, load: Callable[[str, Callable[[], bytes]], Module]) -> None:
        self._load = load

    def compile_apart(self, order: CompileOrder) -> Module:
        """Compile the module in this process."""
        if order.cancellation.cancelled:
            raise CompileCancelled
        order.begun = True
        started = time.perf_counter()
        try:
            return self._load(order.key, lambda: b"".join(order.pieces()))
        finally:
            order.cpu_seconds += time.perf_counter() - started


class MemoryControl(Protocol):
    """Measuring and bounding the host memory of an instance while it runs."""

    def stack_reserve(self, program: Instance) -> int:
        """The size of the C stack at the low end of memory, most of which is never touched: the
        initial value of `__stack_pointer`. `stacks_in_use` says how much of it is in use."""

    def stacks_in_use(self, program: Instance, c_stack: int) -> tuple[int, int]:
        """How many bytes are resident of the lowest `c_stack` bytes of the memory, and of the
        native stack of the running thread beyond what every thread uses. Takes 5 us. 0 if the
        system cannot tell."""

    def shared_bytes(self, program: Instance) -> int:
        """`MemoryImage.shared_bytes` of the image with which the memory began; 0 without one."""

    def written_bytes(self, program: Instance) -> int:
        """How much of `shared_bytes` the program has written, in whole pages. Takes 10 us a
        megabyte. Any thread may ask."""

    def page_faults(self) -> int:
        """How often the host's system has given the current thread a page. A page that is written
        for the first time needs one, so a thread has written at most so many pages since it asked
        last. Only called if `shared_bytes` is not 0."""

    def held_bytes(self, program: Instance) -> int:
        """What the instance uses beside its linear memory: tables, exceptions, globals."""

    def limit_memory(self, program: Instance, limit: int) -> None:
        """From now on the memory cannot grow past `limit` bytes. Called while the guest is in a
        host call or does not run."""


class NoMemoryControl:
    """A program is charged for its whole linear memory, touched or not, and for nothing else. The
    limit from its instantiation stays. Growth is charged when the host next measures it, and a
    sandbox that exceeds its limit then loses a process."""

    def stack_reserve(self, program: Instance) -> int:
        """No part of the memory is exempt."""
        return 0

    def stacks_in_use(self, program: Instance, c_stack: int) -> tuple[int, int]:
        """The whole C stack."""
        return c_stack, 0

    def shared_bytes(self, program: Instance) -> int:
        """Nothing is known to be shared."""
        return 0

    def written_bytes(self, program: Instance) -> int:
        """Nothing is shared."""
        return 0

    def page_faults(self) -> int:
        """Not known, and not needed."""
        return 0

    def held_bytes(self, program: Instance) -> int:
        """Unknown, so 0."""
        return 0

    def limit_memory(self, program: Instance, limit: int) -> None:
        """Nothing to do: the initial limit stays."""


def _nothing() -> None:
    pass


class Abilities(NamedTuple):
    """What one engine can do beyond `protocol.Engine`. `compile_workers` has no default, because it
    decides whether a guest can keep the host busy: see `CompileHere`."""

    compile_workers: CompileWorkers
    program_threads: ProgramThreads = NoProgramThreads()
    memory_images: MemoryImages = CopiedImages()
    memory_copies: MemoryCopies = NoMemoryCopies()
    memory_control: MemoryControl = NoMemoryControl()
    give_memory_back: Callable[[], None] = _nothing
    """A large sandbox has ended: ask the host's allocator to return free memory soon. Never waits.
    Without it, freed memory stays with the process."""
