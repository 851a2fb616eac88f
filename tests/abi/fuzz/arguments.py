"""Seeded sequences of system calls with plausible, boundary and random arguments.

Half of the arguments fit what the call expects (so that calls get past their first
check), the rest are boundary values of every other kind.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from struct import pack
from typing import Final

from tests.abi.fuzz.guest import DATA, DATA_SIZE, HEAP, MEMORY, OPS, Record
from wasmsand.abi.linux.table import SYSTEM_CALLS, SystemCall

PROGRAM: Final = b"/usr/bin/fuzz"


class Data:
    """What the guest's pointers point to, and the addresses."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.places: dict[str, list[int]] = {}
        self._strings()
        self._structs()
        assert len(self.content) <= DATA_SIZE

    def add(self, kind: str, content: bytes) -> int:
        self.content += bytes(-len(self.content) % 8)
        address = DATA + len(self.content)
        self.content += content
        self.places.setdefault(kind, []).append(address)
        return address

    def _strings(self) -> None:
        for path in (
            b"/tmp/f", b"/tmp/g", b"/tmp/d", b"/tmp/d/x", b"/tmp/fifo", b"/tmp/link", b"f", b"d",
            b".", b"..", b"/", b"", b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/urandom",
            b"/dev/tty", b"/dev/ptmx", b"/dev/pts/0", b"/dev/stdin", b"/dev/fd/1", b"/proc",
            b"/proc/self/fd", b"/proc/self/fd/0", b"/proc/self/fd/3", b"/proc/self/exe",
            b"/proc/self/cwd", b"/proc/self/status", b"/proc/1/status", b"/proc/mounts",
            b"/proc/self/fdinfo/0", b"/etc/passwd", b"/root/x", b"/home/user", PROGRAM,
            b"x" * 255, b"x" * 256, b"\xff\xfe", b"a/" * 40, b"/tmp/" + b"../tmp/" * 30 + b"f",
        ):  # fmt: skip
            self.add("path", path + b"\0")
        self.add("path", b"y/" * 2100 + b"\0")  # too long

    def _structs(self) -> None:
        add = self.add
        for seconds, rest in ((0, 0), (0, 1_000_000), (1 << 40, 0), (-1, 0), (0, 1 << 30),
                              (0, -1), ((1 << 63) - 1, 999_999_999)):  # fmt: skip
            add("timespec", pack("<qq", seconds, rest) * 2)
        for timer in (
            (0, 0, 0, 0),
            (0, 500, 0, 500),
            (-1, 0, 0, 0),
            (0, 1 << 30, 0, 1),
            (1, 1, 1, 1),
        ):
            add("itimer", pack("<4i", *timer))
        # A mask that blocks SIGALRM (bit 13) comes only by chance: it can end a sequence.
        for mask in (0, 1, ~(1 << 13) & ((1 << 64) - 1), 0xFFFF_0000, 0x1FFF):
            add("mask", pack("<QQ", mask, mask))
        for handler in (0, 1, 16, 0xFFFF_FFFF):
            for flags in (0, 0x10000000, 0xFFFF_FFFF):
                add("action", pack("<IIIQ", handler, flags, 0, 0))
        a_mask = self.places["mask"][0]
        for pair in ((a_mask, 8), (0, 8), (a_mask, 0xFFFF_FFFF), (0xFFFF_FFF8, 8)):
            add("mask argument", pack("<II", *pair))
        for vectors in (
            ((HEAP, 10), (HEAP + 100, 0), (HEAP + 200, 5000)), ((HEAP, MEMORY - HEAP),) * 3,
            ((MEMORY - 8, 8), (HEAP, 8)), ((MEMORY - 8, 9), (HEAP, 8)), ((0xFFFF_FFF0, 32),) * 3,
            ((0, 0xFFFF_FFFF), (HEAP, 8), (HEAP, 8)), ((0, 0x7FFF_FFFF),) * 3,
        ):  # fmt: skip
            add("iovec", b"".join(pack("<II", *vector) for vector in vectors))
        for fds in ((0, 1, 2), (-1, 5, 99), (0x7FFF_FFFF, -0x8000_0000, 3)):
            add("pollfd", b"".join(pack("<ihh", fd, -1, -1) for fd in fds))
        for bits in (0, 1, 0b111, (1 << 64) - 1):
            add("fd_set", pack("<Q", bits).ljust(512, b"\xff" if bits >> 60 else b"\0"))
        for lock in (
            (0, 0, 0, 0), (1, 0, 0, 10), (2, 0, 0, 0), (1, 1, -1, -1), (9, 9, 9, 9),
            (1, 2, 1 << 62, 1 << 62),
        ):  # fmt: skip
            add("flock", pack("<hh4xqqi4x", *lock, 0))
        for soft, hard in ((0, 0), (100, 100), (1 << 63, 1 << 63), ((1 << 64) - 1,) * 2, (5, 1)):
            add("rlimit", pack("<QQ", soft, hard))
        for offset in (0, 5, 1 << 32, 1 << 63, (1 << 64) - 1, 1 << 44):
            add("offset", pack("<Q", offset))
        for byte in (b"\0", b"\xff", b"\x03"):
            add("settings", byte * 60)
        for words in ((0,), (1,), (5,), (0xFFFF_FFFF,), (24, 80)):
            add("word", pack(f"<{len(words)}I", *words))
        self._socket_structs()
        paths = self.places["path"]
        for pointers in (
            (),
            (paths[0],),
            (paths[0], paths[1], paths[2]),
            (0xFFFF_FFFF,),
            (paths[-1],),
        ):
            add("argv", pack(f"<{len(pointers) + 1}I", *pointers, 0))

    def _socket_structs(self) -> None:
        add = self.add
        for address in (
            pack("<H", 1) + b"/tmp/sock\0", pack("<H", 1) + b"\0name", pack("<H", 1) + b"x" * 108,
            pack("<HH4s8x", 2, 0x901F, b"\x7f\0\0\1"), pack("<HH12x", 2, 0),
            pack("<HH4s8x", 2, 0x901F, b"\x08\x08\x08\x08"),
            pack("<HHI16sI", 10, 0x901F, 0, bytes(16), 0),
            pack("<HHI16sI", 10, 0x901F, 0, bytes(15) + b"\1", 0), pack("<H", 0),
        ):  # fmt: skip
            add("sockaddr", address.ljust(128, b"\0"))
        controls = []
        for size, level, kind, fds in ((16, 1, 1, (0,)), (20, 1, 1, (3, 4)), (16, 1, 1, (-1,)),
                                       (0, 1, 1, ()), (0x7FFF_FFFF, 1, 1, ()), (16, 9, 9, (0,)),
                                       (24, 1, 2, (1, 1000, 1000))):  # fmt: skip
            controls.append(add("control", pack(f"<Iii{len(fds)}i", size, level, kind, *fds)))
        vectors = self.places["iovec"]
        for name, name_size in ((0, 0), (self.places["sockaddr"][0], 12), (HEAP, 0xFFFF_FFFF)):
            for control, control_size in ((0, 0), *((c, 24) for c in controls), (HEAP, 1 << 31)):
                add("msghdr", pack("<7I", name, name_size, vectors[0], 2, control, control_size, 0))
        add("msghdr", pack("<7I", 0, 0, vectors[-1], 0xFFFF_FFFF, 0, 0, 0))
        for events in (0, 1, 5, 0x8000_0001, 0x4000_0001, 0xFFFF_FFFF):
            add("epoll event", pack("<I4xQ", events, events))


