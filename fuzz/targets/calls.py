"""A guest's calls, in both ABIs: the guests of `tests/abi/fuzz` make the calls that an input lists.

An input is one byte, which chooses user and streams, and the records that the guest reads. Rules:
`tests/abi/fuzz/watching.py` checks every call; afterwards the machine has given everything back
and still runs programs, unless root has destroyed them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, ClassVar, Final

from fuzz.machines import LINUX_PROGRAM, WASI_PROGRAM, check_alive, new_machine
from fuzz.oracles import check_given_back
from fuzz.target import Finding, Target
from tests.abi.fuzz import guest as linux_guest
from tests.abi.fuzz import wasi_guest
from tests.abi.fuzz.arguments import SWEEP_SEEDS, sequence
from tests.abi.fuzz.wasi_calls import wasi_sequence
from tests.abi.fuzz.watching import LinuxWatch, WasiWatch
from wasmsand.engine.protocol import Arguments
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.machine import CommandRequest, Machine
from wasmsand.machine.thread_driver import ThreadDriver

_SECONDS: Final = 0.3
"""Ends a sequence that sleeps or stops itself."""
_CALLS: Final = 60
_ROOT, _TERMINAL = 1, 2


class _Calls(Target):
    program: ClassVar[bytes]
    file: ClassVar[str]
    record: ClassVar[int]
    """The size of one record."""
    longest = 1 + linux_guest.OPS_SIZE // 4

    @abstractmethod
    def some_calls(self, seed: int, length: int) -> bytes:
        """The records of a new sequence."""

    def mutate(self, random: Random, data: bytes, other: bytes) -> bytes:
        flags, size = data[:1], self.record
        records = [data[place : place + size] for place in range(1, len(data), size)]
        for _ in range(1 << random.randrange(4)):
            place = random.randrange(len(records) + 1)
            match random.randrange(7):
                case 0:
                    del records[place : place + 1 + random.randrange(4)]
                case 1 | 2:
                    fresh = self.some_calls(random.getrandbits(32), 24)
                    start = random.randrange(len(fresh) // size) * size
                    records[place:place] = [fresh[start : start + size]]
                case 3:
                    start = 1 + random.randrange(len(other) // size + 1) * size
                    piece = other[start : start + 8 * size]
                    records[place:place] = [piece[i : i + size] for i in range(0, len(piece), size)]
                case 4 if records:
                    records.append(random.choice(records))
                case 5 if records:
                    place %= len(records)
                    words = bytearray(records[place])
                    index = random.randrange(1, size // 4) * 4
                    value = random.choice((0, 1, 3, 4, 5, 6, 7, 8, 2**31, 2**32 - 1))
                    words[index : index + 4] = value.to_bytes(4, "little")
                    records[place] = bytes(words)
                case _:
                    flags = bytes([random.randrange(4)])
        return flags + b"".join(records)

    def run(self, data: bytes) -> None:
        flags = data[0] if data else 0
        uid = 0 if flags & _ROOT else 1000
        machine = new_machine(uid=uid)
        base = machine.kernel.ledger.used
        machine.files.write(self.file, data[1:])
        try:
            if flags & _TERMINAL:
                self._on_a_terminal(machine)
            else:
                stdin = b"some input\n" * 100
                words = (self.program.decode(),)
                machine.run(CommandRequest(words, {"A": "1"}, "/tmp", _SECONDS, stdin))
            check_given_back(machine, base)
            if uid:
                check_alive(machine)
        finally:
            machine.close()
        self.check_watched()

    @abstractmethod
    def check_watched(self) -> None:
        """Raise `Finding` for a call that did what it must not do."""

    def _on_a_terminal(self, machine: Machine) -> None:
        terminal = machine.open_terminal(CommandRequest((self.program.decode(), "x"), {}, "/tmp"))
        try:
            terminal.write(b"some input\nhalf a line")
        except KernelError as error:
            if error.errno is not Errno.EPIPE:  # the program has ended already
                raise
        terminal.wait(_SECONDS)
        terminal.resize(10, 20)
        terminal.close()


def _complain(wrong: list[str]) -> None:
    if wrong:
        first = wrong[0]
        wrong.clear()
        raise Finding("wrong-call", first.partition(": ")[2])


class LinuxCalls(_Calls):
    """See above."""

    name = "syscalls"
    about = "Linux system calls of a guest"
    program = LINUX_PROGRAM
    file = linux_guest.OPS_PATH.decode()
    record = 32

    def __init__(self) -> None:
        self._watch = watch = LinuxWatch()
        original = ThreadDriver.syscall

        def syscall(driver: ThreadDriver, nr: int, arguments: Arguments) -> int:
            return watch.check(driver, nr, arguments, original)

        ThreadDriver.syscall = syscall  # type: ignore[assignment,method-assign]

    def seeds(self) -> Iterable[bytes]:
        for seed in range(SWEEP_SEEDS):
            yield bytes([seed % 4]) + self.some_calls(seed, _CALLS)

    def some_calls(self, seed: int, length: int) -> bytes:
        return linux_guest.encode(sequence(seed, length))

    def check_watched(self) -> None:
        _complain(self._watch.wrong)


class WasiCalls(_Calls):
    """See above."""

    name = "wasi"
    about = "WASI calls of a guest"
    program = WASI_PROGRAM
    file = "/" + wasi_guest.OPS_NAME.decode()
    record = 8 * wasi_guest.RECORD_WORDS

    def __init__(self) -> None:
        self._watch = watch = WasiWatch()
        original = ThreadDriver.invoke

        def invoke(driver: ThreadDriver, handler: Callable[..., Any], *arguments: int) -> int:
            return watch.check(driver, handler, arguments, original)

        ThreadDriver.invoke = invoke  # type: ignore[assignment,method-assign]

    def seeds(self) -> Iterable[bytes]:
        for seed in range(16):
            yield bytes([seed % 4]) + self.some_calls(seed, _CALLS)

    def some_calls(self, seed: int, length: int) -> bytes:
        return wasi_guest.encode(wasi_sequence(seed, length))

    def check_watched(self) -> None:
        _complain(self._watch.wrong)
