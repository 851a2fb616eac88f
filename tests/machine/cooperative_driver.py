"""A second driver: it runs guests on one thread, one call after another.

It shows that `Dispatcher` and `Guest` need neither threads nor locks nor the host's clock. Its
engine is a toy as well: a program is a Python generator, which yields a system call and receives
the result. The calls are real: numbers and addresses in the guest's memory, which the dispatcher
serves with the real kernel. Rules: a waiting program runs again only when a queue wakes it or its
deadline comes; when all programs wait, the driver "compiles" a requested module, or moves the
clock to the next deadline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from struct import Struct
from typing import Any

from tests.abi.caller import CallArguments, PythonEngine, PythonInstance, PythonModule
from wasmsand.abi.context import ProcessEnded
from wasmsand.abi.linux.numbers import CallNumber
from wasmsand.engine.protocol import BEGINNING, Engine, Instance, Module, Start
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.program import Program, become, find_program
from wasmsand.kernel.process.thread import Thread
from wasmsand.kernel.vfs import ROOT, ImageBuilder, TreeFs, standard_tree
from wasmsand.kernel.wait import WaitQueue, WouldBlock
from wasmsand.machine.dispatcher import Dispatcher
from wasmsand.machine.driver import Blocked
from wasmsand.machine.guest import Execute, Guest
from wasmsand.machine.program_start import start_program

WASM_MAGIC = b"\0asm\1\0\0\0"
_HEAP = 4096
"""From here on, programs store what they pass to calls."""

Request = tuple[int, ...]
"""The number of a system call, and its arguments."""
Steps = Generator[Request, int, None]
"""A running program."""


class Memory:
    """A program's own view of its memory."""

    def __init__(self, space: bytearray) -> None:
        self._space = space
        self._next = _HEAP

    def room(self, size: int) -> int:
        """The address of `size` bytes that nothing else uses."""
        address = self._next
        self._next += (size + 7) & ~7
        assert self._next <= len(self._space)
        return address

    def put(self, data: bytes) -> int:
        """The address of a copy of `data`."""
        address = self.room(len(data))
        self._space[address : address + len(data)] = data
        return address

    def strings(self, *texts: bytes) -> int:
        """A NULL-terminated array of strings, as execve takes."""
        pointers = [self.put(text + b"\0") for text in texts]
        return self.put(Struct(f"<{len(texts) + 1}I").pack(*pointers, 0))

    def get(self, address: int, size: int) -> bytes:
        """Bytes at an address."""
        return bytes(self._space[address : address + size])

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """Words at an address."""
        return Struct(f"<{count}I").unpack_from(self._space, address)


Text = Callable[[Memory], Steps]
"""The code of a program."""


class GeneratorInstance(PythonInstance):
    """An instance whose program is a generator."""

    def __init__(self, text: Text) -> None:
        super().__init__()
        self.steps = text(Memory(self.space))