DATA_OF_GUEST: Final = Data()

_NUMBERS: Final = (
    0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 16, 63, 64, 65, 100, 127, 128, 255, 256, 511, 512, 1023, 1024,
    1025, 4095, 4096, 4097, 65535, 65536, 65537, 1 << 20, (1 << 20) + 1, MEMORY - 1, MEMORY,
    MEMORY + 1, 0x7FFF_EFFF, 0x7FFF_F000, 0x7FFF_FFFE, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001,
    0xFFFF_EFFF, 0xFFFF_F000, 0xFFFF_F001, 0xFFFF_FF9C, 0xFFFF_FFFE, 0xFFFF_FFFF,
)  # fmt: skip
_ADDRESSES: Final = (
    0, 1, 4, 8, 4095, 4096, 65535, 65536, HEAP, HEAP + 1, HEAP + 4096, MEMORY - 4096,
    MEMORY - 256, MEMORY - 128, MEMORY - 16, MEMORY - 9, MEMORY - 8, MEMORY - 7, MEMORY - 4,
    MEMORY - 1, MEMORY, MEMORY + 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFF8, 0xFFFF_FFFF, OPS,
)  # fmt: skip
_OPEN_FLAGS: Final = (
    0, 1, 2, 3, 0o100, 0o102, 0o200, 0o301, 0o1000, 0o2001, 0o4000, 0o4001, 0o200000, 0o400000,
    0o2000000, 0o10000000, 0o20200000, 0o20200002,
)  # fmt: skip
_IOCTLS: Final = (*range(0x5401, 0x5405), 0x5409, 0x540A, 0x540B, 0x540E, 0x540F, 0x5410, 0x5411,
                  0x5413, 0x5414, 0x541B, 0x5421, 0x5422, 0x5425, 0x5429, 0x5450, 0x5451,
                  0x80045430, 0x40045431)  # fmt: skip
