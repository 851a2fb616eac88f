"""Modules and instances of the JavaScript host's WebAssembly.

Owns `JavaScriptEngine`. Rules: an instance is a memory and a description of how its program starts;
the host creates the WebAssembly instance in the worker that runs the guest. So an instance here
cannot be run or called: its driver (`wasmsand.web`) starts it. A memory exists before its instance,
so the module imports it: the JavaScript side rewrites modules to that form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from wasmsand.engine.abilities import Abilities, CompileHere
from wasmsand.engine.javascript.host import TRANSFER_BYTES, JavaScriptHost, ModuleForm
from wasmsand.engine.protocol import (
    BEGINNING,
    HostCalls,
    HostFunction,
    Instance,
    Module,
    ModuleRejected,
    NeedsMemory,
    Start,
)
from wasmsand.engine.stored_memory import StoredMemory

PAGE: Final = 65536
_THREAD_ENTRY: Final = "__thread_start"
_CALLABLE: Final = frozenset({("linux", "syscall"), ("linux", "fork")})


@dataclass(frozen=True, slots=True)
class Fork:
    """How the copy of a forking program continues: it rewinds its frames from this buffer."""

    buffer: int
    result: int


class JavaScriptInstance:
    """The memory of a program, and how the program starts."""

    def __init__(self, module: JavaScriptModule, memory: int, most: int, start: Start) -> None:
        self.module = module
        self.memory = memory
        self.most = most
        """The size in bytes past which the memory cannot grow."""
        self.entry = start.entry
        self.variables = dict(start.variables)
        """The values of mutable globals with which it starts, where they differ."""
        self.fork: Fork | None = None
        self.argument: int | None = None
        """What the entry of a further thread gets."""
        self._host = module.engine.host
        self._transfer = module.engine.transfer
        self._closed = False
        self._users = [1]
        """How many threads use the memory."""

    # LinearMemory.

    def memory_size(self) -> int:
        """Bytes of linear memory."""
        return self._host.memory_size(self.memory)

    def read(self, address: int, count: int) -> bytes:
        """Copy bytes from the memory."""
        if count <= TRANSFER_BYTES:
            self._host.read(self.memory, address, count)
            return bytes(self._transfer[:count])
        parts = []
        while count:
            part = min(count, TRANSFER_BYTES)
            self._host.read(self.memory, address, part)
            parts.append(bytes(self._transfer[:part]))
            address += part
            count -= part
        return b"".join(parts)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Copy `data` to the memory."""
        count = len(data)
        if count <= TRANSFER_BYTES:
            self._transfer[:count] = data
            self._host.write(self.memory, address, count)
            return
        view = memoryview(data)
        for at in range(0, count, TRANSFER_BYTES):
            part = view[at : at + TRANSFER_BYTES]
            self._transfer[: len(part)] = part
            self._host.write(self.memory, address + at, len(part))

    def memory_view(self) -> None:
        """This Python cannot address the memory."""
        return None

    # Instance.

    def bind(self, calls: HostCalls) -> None:
        """The driver receives the calls itself."""

    def run(self) -> None:
        """The driver's worker runs it."""
        raise NotImplementedError("its driver runs it in a worker")

    def exported_address(self, name: str) -> int | None:
        """The value of an exported immutable i32 global, or None."""
        return self.module.addresses.get(name)

    def exports_procedure(self, name: str) -> bool:
        """Whether the program exports a function `() -> ()` with this name."""
        return name in self.module.procedures

    def exported_variables(self) -> dict[str, int]:
        """Only as they were at the start: the worker has the current ones."""
        return {**self.module.variables, **self.variables}

    def call(self, name: str) -> None:
        """A computing guest cannot be interrupted: it is told of signals at its next call."""

    def call_after_trap(self, name: str) -> None:
        """The driver's worker does this."""
        raise NotImplementedError("its driver does this in a worker")

    def close(self) -> None:
        """Free the memory. Idempotent."""
        if not self._closed:
            self._closed = True
            self._users[0] -= 1
            if not self._users[0]:
                self._host.free_memory(self.memory)

    def new_thread(self, stack_pointer: int, argument: int) -> JavaScriptInstance:
        """Another thread of the program, in the same memory. Raises `ModuleRejected`."""
        if not self.module.starts_threads:
            raise ModuleRejected(f"has no function {_THREAD_ENTRY}")
        start = Start(_THREAD_ENTRY, 0, {"__stack_pointer": stack_pointer})
        thread = JavaScriptInstance(self.module, self.memory, self.most, start)
        thread.argument = argument
        thread._users = self._users
        self._users[0] += 1
        return thread

    # Forks.

    def copy_for_fork(
        self, stack_pointer: int, buffer: int, used: tuple[tuple[int, int], ...]
    ) -> JavaScriptInstance:
        """A copy of this program that continues in a fork. `used` are the parts of the memory to
        copy. Raises `MemoryError`."""
        size = self.memory_size()
        child = self.module.make(size, self.most, Start(entry=self.entry), with_data=False)
        for start, end in used:
            self._host.copy(self.memory, child.memory, start, end)
        child.variables = {**self.variables, "__stack_pointer": stack_pointer}
        child.fork = Fork(buffer, 0)
        return child


