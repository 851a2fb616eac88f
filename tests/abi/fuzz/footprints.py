"""Where each system call may write in its caller's memory.

`footprint` tells it from the arguments, the memory before the call and the result. A call that is
not listed writes nothing. Every call may write the signal flag.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import unpack_from
from typing import Final

from tests.abi.fuzz.guest import SIGNAL_FLAG
from wasmsand.abi.linux.table import SYSTEM_CALLS

Words = tuple[int, int, int, int, int, int]
Ranges = list[tuple[int, int]]
Rule = Callable[[Words, bytes, int], Ranges]


def _fixed(*places: tuple[int, int]) -> Rule:
    """Each place is (index of a pointer argument, bytes written there)."""
    return lambda words, before, result: [(words[i], size) for i, size in places]


def _counted(index: int) -> Rule:
    """As many bytes as the result says."""
    return lambda words, before, result: [(words[index], max(0, result))]


def _vectors(words: Words, before: bytes, result: int) -> Ranges:
    count = words[2]
    if result <= 0 or words[1] + 8 * count > len(before):
        return []
    return [unpack_from("<II", before, words[1] + 8 * i) for i in range(count)]


def _fcntl(words: Words, before: bytes, result: int) -> Ranges:
    return [(words[2], 32)] if words[1] == 12 else []


def _ioctl(words: Words, before: bytes, result: int) -> Ranges:
    sizes = {0x5401: 36, 0x540F: 4, 0x5411: 4, 0x5413: 8, 0x541B: 4, 0x5429: 4, 0x80045430: 4}
    return [(words[2], sizes.get(words[1], 0))]


def _pollfds(words: Words, before: bytes, result: int) -> Ranges:
    return [(words[0], 8 * words[1])] if result >= 0 else []


def _fd_sets(words: Words, before: bytes, result: int) -> Ranges:
    size = (words[0] + 31) // 32 * 4
    return [(address, size) for address in words[1:4] if address] if result >= 0 else []


def _groups(words: Words, before: bytes, result: int) -> Ranges:
    return [(words[1], 4 * max(0, result))] if words[0] else []


def _prctl(words: Words, before: bytes, result: int) -> Ranges:
    return [(words[1], 16)] if words[0] == 16 else []


def _startup(words: Words, before: bytes, result: int) -> Ranges:
    return [(words[0], words[1])] if result >= 0 else []


def _lengthed(address: int, length: int, most: int = 128) -> Rule:
    """A buffer whose size is in memory; the call writes its true length there."""

    def rule(words: Words, before: bytes, result: int) -> Ranges:
        place = words[length]
        if not words[address] or place + 4 > len(before):
            return []
        room = unpack_from("<I", before, place)[0]
        return [(words[address], min(room, most)), (place, 4)]

    return rule


def _recvfrom(words: Words, before: bytes, result: int) -> Ranges:
    # With MSG_TRUNC the result is the length of the message, not of the stored part.
    data = (words[1], min(max(0, result), words[2]))
    return [data, *_lengthed(4, 5)(words, before, result)]


def _recvmsg(words: Words, before: bytes, result: int) -> Ranges:
    if result < 0 or words[1] + 28 > len(before):
        return []
    name, name_size, vectors, count, control, control_size, _ = unpack_from("<7I", before, words[1])
    filled = [unpack_from("<II", before, vectors + 8 * i) for i in range(count)]
    places = [(words[1] + 4, 4), (words[1] + 20, 8), *filled]
    if name:
        places.append((name, min(name_size, 128)))
    if control:
        places.append((control, min(control_size, 8192)))
    return places


def _epoll_events(words: Words, before: bytes, result: int) -> Ranges:
    return [(words[1], 16 * max(0, result))]


def _nullable(*places: tuple[int, int]) -> Rule:
    """As `_fixed`, for pointers that may be NULL."""
    return lambda words, before, result: [(words[i], size) for i, size in places if words[i]]


_RULES: Final[dict[str, Rule]] = {
    "getcwd": _counted(0),
    "fcntl64": _fcntl,
    "ioctl": _ioctl,
    "statfs64": _fixed((2, 88)),
    "fstatfs64": _fixed((2, 88)),
    "pipe2": _fixed((0, 8)),
    "getdents64": _counted(1),
    "_llseek": _fixed((3, 8)),
    "read": _counted(1),
    "read_until": _counted(1),
    "readv": _vectors,
    "pread64": _counted(1),
    "preadv": _vectors,
    "sendfile64": _nullable((2, 8)),
    "readlinkat": _counted(2),
    "waitid": _nullable((2, 128), (4, 72)),
    "getitimer": _fixed((1, 16)),
    "setitimer": _nullable((2, 16)),
    "sched_getaffinity": _fixed((2, 4)),
    "sigaltstack": _nullable((1, 12)),
    "rt_sigaction": _nullable((2, 20)),
    "rt_sigprocmask": _nullable((2, 8)),
    "rt_sigpending": _fixed((0, 8)),
    "getresuid": _fixed((0, 4), (1, 4), (2, 4)),
    "getresgid": _fixed((0, 4), (1, 4), (2, 4)),
    "times": _nullable((0, 16)),
    "getgroups": _groups,
    "uname": _fixed((0, 390)),
    "getrusage": _fixed((1, 72)),
    "prctl": _prctl,
    "getcpu": _nullable((0, 4), (1, 4)),
    "sysinfo": _fixed((0, 64)),
    "wait4": _nullable((1, 4), (3, 72)),
    "prlimit64": _nullable((3, 16)),
    "getrandom": _counted(0),
    "copy_file_range": _nullable((1, 8), (3, 8)),
    "statx": _fixed((4, 256)),
    "clock_gettime64": _fixed((1, 16)),
    "clock_getres_time64": _nullable((1, 16)),
    "clock_nanosleep_time64": _nullable((3, 16)),
    "pselect6_time64": _fd_sets,
    "ppoll_time64": _pollfds,
    "rt_sigtimedwait_time64": _nullable((1, 128)),
    "startup_fill": _startup,
    "sched_getparam": _fixed((1, 4)),
    "sched_rr_get_interval_time64": _fixed((1, 16)),
    "epoll_pwait": _epoll_events,
    "timerfd_settime64": _nullable((3, 32)),
    "timerfd_gettime64": _fixed((1, 32)),
    "socketpair": _fixed((3, 8)),
    "accept": _lengthed(1, 2),
    "accept4": _lengthed(1, 2),
    "getsockname": _lengthed(1, 2),
    "getpeername": _lengthed(1, 2),
    "getsockopt": _lengthed(3, 4),
    "recvfrom": _recvfrom,
    "recvmsg": _recvmsg,
    "signal_take": _fixed((0, 152)),
}
_BY_NUMBER: Final = {
    int(call.number): _RULES[call.name] for call in SYSTEM_CALLS if call.name in _RULES
}


def footprint(number: int, words: Words, before: bytes, result: int) -> Ranges:
    """The ranges (address, length) that the call may have written."""
    rule = _BY_NUMBER.get(number)
    ranges = rule(words, before, result) if rule is not None else []
    return [(SIGNAL_FLAG, 4), *ranges]


def unexplained_changes(
    number: int, words: Words, before: bytes, after: bytes, result: int
) -> list[int]:
    """The first few addresses that changed and should not have."""
    if after == before:
        return []
    return changes_outside(footprint(number, words, before, result), before, after)


def changes_outside(ranges: Ranges, before: bytes, after: bytes) -> list[int]:
    """The first few addresses outside the ranges that changed."""
    expected = bytearray(before)
    for start, length in ranges:
        end = min(start + length, len(expected))
        if start < end:
            expected[start:end] = after[start:end]
    if expected == after:
        return []
    return [i for i, byte in enumerate(expected) if byte != after[i]][:8]