_FCNTLS: Final = (*range(17), 1024, 1030, 1031, 1032, 1033)
_SIGNALS: Final = (0, 1, 2, 10, 12, 13, 14, 15, 17, 18, 20, 21, 22, 25, 28, 34, 64, 65, 0xFFFF_FFFF)

PID: Final = "pid"


def _of(kind: str) -> Callable[[Random], int]:
    return lambda random: random.choice(DATA_OF_GUEST.places[kind])


def _from(values: tuple[int, ...]) -> Callable[[Random], int]:
    return lambda random: random.choice(values)


_KINDS: Final[dict[str, Callable[[Random], int]]] = {
    "f": lambda random: random.choice((3, 3, 3, 4, 5, 6, 7, 8, random.randrange(12))),
    "d": lambda random: random.choice((0xFFFF_FF9C, 0xFFFF_FF9C, 3, 4, 5)),
    "p": lambda random: random.choice(random.choice(
        (DATA_OF_GUEST.places["path"], DATA_OF_GUEST.places["path"][:10]))),
    "u": _from((1000, 0, 0xFFFF_FFFF, 0x8000_0000)),
    "b": lambda random: HEAP + random.randrange(8) * 512,
    "n": lambda random: random.choice((0, 1, 10, 100, 1000, 4096, 10_000, 65536)),
    "s": lambda random: random.randrange(4),
    "t": _of("timespec"), "m": _of("mask"), "M": _of("mask argument"), "v": _of("iovec"),
    "a": _of("action"), "i": _of("itimer"), "q": _of("pollfd"), "F": _of("fd_set"),
    "k": _of("flock"), "l": _of("rlimit"), "o": _of("offset"), "T": _of("settings"),
    "w": _of("word"), "A": _of("argv"),
    "N": _of("sockaddr"), "H": _of("msghdr"), "E": _of("epoll event"),
    "D": _from((1, 1, 2, 2, 10, 16, 0)), "K": _from((1, 2, 0o4001, 0o4002, 0o2000001, 5, 3)),
    "L": _from((12, 16, 28, 110, 2, 0, 128)), "G": _from((0, 0x40, 0x42, 0x140, 0x4040, 1, 0x2000)),
    "V": _from((0, 1, 6, 17, 41)),
    "X": _from((1, 2, 3, 4, 7, 8, 9, 13, 15, 17, 26, 30, 38, 39, 66, 67)),
    "O": _from(_OPEN_FLAGS), "I": _from(_IOCTLS), "C": _from(_FCNTLS), "S": _from(_SIGNALS),
    "W": _from((0xFFFF_FFFF, 0)),
    "8": lambda random: 8,
    "0": lambda random: 0,
    "z": _from((0, 1, 10, 0o644, 0o755, 0o7777)),
}  # fmt: skip
"""What makes a suitable argument, by a letter."""

