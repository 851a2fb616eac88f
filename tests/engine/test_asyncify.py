"""fork needs only calls, copies of memory and a stack pointer from an engine.

The programs here are Python, written as Asyncify would transform them. `test_fork.py` has real
programs, honest and hostile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, Self

import pytest

from tests.abi.caller import CopyingInstance
from wasmsand.engine.asyncify import Asyncify
from wasmsand.engine.protocol import Arguments, GuestTrap, HostCalls, Instance, TrapKind

PAGE = 65536
STACK = 1000
BUFFER = 4096
FRAMES, FRAMES_END = BUFFER + 8, BUFFER + 1024
LOCAL = 0x1234_5678
HEADER, WORD = Struct("<II"), Struct("<I")


class Host:
    """Adopts children and keeps what programs report."""

    def __init__(self, refusal: int = 0) -> None:
        self.refusal = refusal
        self.children: list[Program] = []
        self.reported: list[int] = []
        self.failed = 0

    @property
    def realm(self) -> object:
        return type(self)

    def syscall(self, nr: int, arguments: Arguments) -> int:
        raise AssertionError("these programs make no calls")

    def invoke(self, handler: Callable[..., Any], *arguments: int) -> int:
        raise AssertionError("these programs make no calls")

    def tick(self) -> None:
        raise AssertionError("nothing interrupts these programs")

    def fork_allowed(self) -> int:
        return self.refusal

    def fork_failed(self) -> None:
        self.failed += 1

    def fork_child(self, child: Instance) -> int:
        assert isinstance(child, Program)
        self.children.append(child)
        return 100 + len(self.children)


class Program(CopyingInstance):
    """Forks once, with one variable on its stack, and reports what fork returned."""

    calls: HostCalls
    entry = "_start"
    memory_max = 2 * PAGE
    instances_max = 10

    def __init__(self, host: Host | None = None, forks: int = 1) -> None:
        super().__init__(PAGE)
        self.host = self.calls = host or Host()
        self.asyncify: Asyncify | None = Asyncify(self)
        self.forks = forks
        self.nested = 0
        self.pointer = STACK
        self.state = "normal"
        self.write(BUFFER, HEADER.pack(FRAMES, FRAMES_END))

    # What an engine does.

    def run(self) -> None:
        assert self.asyncify is not None
        self.asyncify.run()

    def invoke(self, name: str, argument: int | None = None) -> None:
        match name:
            case "_start":
                self.start()
            case "asyncify_start_unwind":
                self.state = "unwinding"
            case "asyncify_start_rewind":
                self.state = "rewinding"
            case "asyncify_stop_unwind" | "asyncify_stop_rewind":
                self.state = "normal"

    def new_child(self, memory_limit: int) -> Self:
        if self.instances_max <= 1:
            raise MemoryError
        fresh = type(self)(Host(), self.forks)
        fresh.memory_max = min(self.memory_max, memory_limit)
        return fresh

    def grow_memory(self, size: int) -> bool:
        if size > self.memory_max:
            return False
        self.space += bytes(size - len(self.space))
        return True

    def stack_pointer(self) -> int | None:
        return self.pointer

    def set_stack_pointer(self, address: int) -> None:
        self.pointer = address

    def copy_memory(self, child: Self, ranges: Iterable[tuple[int, int]]) -> None:
        for start, end in ranges:
            child.write(start, self.read(start, end - start))

    # The program.

    def fork(self) -> int:
        assert self.asyncify is not None
        return self.asyncify.import_called(BUFFER)

    def start(self) -> None:
        done = 0
        while done < self.forks or self.state == "rewinding":
            local = LOCAL
            if self.state == "rewinding":
                at = self._header()[0] - 8
                local, done = HEADER.unpack(self.read(at, 8))
                self.write(BUFFER, WORD.pack(at))
            result = self.fork()
            if self.state == "unwinding":
                at = self._header()[0]
                self.write(at, HEADER.pack(local, done))
                self.write(BUFFER, WORD.pack(at + 8))
                return
            assert local == LOCAL
            done += 1
            self.host.reported.append(result)

    def _header(self) -> tuple[int, int]:
        current, end = HEADER.unpack(self.read(BUFFER, 8))
        return current, end


def test_the_parent_is_given_the_pid_and_the_child_zero() -> None:
    parent = Program()
    parent.run()
    (child,) = parent.host.children
    assert child.host.reported == []
    child.run()
    assert (parent.host.reported, child.host.reported) == ([101], [0])


def test_children_go_on_where_their_parent_was_and_fork_in_turn() -> None:
    family = [Program(forks=3)]
    for member in family:
        member.run()
        family.extend(member.host.children)
    assert len(family) == 8
    assert sorted(len(member.host.reported) for member in family) == [1, 1, 1, 1, 2, 2, 3, 3]


def test_memory_and_stack_pointer_are_copied_but_for_what_is_unused() -> None:
    parent = Program()
    parent.pointer = 800
    parent.grow_memory(2 * PAGE)
    marks = {100: b"?", 700: b"r", 900: b"s", FRAMES_END - 4: b"?", FRAMES_END: b"d", 70_000: b"g"}
    for address, mark in marks.items():
        parent.write(address, mark)
    parent.run()
    (child,) = parent.host.children
    assert (child.pointer, child.memory_size()) == (800, 2 * PAGE)
    assert {at: child.read(at, 1).replace(b"\0", b"?") for at in marks} == marks


@pytest.mark.parametrize("errno", [11, 12])
def test_a_refused_fork_returns_the_errno_and_unwinds_nothing(errno: int) -> None:
    program = Program(Host(refusal=-errno))
    program.run()
    assert (program.host.reported, program.host.children) == ([-errno], [])


def test_a_fork_without_room_for_the_copy_fails_in_the_parent_only() -> None:
    program = Program()
    program.instances_max = 1
    program.run()
    assert (program.host.reported, program.host.failed) == ([-12], 1)


def test_a_copy_that_cannot_grow_is_closed() -> None:
    made: list[Program] = []

    class Small(Program):
        def new_child(self, memory_limit: int) -> Self:
            fresh = super().new_child(memory_limit)
            fresh.memory_max = PAGE
            made.append(fresh)
            return fresh

    program = Small()
    program.grow_memory(2 * PAGE)
    program.run()
    assert (program.host.reported, program.host.failed) == ([-12], 1)
    assert [child.closed for child in made] == [True]


def test_a_signal_handler_cannot_fork() -> None:
    program = Program()
    program.nested = 1
    program.run()
    assert program.host.reported == [-11]


def test_the_guest_cannot_be_called_in_the_middle_of_a_fork() -> None:
    seen: list[bool] = []

    class Asking(Program):
        def invoke(self, name: str, argument: int | None = None) -> None:
            assert self.asyncify is not None
            seen.append(self.asyncify.under_way)
            super().invoke(name, argument)

    program = Asking()
    program.run()
    assert seen == [False, True, True, True, True, True]  # the first `_start` only
    assert program.asyncify is not None
    assert not program.asyncify.under_way


@pytest.mark.parametrize(
    "header", [(PAGE, PAGE + 8), (FRAMES, PAGE + 1), (FRAMES, FRAMES - 1)], ids=str
)
def test_a_buffer_outside_the_memory_is_a_trap(header: tuple[int, int]) -> None:
    program = Program()
    program.write(BUFFER, HEADER.pack(*header))
    with pytest.raises(GuestTrap) as trapped:
        program.run()
    assert trapped.value.kind is TrapKind.MEMORY
    assert program.host.children == []


def test_a_stack_pointer_outside_the_memory_is_a_trap() -> None:
    program = Program()
    program.pointer = PAGE + 1
    with pytest.raises(GuestTrap, match="stack pointer"):
        program.run()
    assert program.host.children == []


def test_a_guest_that_forks_while_it_unwinds_is_stopped() -> None:
    class Hostile(Program):
        def start(self) -> None:
            self.fork()
            self.fork()

    with pytest.raises(GuestTrap, match="fork called while unwinding"):
        Hostile().run()


def test_a_guest_that_never_comes_back_to_its_fork_is_stopped() -> None:
    class Hostile(Program):
        def start(self) -> None:
            if self.state == "normal":
                self.fork()

    with pytest.raises(GuestTrap, match="guest ended while rewinding"):
        Hostile().run()