class JavaScriptModule:
    """A compiled program."""

    def __init__(self, engine: JavaScriptEngine, key: str, form: ModuleForm) -> None:
        self.engine = engine
        self.key = key
        self.id: int = form.id
        lines = form.imports.splitlines()
        names = [tuple(line.split("\t")) for line in lines]
        self.imports: tuple[tuple[str, str], ...] = tuple((n[0], n[1]) for n in names)
        self.procedures = frozenset(form.procedures.splitlines())
        self.addresses = _numbers(form.addresses)
        self.variables = _numbers(form.variables)
        self.starts_threads: bool = form.starts_threads
        self._first: int = form.first_pages * PAGE
        self._most: int = form.most_pages * PAGE

    def instantiate(self, memory_limit: int, *, start: Start = BEGINNING) -> JavaScriptInstance:
        """See `protocol.Module`."""
        first = max(self._first, start.memory_size)
        if first > memory_limit:
            raise NeedsMemory(
                f"needs {first} bytes of memory to start, and may have {memory_limit}"
            )
        if start.entry not in self.procedures:
            raise ModuleRejected(f"has no function {start.entry}")
        if any(name not in self.variables for name in start.variables):
            raise ModuleRejected("lacks a variable of its prepared memory")
        return self.make(first, max(first, min(memory_limit, self._most)), start)

    def make(
        self, first: int, most: int, start: Start, *, with_data: bool = True
    ) -> JavaScriptInstance:
        """A new instance. Raises `MemoryError`."""
        pages = -(-first // PAGE)
        module = self.id if with_data else -1
        memory = self.engine.host.new_memory(module, pages, max(pages, most // PAGE))
        if memory < 0:
            raise MemoryError("the browser has no room for another memory")
        return JavaScriptInstance(self, memory, most, start)


class JavaScriptThreads:
    """Several threads of a program, each in a worker: see `ProgramThreads`."""

    def new_thread(self, program: Instance, stack_pointer: int, argument: int) -> Instance:
        """Create another thread."""
        return instance_of(program).new_thread(stack_pointer, argument)

    def catch_up(self, thread: Instance) -> None:
        """Nothing to do: the host is asked for the size of a memory each time."""


class JavaScriptImage:
    """A stored memory that the host has."""

    def __init__(self, engine: JavaScriptEngine, number: int, stored: StoredMemory) -> None:
        """`number` is the host's for the content of the file."""
        self._host = engine.host
        self._number = number
        self._stored = stored

    def instantiate(self, module: Module, memory_limit: int) -> JavaScriptInstance:
        """Like `Module.instantiate`, with a copy of this memory."""
        instance = instance_of(module.instantiate(memory_limit, start=self._stored.start))
        self._host.fill(instance.memory, self._number, self._stored.first)
        return instance


def _numbers(lines: str) -> dict[str, int]:
    pairs = (line.split("\t") for line in lines.splitlines())
    return {name: int(value) for name, value in pairs}


class JavaScriptEngine:
    """The engine of one worker with this Python."""

    def __init__(self, host: JavaScriptHost, transfer: bytearray) -> None:
        """`transfer` is the buffer through which bytes cross, of `TRANSFER_BYTES`."""
        self.host = host
        self.transfer = memoryview(transfer)
        self._modules: dict[str, JavaScriptModule] = {}
        self._offered: dict[tuple[str, str], HostFunction] = {}
        self.functions: list[HostFunction] = []
        """What guests may import, beside the two functions of the Linux ABI, by number."""
        self.abilities = Abilities(
            compile_workers=CompileHere(self.load), program_threads=JavaScriptThreads()
        )

    def offer(self, functions: Sequence[HostFunction]) -> None:
        """Let guests import these functions from now on. Idempotent."""
        for function in functions:
            if (function.module, function.name) not in self._offered:
                self._offered[function.module, function.name] = function
                self.functions.append(function)

    def load(self, key: str, read: Callable[[], bytes]) -> JavaScriptModule:
        """Compile a module, or take it from memory. Raises `ModuleRejected`."""
        found = self._modules.get(key)
        if found is not None:
            return found
        content = memoryview(read())
        for at in range(0, len(content), TRANSFER_BYTES):
            part = content[at : at + TRANSFER_BYTES]
            self.transfer[: len(part)] = part
            self.host.feed(len(part))
        return self.keep(key, self.host.compile(len(content)))

    def keep(self, key: str, form: ModuleForm) -> JavaScriptModule:
        """Keep a module that the host has compiled. Raises `ModuleRejected`."""
        problem: str = form.problem
        if problem:
            raise ModuleRejected(problem)
        module = JavaScriptModule(self, key, form)
        for name in module.imports:
            if name not in _CALLABLE and name not in self._offered:
                raise ModuleRejected(f"imports {name[0]}.{name[1]}, which is not offered")
        self._modules[key] = module
        return module

    def find(self, key: str) -> JavaScriptModule | None:
        """The module, if it is compiled."""
        return self._modules.get(key)

    def is_compiled(self, key: str) -> bool:
        """Whether `load` would need no compilation."""
        return key in self._modules

    def keep_compiled(self, key: str) -> None:
        """All compiled modules are kept alike."""

    def comes_compiled(self, key: str) -> bool:
        """Nothing comes compiled: the host's own compiler is quick."""
        return False

    def why_not_compiled(self) -> Sequence[str]:
        """No installed package brings compiled modules."""
        return ()

    def unload(self, key: str) -> None:
        """Forget a module."""
        module = self._modules.pop(key, None)
        if module is not None:
            self.host.unload(module.id)

    # GuestThreads: guests run in workers, and this Python has one thread.

    def start_thread(self, target: Callable[[], None]) -> None:
        """Always refuse."""
        raise RuntimeError("a JavaScript host has no threads for Python")

    def guest_resumed(self) -> None:
        """Nothing to do: there are no ticks."""

    def interrupt(self) -> None:
        """Nothing to do: a computing guest cannot be interrupted."""


def instance_of(instance: Instance) -> JavaScriptInstance:
    """The instance as this engine made it."""
    assert isinstance(instance, JavaScriptInstance)
    return instance