_SHAPES: Final = {
    "getcwd": "bn", "dup": "f", "dup3": "ffO", "fcntl64": "fCk", "ioctl": "fIT", "flock": "fs",
    "mknodat": "dpz0", "mkdirat": "dpz", "unlinkat": "dp0", "symlinkat": "pdp", "linkat": "dpdp0",
    "statfs64": "pnb", "fstatfs64": "fnb", "truncate64": "pn0", "ftruncate64": "fn0",
    "fallocate": "fsn0n0", "faccessat": "dps", "chdir": "p", "fchdir": "f", "chroot": "p",
    "fchmod": "fz", "fchmodat": "dpz", "fchownat": "dpuu0", "fchown": "fuu", "openat": "dpOz",
    "close": "f", "pipe2": "bO", "getdents64": "fbn", "_llseek": "f0nbs", "read": "fbn",
    "read_until": "fbns", "write": "fbn", "readv": "fvs", "writev": "fvs", "pread64": "fbnn0",
    "pwrite64": "fbnn0", "preadv": "fvsn0", "pwritev": "fvsn0", "sendfile64": "ffon",
    "readlinkat": "dpbn",
    "fsync": "f", "fdatasync": "f", "waitid": "00bzb", "getitimer": "0b", "setitimer": "0ib",
    "sched_getaffinity": "0nb", "kill": "zS", "tkill": "zS", "tgkill": "zzS",
    "sigaltstack": "bb", "rt_sigsuspend": "m8", "rt_sigaction": "Sab8", "rt_sigprocmask": "smb8",
    "rt_sigpending": "b8", "setpriority": "szz", "getpriority": "sz", "getresuid": "bbb",
    "getresgid": "bbb", "times": "b", "setpgid": "00", "setuid": "u", "setgid": "u",
    "setreuid": "uu", "setregid": "uu", "setresuid": "uuu", "setresgid": "uuu",
    "getgroups": "sb", "setgroups": "sb",
    "uname": "b", "sethostname": "bs", "getrusage": "sb", "prctl": "zb", "getcpu": "bb",
    "sysinfo": "b", "clone": "z", "execve": "pAA", "wait4": "Wbsb", "prlimit64": "0zlb",
    "syncfs": "f", "renameat2": "dpdp0", "getrandom": "bns", "execveat": "dpAA0",
    "copy_file_range": "fofon0", "statx": "dpznb", "clock_gettime64": "sb",
    "clock_settime64": "st", "clock_getres_time64": "sb", "clock_nanosleep_time64": "sstb",
    "utimensat_time64": "dpt0", "pselect6_time64": "nFFFtM", "ppoll_time64": "qstm8",
    "rt_sigtimedwait_time64": "mbt8", "close_range": "ff0", "faccessat2": "dpsz",
    "fchmodat2": "dpzz", "startup_fill": "bn", "signal_take": "b", "signal_return": "m",
    "eventfd2": "nK", "epoll_create1": "0", "epoll_ctl": "fsfE", "epoll_pwait": "fbs0m8",
    "signalfd4": "fm8K", "timerfd_create": "sK", "timerfd_settime64": "fstb",
    "timerfd_gettime64": "fb",
    "socket": "DK0", "socketpair": "DK0b", "bind": "fNL", "listen": "fs", "accept": "fbw",
    "accept4": "fbwK", "connect": "fNL", "getsockname": "fbw", "getpeername": "fbw",
    "sendto": "fbnGNL", "recvfrom": "fbnGbw", "setsockopt": "fVXbL", "getsockopt": "fVXbw",
    "shutdown": "fs", "sendmsg": "fHG", "recvmsg": "fHG", "pidfd_open": "z0",
    "pidfd_send_signal": "fS00", "memfd_create": "ps", "sched_setparam": "0w",
    "sched_setscheduler": "0sw", "sched_getparam": "0b", "sched_setaffinity": "0nw",
    "sched_rr_get_interval_time64": "0b",
}  # fmt: skip

_RARE: Final = frozenset({"exit", "exit_group", "execve", "execveat", "close_range", "kill",
                          "tkill", "tgkill", "rt_sigsuspend"})  # fmt: skip
"""Calls that may end a sequence or make the rest of it less interesting."""
_TAKES_PID: Final = frozenset({"kill", "tkill", "tgkill", "prlimit64", "getpgid", "getsid",
                               "setpgid", "wait4", "pidfd_open", "sched_getaffinity",
                               "getpriority"})  # fmt: skip