class GeneratorModule(PythonModule):
    """A module whose instances run `text`."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def instantiate(self, memory_limit: int, *, start: Start = BEGINNING) -> GeneratorInstance:
        return GeneratorInstance(self._text)


class Modules:
    """A `ModuleSource` that compiles a module when there is nothing else to do."""

    def __init__(self, texts: Mapping[bytes, Text]) -> None:
        self.engine: Engine = PythonEngine()
        self._texts = texts
        self._compiled: dict[bytes, GeneratorModule] = {}
        self._wanted: dict[bytes, WaitQueue] = {}

    def module(self, thread: Thread, program: Program) -> Module:
        name = program.path.rpartition(b"/")[2]
        if name not in self._compiled:
            raise WouldBlock((self._wanted.setdefault(name, WaitQueue()),), interruptible=False)
        return self._compiled[name]

    def abandon(self, thread: Thread) -> None:
        pass

    def shared_bytes(self, program: Program) -> int:
        return 0

    def instantiate(self, program: Program, module: Module, memory_limit: int) -> Instance:
        return module.instantiate(memory_limit)

    def compile_one(self) -> bool:
        """Compile a requested module, if there is one; returns whether there was."""
        if not self._wanted:
            return False
        name, queue = self._wanted.popitem()
        self._compiled[name] = GeneratorModule(self._texts[name])
        queue.wake()
        return True


class Task:
    """One guest, and its `Driver`."""

    def __init__(self, scheduler: Scheduler, guest: Guest) -> None:
        self._scheduler = scheduler
        self._guest = guest
        self._dispatcher = Dispatcher(guest)
        self._blocked: Blocked | None = None
        self._result: int | None = None
        """The result of the last call; None before the first."""
        self._calls = 0
        guest.driver = self

    # Driver.

    def cpu_time_ns(self) -> int:
        return 1000 * self._calls

    def start(self, guest: Guest) -> None:
        self._scheduler.add(guest)

    def start_thread(self, guest: Guest) -> None:
        raise RuntimeError("this driver has no threads")

    def yield_turn(self) -> None:
        raise AssertionError("a program without threads has no turn")

    # Running.

    @property
    def deadline(self) -> int | None:
        """Until when the guest waits; None for ever."""
        return None if self._blocked is None else self._blocked.deadline

    def step(self) -> bool:
        """Make one call, or try it again; returns whether the guest still exists."""
        outcome: int | Blocked | None
        try:
            outcome = self._next_call() if self._blocked is None else self._try_again(self._blocked)
        except ProcessEnded:
            self._end()
            return False
        except Execute as change:
            self._guest.close()
            self._dispatcher.load(change)
            outcome = None
        if isinstance(outcome, Blocked):
            self._wait(outcome)
        else:
            self._result = outcome
            self._scheduler.ready.append(self)
        return True

    def _next_call(self) -> int | Blocked:
        instance = self._guest.instance
        assert isinstance(instance, GeneratorInstance)
        self._calls += 1
        try:
            # The first value sent to a generator must be None.
            nr, *words = instance.steps.send(self._result)  # type: ignore[arg-type]
        except StopIteration:
            self._guest.finish(0)
            raise ProcessEnded from None
        arguments = [word & 0xFFFF_FFFF for word in words] + [0] * (6 - len(words))
        return self._dispatcher.dispatch(nr, CallArguments(*arguments))

    def _try_again(self, blocked: Blocked) -> int | Blocked:
        for queue in blocked.queues:
            queue.remove(self.wake)
        self._blocked = None
        outcome = self._dispatcher.retry()
        return outcome if isinstance(outcome, Blocked) else self._dispatcher.go_on(outcome)

    def _wait(self, blocked: Blocked) -> None:
        self._blocked = blocked
        self._scheduler.waits += not blocked.gives_way
        if blocked.gives_way:
            self._scheduler.ready.append(self)
        else:
            for queue in blocked.queues:
                queue.add(self.wake)

    def wake(self) -> None:
        """Called by a queue, or at the deadline."""
        if self not in self._scheduler.ready:
            self._scheduler.ready.append(self)

    def _end(self) -> None:
        self._guest.leave_memory()
        self._guest.close()
        self._guest.forget()


class Scheduler:
    """A sandbox whose guests all run on the thread of the caller of `run`."""

    def __init__(self, texts: Mapping[bytes, Text]) -> None:
        """Each of `texts` is a program in /usr/bin."""
        builder = ImageBuilder()
        standard_tree(builder)
        for name in texts:
            builder.add_file(b"/usr/bin/" + name, WASM_MAGIC, 0o755)
        self.now = 0
        limits = Limits()
        clock = Clock(lambda: self.now, lambda: self.now)
        tree = TreeFs(builder.build(), limits, clock.realtime)
        self.kernel = Kernel(tree, limits, clock=clock)
        self._modules = Modules(texts)
        self.ready: deque[Task] = deque()
        self._tasks: list[Task] = []
        self.waits = 0
        """How often a call had to wait."""

    def add(self, guest: Guest) -> None:
        """Add a guest to run."""
        task = Task(self, guest)
        self._tasks.append(task)
        self.ready.append(task)

    def start(self, files: Mapping[int, Any], *argv: bytes) -> Process:
        """Start a process of the host that runs a program in /usr/bin."""
        kernel, namespace = self.kernel, self.kernel.namespace
        process = kernel.new_process(Identity.of(1000, 1000), namespace.root, ())
        thread = process.first_thread
        path = b"/usr/bin/" + argv[0]
        program = find_program(kernel, process, namespace.root, path, argv, ())
        try:
            self._modules.module(thread, program)
        except WouldBlock:
            self._modules.compile_one()
        module = self._modules.module(thread, program)
        instance, memory = start_program(kernel, self._modules, process, program, module)
        for number, file in files.items():
            process.fds.replace(number, file)
        become(kernel, process, program)
        process.leave_memory(memory)
        self.add(Guest(kernel, self._modules, thread, instance, memory))
        return process

    def run(self) -> None:
        """Run all guests to their end."""
        while self._tasks:
            while self.ready:
                task = self.ready.popleft()
                if not task.step():
                    self._tasks.remove(task)
            if self._tasks and not self._modules.compile_one():
                self._pass_time()

    def _pass_time(self) -> None:
        deadlines = [task.deadline for task in self._tasks if task.deadline is not None]
        assert deadlines, "all guests wait for each other"
        self.now = max(self.now, min(deadlines))
        for task in self._tasks:
            if task.deadline is not None and task.deadline <= self.now:
                task.wake()

    def content(self, path: bytes) -> bytes:
        """The content of a file."""
        namespace = self.kernel.namespace
        return namespace.read(namespace.resolve(ROOT, namespace.root, path), 0, 1 << 20)


def arguments_of(memory: Memory) -> Generator[Request, int, list[bytes]]:
    """The program's argv, as the libc reads it."""
    size = yield (CallNumber.STARTUP_SIZE,)
    block = memory.room(size)
    yield CallNumber.STARTUP_FILL, block, size
    (count,) = memory.words(block, 1)
    return memory.get(block + 8, size - 8).split(b"\0")[:count]
