"""Graphs of kernel objects: epolls that watch epolls, sockets that carry sockets.

An input is a program of two-byte and three-byte steps on the descriptors of a few processes.
The calls are made from Python (`tests/abi/caller.py`), so a step takes microseconds. Rules: no
call waits (all are non-blocking); a call returns a number or minus an errno; a call takes less
than `_CALL_SECONDS`; when all processes have ended, no object is on the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from struct import pack
from typing import Final

from fuzz.target import Finding, Source, Target
from tests.abi.caller import Caller, Sandbox
from wasmsand.abi.context import ProcessEnded
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.limits import Limits

_CALL_SECONDS: Final = 2.0
"""A call takes milliseconds; the bound is wide because other processes use the CPU too."""
_PROCESSES: Final = 6
_NONBLOCK: Final = 0o4000
_LIMITS: Final = Limits(max_open_files=256, max_processes=16, memory_limit_bytes=32 << 20)
_EVENTS: Final = (1, 4, 5, 0x8000_0001, 0x4000_0001, 0x2000, 0xFFFF_FFFF, 0)
_FAMILIES: Final = ((1, 1), (1, 2), (1, 5), (2, 1), (2, 2), (10, 1), (10, 2), (16, 3))

Step = Callable[["ObjectGraphs", Caller, Source], int]


class ObjectGraphs(Target):
    """See above."""

    name = "graphs"
    about = "epolls, sockets and pipes that refer to each other"
    longest = 4096

    def seeds(self) -> Iterable[bytes]:
        names = [step.__name__ for step in _STEPS]
        epoll, watch = names.index("_epoll"), names.index("_watch")
        wait, pair, send = names.index("_wait"), names.index("_pair"), names.index("_send_fd")
        # A chain of epolls, a fan-out, a ring.
        chain = b"".join(bytes([0, epoll]) for _ in range(120))
        yield chain + b"".join(bytes([0, watch, n, n + 1, 0]) for n in range(119))
        fan = b"".join(bytes([0, epoll]) for _ in range(60))
        for level in range(0, 50, 10):
            for above in range(10):
                for below in range(10):
                    fan += bytes([0, watch, level + above, level + 10 + below, 0])
        yield (fan + bytes([0, wait, 0]))[: self.longest]
        yield bytes([0, pair, 0, 0, pair, 0]) + bytes([0, send, 0, 1, 0, send, 2, 3]) * 40
        for number in range(len(_STEPS)):
            yield bytes([0, pair, 0, 0, epoll, 0, watch, 2, 0, 0, 0, number, 1, 2, 0])

    def run(self, data: bytes) -> None:
        sandbox = Sandbox(_LIMITS)
        ledger = sandbox.kernel.ledger
        base = ledger.objects + ledger.queued
        source = Source(data)
        self._processes = [sandbox.process()]
        try:
            while not source.ended:
                place = source.byte() % len(self._processes)
                step = source.choice(_STEPS)
                began = time.monotonic()
                try:
                    result = step(self, self._processes[place], source)
                except ProcessEnded:
                    del self._processes[place]
                    if not self._processes:
                        break
                    continue
                taken = time.monotonic() - began
                if taken > _CALL_SECONDS:
                    raise Finding("long-call", f"{step.__name__} took {taken:.1f} s")
                if not -4095 <= result <= 0x7FFF_FFFF or (
                    result < 0 and -result not in Errno.__members__.values()
                ):
                    raise Finding("wrong-call", f"{step.__name__} returned {result}")
        finally:
            with sandbox.lock:
                sandbox.kernel.kill_all()
                used = ledger.objects + ledger.queued
        if used != base:
            raise Finding("left-behind", f"the ledger still holds {used - base} bytes")

    def fork(self, caller: Caller) -> int:
        """Add a process that has the caller's descriptors."""
        if caller.process.dead:  # a hang-up ended it; the machine checks that before it forks
            raise ProcessEnded
        if len(self._processes) >= _PROCESSES:
            return 0
        child = caller.fork()
        self._processes.append(child)
        return child.process.pid


def _fd(source: Source) -> int:
    return source.byte() % 250