_VFORK: Final = 0x4111
SWEEP_SEEDS: Final = 32
_SOCKET_MAKERS: Final = tuple(
    call for call in SYSTEM_CALLS if call.name in ("socket", "socketpair", "epoll_create1", "bind")
)
_HANDLED: Final = tuple(call for call in SYSTEM_CALLS if call.function is not None)


def _any(random: Random) -> int:
    """A value of any kind."""
    kind = random.randrange(6)
    if kind == 0:
        return random.choice(_NUMBERS)
    if kind == 1:
        return random.choice(_ADDRESSES)
    if kind == 2:
        return 1 << random.randrange(32)
    if kind == 3:
        return random.getrandbits(32)
    if kind == 4:
        return random.choice(random.choice(list(DATA_OF_GUEST.places.values())))
    return random.choice(list(_KINDS.values()))(random)


def _child(random: Random) -> list[Record]:
    """A vfork whose child runs the program again, or exits: something to wait for."""
    vfork: Record = (220, _VFORK, 0, 0, 0, 0, 0, 0)
    program = DATA_OF_GUEST.places["path"][34]
    execve: Record = (221, program, 0, 0, 0, 0, 0, 0)
    leave: Record = (94, random.randrange(256), 0, 0, 0, 0, 0, 0)
    return [vfork, random.choice((execve, leave))]


def _some_call(random: Random) -> Record:
    if random.randrange(25) == 0:  # a number that need not be a call
        number = random.choice((random.randrange(460), 1000 + random.randrange(8), _any(random)))
        words = [_any(random) for _ in range(6)]
        return (number, *words, 0)  # type: ignore[return-value]
    call = random.choice(_HANDLED)
    if call.name in _RARE and random.randrange(8):
        call = random.choice(_HANDLED)
    return _with_arguments(random, call)


def _with_arguments(random: Random, call: SystemCall) -> Record:
    shape = _SHAPES.get(call.name, "").ljust(6, "0")
    fitting = random.choice((0.0, 0.5, 0.9, 1.0))
    words = [
        _KINDS[letter](random) if random.random() < fitting else _any(random) for letter in shape
    ]
    if call.name == "clone" and random.randrange(2):
        words[0] = _VFORK
    own_pid = random.randrange(4) if call.name in _TAKES_PID else 0
    return (call.number, *words, own_pid)  # type: ignore[return-value]


def _sweep(seed: int) -> list[SystemCall]:
    """A part of all calls; `SWEEP_SEEDS` consecutive seeds together make every call."""
    turns = -(-len(_HANDLED) // SWEEP_SEEDS)
    calls = [_HANDLED[(seed + turn * SWEEP_SEEDS) % len(_HANDLED)] for turn in range(turns)]
    return sorted(calls, key=lambda call: call.name in _RARE)


def sequence(seed: int, length: int) -> list[Record]:
    """The calls of one seed, beginning with files that later calls may find."""
    random = Random(seed)
    places = DATA_OF_GUEST.places["path"]
    calls: list[Record] = [
        (34, 0xFFFF_FF9C, places[2], 0o755, 0, 0, 0, 0),  # mkdir /tmp/d
        (33, 0xFFFF_FF9C, places[4], 0o10644, 0, 0, 0, 0),  # mkfifo /tmp/fifo
        (36, places[0], 0xFFFF_FF9C, places[5], 0, 0, 0, 0),  # symlink /tmp/link
        (56, 0xFFFF_FF9C, places[0], 0o102, 0o644, 0, 0, 0),  # open /tmp/f
        (56, 0xFFFF_FF9C, places[2], 0o200000, 0, 0, 0, 0),  # open /tmp/d
        (59, HEAP, 0, 0, 0, 0, 0, 0),  # pipe
        (56, 0xFFFF_FF9C, places[17], 2, 0, 0, 0, 0),  # open /dev/ptmx
        (56, 0xFFFF_FF9C, places[18], random.choice((2, 0o402)), 0, 0, 0, 0),  # and its slave
    ]
    if random.randrange(2):
        calls += [_with_arguments(random, call) for call in _SOCKET_MAKERS]
    calls += [_with_arguments(random, call) for call in _sweep(seed)]
    while len(calls) < length:
        calls += _child(random) if random.randrange(60) == 0 else [_some_call(random)]
    return calls
