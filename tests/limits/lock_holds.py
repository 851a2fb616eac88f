"""Measures how long the sandbox's lock is held.

Owns `MeasuredLock` and `House`, a kernel full of things that make calls expensive: a large
directory, a file of thousands of pieces, chains of links, a thousand descriptors, nested epolls,
long arguments. Rule: the length of a hold is the CPU time of the thread that has the lock, so that
a busy machine does not change it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from struct import pack
from threading import Thread
from typing import Final

from tests.abi.caller import Caller, PythonInstance, Sandbox
from wasmsand.abi.context import ProcessEnded
from wasmsand.abi.wasi.table import WasiFunction
from wasmsand.kernel.limits import IOV_MAX, Limits
from wasmsand.kernel.process.life import fork, reap
from wasmsand.kernel.process.thread import ProcessState
from wasmsand.machine.lock import SandboxLock

ENTRIES: Final = 30_000
PIECES: Final = 20_000
LINKS: Final = 39
DESCRIPTORS: Final = 1000
SPACE: Final = 96 << 20
BUFFER: Final = 48 << 20
"""The second half of memory is one large buffer."""


class MeasuredLock(SandboxLock):
    """Remembers the longest hold, in nanoseconds of CPU time."""

    __slots__ = ("_since", "longest")

    def __init__(self) -> None:
        super().__init__()
        self.longest = 0
        self._since = 0
        take, let_go = self.acquire, self.release

        def acquire(blocking: bool = True, timeout: float = -1) -> bool:
            got = take(blocking, timeout)
            if got:
                self._since = time.thread_time_ns()
            return got

        def release() -> None:
            self.longest = max(self.longest, time.thread_time_ns() - self._since)
            let_go()

        self.acquire = acquire
        self.release = release


class House(Sandbox):
    """A sandbox that is full of expensive objects."""

    def __init__(self) -> None:
        super().__init__(Limits(max_inodes=1 << 20, fs_limit_bytes=1 << 30))
        self.measured = MeasuredLock()
        self.lock = self.measured
        self._fill_files()
        self.owner = self._owner()
        self.descriptors = self._open()
        self.strings = self._store_strings()

    def _fill_files(self) -> None:
        caller = self.process()
        caller.ok("mkdirat", -100, b"/tmp/large", 0o755)
        for number in range(ENTRIES):
            caller.ok("mknodat", -100, b"/tmp/large/%05d" % number, 0o100644, 0)
        for number in range(LINKS):
            there = b"./" * 2000 + (b"link%d" % (number + 1))
            caller.ok("symlinkat", there, -100, b"/tmp/link%d" % number)
        caller.ok("mkdirat", -100, b"/tmp/link%d" % LINKS, 0o755)
        file = caller.ok("openat", -100, b"/tmp/pieces", 0o102, 0o644)
        byte = caller.put(b"x")
        for number in range(PIECES):
            caller.ok("pwrite64", file, byte, 1, number * 16384, 0)
        caller.exit()

    def _owner(self) -> Caller:
        process = self.process().process
        instance = PythonInstance(SPACE)
        return Caller(self.kernel, self.lock, self.loader, process, instance)

    def _open(self) -> list[int]:
        """Open a descriptor of every kind, then many more."""
        caller = self.owner
        flags = 0o4002  # O_RDWR | O_NONBLOCK
        paths = (b"/tmp/pieces", b"/dev/urandom", b"/dev/zero", b"/dev/null", b"/dev/ptmx")
        found = [caller.ok("openat", -100, path, flags, 0) for path in paths]
        found.append(caller.ok("openat", -100, b"/tmp/huge", 0o4102, 0o644))
        caller.ok("ftruncate64", found[-1], 0, 1 << 10)
        found.append(caller.ok("openat", -100, b"/tmp/large", 0o204000, 0))
        pair = caller.room(8)
        caller.ok("pipe2", pair, 0o4000)
        found += caller.unpack("II", pair)
        caller.ok("socketpair", 1, 0o4001, 0, pair)
        found += caller.unpack("II", pair)
        caller.ok("socketpair", 1, 0o4002, 0, pair)
        found += caller.unpack("II", pair)
        found.append(self._listener())
        found.append(self._epolls(found[7]))
        found.append(caller.ok("eventfd2", 0, 0o4000))
        found.append(caller.ok("timerfd_create", 1, 0o4000))
        while caller.call("dup", found[0]) < DESCRIPTORS:
            pass
        return found

    def _listener(self) -> int:
        caller = self.owner
        listener = caller.ok("socket", 2, 0o4001, 0)
        address = caller.put(pack("<HH4s8x", 2, 0x901F, b"\x7f\0\0\1"))
        caller.ok("bind", listener, address, 16)
        caller.ok("listen", listener, 4096)
        for _ in range(300):
            client = caller.ok("socket", 2, 0o4001, 0)
            caller.call("connect", client, address, 16)
        return listener

    def _epolls(self, watched: int) -> int:
        """An epoll that watches many others, which watch one pipe."""
        caller = self.owner
        event = caller.put(pack("<I4xQ", 1, 1))
        outer = caller.ok("epoll_create1", 0)
        for _ in range(200):
            inner = caller.ok("epoll_create1", 0)
            caller.call("epoll_ctl", inner, 1, watched, event)
            caller.call("epoll_ctl", outer, 1, inner, event)
        return outer

    def _store_strings(self) -> dict[str, list[int]]:
        caller = self.owner
        first = caller.string(b"x")
        many = pack("<100000I", *([first] * 100_000)) + bytes(4)
        vectors = pack(f"<{2 * IOV_MAX}I", *((BUFFER, 40 << 20) * IOV_MAX))
        small = pack(f"<{2 * IOV_MAX}I", *((BUFFER, 1000) * IOV_MAX))
        place = BUFFER - (8 << 20)
        space = caller.space
        found: dict[str, list[int]] = {}
        for letter, content in (("A", many), ("v", vectors), ("v", small)):
            space[place : place + len(content)] = content
            found.setdefault(letter, []).append(place)
            place += len(content) + 16
        polled = b"".join(pack("<ihh", n % DESCRIPTORS, -1, 0) for n in range(4096))
        header = pack("<7I", 0, 0, found["v"][1], IOV_MAX, 0, 0, 0)
        for letter, content in (
            ("q", polled), ("H", header), ("E", pack("<I4xQ", 1, 1)), ("F", b"\xff" * 512),
            ("t", pack("<4q", 0, 1, 0, 1)), ("i", pack("<4i", 0, 1, 0, 1)), ("m", bytes(16)),
            ("N", pack("<HH4s8x", 2, 0x901F, b"\x7f\0\0\1") + bytes(16)),
            ("k", pack("<hh4xqqi4x", 1, 0, 0, 1, 0)), ("l", pack("<QQ", 1000, 1000)),
            ("o", pack("<Q", 0)), ("w", pack("<I", 16)),
            ("p", b"/tmp/link0\0"), ("p", b"./" * 2047 + b"\0"), ("p", b"/tmp/pieces\0"),
            ("p", b"/tmp/huge\0"), ("p", b"/tmp/large\0"), ("p", b"/tmp/large/new\0"),
            ("p", b"../tmp/" * 580 + b"x\0"), ("p", b"/proc/self/fd\0"), ("p", b"/usr/bin/prog\0"),
            ("p", b"/proc/net/tcp\0"), ("p", b"/proc/self/cmdline\0"),
        ):  # fmt: skip
            place = (place + 7) & ~7
            space[place : place + len(content)] = content
            found.setdefault(letter, []).append(place)
            place += len(content)
        assert place < BUFFER
        return found

    def words(self, shape: str, random: Random) -> list[int]:
        """Expensive arguments for a call, by the letters of the fuzzer's shapes."""
        makers: dict[str, Callable[[], int]] = {
            "f": lambda: random.choice(self.descriptors),
            "d": lambda: 0xFFFF_FF9C,
            "b": lambda: BUFFER,
            "n": lambda: random.choice((40 << 20, 0x7FFF_F000, 1 << 20, 4096, 1)),
            "s": lambda: random.choice((0, 1, 2, 3, 1024, 4096, IOV_MAX)),
            "z": lambda: random.choice((0, 1, 0o644)),
            "O": lambda: random.choice((0o4000, 0o4002, 0o4101)),
            "C": lambda: random.choice((0, 5, 6, 7, 1031, 1030)),
            "8": lambda: 8,
            "L": lambda: 16,
            "K": lambda: 0o4001,
            "D": lambda: random.choice((1, 2)),
        }
        result = []
        for letter in shape.ljust(6, "0"):
            if letter in self.strings:
                result.append(random.choice(self.strings[letter]))
            elif letter in makers:
                result.append(makers[letter]())
            else:
                result.append(0)
        return result

    def worst(self, name: str, shape: str, tries: int) -> tuple[int, list[int]]:
        """The longest hold in `tries` calls with such arguments, and its arguments."""
        random = Random(name)
        return max(
            self._hold(lambda caller, words: caller.call(name, *words), self.words(shape, random))
            for _ in range(tries)
        )

    def worst_wasi(self, row: WasiFunction, shape: str, tries: int) -> tuple[int, list[int]]:
        """The same for a function of WASI."""
        random = Random(row.name)
        return max(
            self._hold(
                lambda caller, words: caller.driver.invoke(row.handler, *words),
                self._wasi_words(shape, random),
            )
            for _ in range(tries)
        )

    def _wasi_words(self, shape: str, random: Random) -> list[int]:
        """`p` and `l` are a path and its length; directories are preopened from 3 on."""
        result = []
        path = random.choice(self.strings["p"])
        for letter in shape:
            if letter == "p":
                result.append(path)
            elif letter == "l":
                result.append(self.owner.space.index(0, path) - path)
            elif letter == "v":
                result.append(random.choice(self.strings["v"]))
            elif letter in "bs":
                result.append(BUFFER)
            elif letter == "c":
                result.append(IOV_MAX)
            elif letter in "no":
                result.append(random.choice((40 << 20, 1 << 20, 4096, 0)))
            elif letter == "R":
                result.append((1 << 30) - 1)
            else:
                result.append(random.choice((3, 4, 5, 0)))
        return result

    def _hold(
        self, make: Callable[[Caller, list[int]], int], words: list[int]
    ) -> tuple[int, list[int]]:
        """The longest hold during one call and the end of the process that made it."""
        caller = self._child()
        self.measured.longest = 0
        thread = Thread(target=_quietly, args=(make, caller, words), daemon=True)
        thread.start()
        while thread.is_alive() and caller.process.state is not ProcessState.SLEEPING:
            thread.join(0.0005)
        with self.lock:
            self.kernel.exit(caller.process, 9)
            for child in list(self.owner.process.children.values()):
                self.kernel.exit(child, 9)
                reap(self.kernel, child)
        thread.join(20)
        assert not thread.is_alive(), words
        return self.measured.longest, words

    def _child(self) -> Caller:
        """A copy of the owner that shares its memory; what a call writes does not matter."""
        with self.lock:
            process = fork(self.kernel, self.owner.guest.thread)
        instance = PythonInstance(0)
        instance.space = self.owner.space
        return Caller(self.kernel, self.lock, self.loader, process, instance)


def _quietly(make: Callable[[Caller, list[int]], int], caller: Caller, words: list[int]) -> None:
    try:
        make(caller, words)
    except ProcessEnded:
        pass