def _epoll(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("epoll_create1", 0)


def _watch(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    epoll, fd = _fd(source), _fd(source)
    event = caller.pack("I4xQ", source.choice(_EVENTS), 7)
    return caller.call("epoll_ctl", epoll, 1, fd, event)


def _change_watch(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    epoll, fd = _fd(source), _fd(source)
    event = caller.pack("I4xQ", source.choice(_EVENTS), 7)
    return caller.call("epoll_ctl", epoll, source.choice((2, 3)), fd, event)


def _wait(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("epoll_pwait", _fd(source), caller.room(16 * 64), 64, 0, 0, 8)


def _poll(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    first = _fd(source)
    fds = b"".join(pack("<ihh", first + n, 0x7F, 0) for n in range(8))
    return caller.call("ppoll_time64", caller.put(fds), 8, caller.pack("qq", 0, 0), 0, 8)


def _pair(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    _family, kind = source.choice(_FAMILIES[:3])
    return caller.call("socketpair", 1, kind | _NONBLOCK, 0, caller.room(8))


def _socket(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    family, kind = source.choice(_FAMILIES)
    return caller.call("socket", family, kind | _NONBLOCK, 0)


def _address(source: Source) -> bytes:
    return source.choice(
        (
            pack("<H", 1) + b"\0name",
            pack("<H", 1) + b"/tmp/sock\0",
            pack("<HH4s8x", 2, 0x901F, b"\x7f\0\0\1"),
            pack("<HH4s8x", 2, 0, b"\x7f\0\0\1"),
            pack("<HHI16sI", 10, 0x911F, 0, bytes(15) + b"\1", 0),
        )
    )


def _bind(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    fd, address = _fd(source), _address(source)
    return caller.call("bind", fd, caller.put(address), len(address))


def _connect(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    fd, address = _fd(source), _address(source)
    return caller.call("connect", fd, caller.put(address), len(address))


def _listen(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("listen", _fd(source), source.byte() * 32)


def _accept(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("accept4", _fd(source), 0, 0, _NONBLOCK)


def _shutdown(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("shutdown", _fd(source), source.byte() % 3)


def _send(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    fd, size = _fd(source), 1 << source.byte() % 17
    return caller.call("sendto", fd, caller.room(size), size, 0x4040, 0, 0)


def _receive(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    fd, size = _fd(source), 1 << source.byte() % 17
    return caller.call("recvfrom", fd, caller.room(size), size, 0x40, 0, 0)


def _send_fd(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    socket, fd = _fd(source), _fd(source)
    control = caller.pack("Iiii", 16, 1, 1, fd)
    vector = caller.vectors((caller.put(b"x"), 1))
    return caller.call(
        "sendmsg", socket, caller.pack("7I", 0, 0, vector, 1, control, 16, 0), 0x4040
    )


def _receive_fd(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    vector = caller.vectors((caller.room(8), 8))
    header = caller.pack("7I", 0, 0, vector, 1, caller.room(64), 64, 0)
    return caller.call("recvmsg", _fd(source), header, 0x40)


def _pipe(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("pipe2", caller.room(8), _NONBLOCK)


def _write(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    fd, size = _fd(source), 1 << source.byte() % 17
    return caller.call("write", fd, caller.room(size), size) if fd > 2 else 0


def _read(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    fd, size = _fd(source), 1 << source.byte() % 17
    return caller.call("read", fd, caller.room(size), size) if fd > 2 else 0


def _event(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("eventfd2", source.byte(), _NONBLOCK)


def _timer(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    fd = caller.call("timerfd_create", 1, _NONBLOCK)
    if fd >= 0:
        times = caller.pack("4q", 0, source.byte(), 1 + source.byte() % 2 * 2**30, 0)
        caller.call("timerfd_settime64", fd, 0, times, 0)
    return fd


def _alarm(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    times = caller.pack("4i", 0, 0, 1000 + source.byte(), 0)
    return caller.call("setitimer", source.byte() % 3, times, 0)


def _signals(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    mask = caller.pack("Q", source.number(2))
    return caller.call("signalfd4", 0xFFFF_FFFF, mask, 8, _NONBLOCK)


def _pidfd(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("pidfd_open", source.byte() % 8, 0)


def _dup(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("dup", _fd(source))


def _dup_to(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("dup3", _fd(source), _fd(source), 0)


def _close(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("close", _fd(source))


def _close_many(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("close_range", 3 + _fd(source), 3 + _fd(source), 0)


def _fork(graphs: ObjectGraphs, caller: Caller, source: Source) -> int:
    return graphs.fork(caller)


def _exit(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("exit_group", source.byte())


def _splice(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("splice", _fd(source), 0, _fd(source), 0, 65536, 2)


def _option(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    value = caller.pack("II", source.number(4), 0)
    return caller.call(
        "setsockopt", _fd(source), source.choice((1, 6, 41)), source.byte(), value, 8
    )


def _terminal(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("openat", -100, b"/dev/ptmx", _NONBLOCK | 2, 0)


def _open(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    path = source.choice((b"/dev/pts/0", b"/proc/self/fd/3", b"/tmp/fifo", b"/dev/fd/4"))
    return caller.call("openat", -100, path, _NONBLOCK | 2, 0)


def _fifo(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("mknodat", -100, b"/tmp/fifo", 0o10666, 0)


def _owner(_: ObjectGraphs, caller: Caller, source: Source) -> int:
    return caller.call("fcntl64", _fd(source), source.choice((8, 4, 1031, 1032)), source.number(4))


_STEPS: Final[tuple[Step, ...]] = (
    _epoll, _watch, _change_watch, _wait, _poll, _pair, _socket, _bind, _connect, _listen,
    _accept, _shutdown, _send, _receive, _send_fd, _receive_fd, _pipe, _write, _read, _event,
    _timer, _alarm, _signals, _pidfd, _dup, _dup_to, _close, _close_many, _fork, _exit, _splice,
    _option, _terminal, _open, _fifo, _owner,
)  # fmt: skip
"""The order gives inputs their meaning: only append."""
