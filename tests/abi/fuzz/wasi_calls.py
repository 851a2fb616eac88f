"""Seeded sequences of WASI calls with plausible, boundary and random arguments, and the places
in the caller's memory that each function may write.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from struct import pack, unpack_from
from typing import Final

from tests.abi.fuzz.guest import DATA, DATA_SIZE, HEAP, MEMORY, OPS
from tests.abi.fuzz.wasi_guest import Record
from wasmsand.abi.wasi.table import FUNCTIONS, WasiFunction

U32, U64 = (1 << 32) - 1, (1 << 64) - 1


class Data:
    """What the guest's pointers point to, and the addresses."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.places: dict[str, list[tuple[int, int]]] = {}
        for path in (
            b"f", b"g", b"d", b"d/x", b"link", b".", b"..", b"", b"/", b"/etc/passwd", b"../x",
            b"d/../../x", b"tmp", b"tmp/f", b"etc/passwd", b"dev/null", b"dev/zero", b"dev/full",
            b"dev/urandom", b"dev/tty", b"dev/ptmx", b"dev/pts/0", b"dev/stdin", b"dev/fd/1",
            b"proc/self/fd/0", b"proc/self/cwd", b"proc/self/status", b"proc/self/fd", b"proc/1",
            b"root/x", b"n\0ul", b"x" * 255, b"x" * 256, b"\xff\xfe", b"a/" * 40, b"./" * 2040,
            b"y/" * 2100,
        ):  # fmt: skip
            self.add("path", path)
        for vectors in (
            ((HEAP, 10), (HEAP + 100, 0), (HEAP + 200, 5000)), ((HEAP, MEMORY - HEAP),) * 3,
            ((MEMORY - 8, 8), (HEAP, 8)), ((MEMORY - 8, 9), (HEAP, 8)), ((U32 - 15, 32),) * 3,
            ((0, U32), (HEAP, 8), (HEAP, 8)), ((0, 0x7FFF_FFFF),) * 3, ((DATA, DATA_SIZE),) * 3,
        ):  # fmt: skip
            self.add("vectors", b"".join(pack("<II", *vector) for vector in vectors))
        for clock, timeout, flags in ((1, 10**6, 0), (0, 0, 0), (1, 1, 1), (0, 10**18, 1),
                                      (7, 1, 9), (3, U64, 0xFFFF)):  # fmt: skip
            clocks = pack("<QB7xI4xQQH6x", 1, 0, clock, timeout, U64, flags)
            files = [pack("<QB7xI28x", fd, kind, fd) for fd, kind in ((0, 1), (1, 2), (U32, 1))]
            self.add("subscriptions", clocks + b"".join(files) + pack("<QB7xI28x", 2, 250, 3))
        assert len(self.content) <= DATA_SIZE

    def add(self, kind: str, content: bytes) -> None:
        self.content += bytes(-len(self.content) % 8)
        self.places.setdefault(kind, []).append((DATA + len(self.content), len(content)))
        self.content += content


WASI_DATA: Final = Data()
_ADDRESSES: Final = (
    0, 1, 4, 8, 65535, HEAP, HEAP + 1, HEAP + 4096, MEMORY - 4096, MEMORY - 65, MEMORY - 64,
    MEMORY - 32, MEMORY - 24, MEMORY - 8, MEMORY - 7, MEMORY - 4, MEMORY - 1, MEMORY, MEMORY + 1,
    0x7FFF_FFFF, 0x8000_0000, U32 - 7, U32, OPS,
)  # fmt: skip
_NUMBERS: Final = (
    0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 30, 31, 32, 64, 100, 255, 256, 1023, 1024, 1025, 4095, 4096,
    4097, 65535, 65536, 1 << 20, MEMORY, 0x7FFF_FFFF, 0x8000_0000, U32, 1 << 44, (1 << 44) + 1,
    (1 << 63) - 1, 1 << 63, U64 - 1, U64,
)  # fmt: skip


def _path(random: Random) -> tuple[int, int]:
    return random.choice(random.choice((WASI_DATA.places["path"], WASI_DATA.places["path"][:6])))


def _place(kind: str) -> Callable[[Random], int]:
    return lambda random: random.choice(WASI_DATA.places[kind])[0]


_KINDS: Final[dict[str, Callable[[Random], int]]] = {
    "f": lambda random: random.choice((3, 3, 4, 4, *range(20, 32), random.randrange(32))),
    "v": _place("vectors"),
    "s": _place("subscriptions"),
    "c": lambda random: random.choice((0, 1, 1, 2, 3)),
    "b": lambda random: HEAP + random.randrange(8) * 512,
    "n": lambda random: random.choice((0, 1, 10, 100, 1000, 4096, 65536)),
    "x": lambda random: random.choice((0, 0, 1, 2, 3, 4, 5, 8, 9)),
    "o": lambda random: random.choice((0, 0, 1, 3, 10, 4096, 1 << 20)),
    "R": lambda random: random.choice((U64, (1 << 30) - 1, 2, 64, 66, 1 << 13, 0)),
}
"""What makes a suitable argument, by a letter; `p` and `l` are a path and its length."""

_SHAPES: Final = {
    "args_get": "bb", "args_sizes_get": "bb", "clock_res_get": "xb", "clock_time_get": "xob",
    "environ_get": "bb", "environ_sizes_get": "bb", "fd_advise": "foox", "fd_allocate": "foo",
    "fd_close": "f", "fd_datasync": "f", "fd_fdstat_get": "fb", "fd_fdstat_set_flags": "fx",
    "fd_fdstat_set_rights": "fRR", "fd_filestat_get": "fb", "fd_filestat_set_size": "fo",
    "fd_filestat_set_times": "foox", "fd_pread": "fvcob", "fd_prestat_dir_name": "fbn",
    "fd_prestat_get": "fb", "fd_pwrite": "fvcob", "fd_read": "fvcb", "fd_readdir": "fbnob",
    "fd_renumber": "ff", "fd_seek": "foxb", "fd_sync": "f", "fd_tell": "fb", "fd_write": "fvcb",
    "path_create_directory": "fpl", "path_filestat_get": "fxplb",
    "path_filestat_set_times": "fxploox", "path_link": "fxplfpl", "path_open": "fxplxRRxb",
    "path_readlink": "fplbnb", "path_remove_directory": "fpl", "path_rename": "fplfpl",
    "path_symlink": "plfpl", "path_unlink_file": "fpl", "poll_oneoff": "sbcb", "proc_exit": "x",
    "proc_raise": "x", "random_get": "bn", "sched_yield": "", "sock_accept": "fxb",
    "sock_recv": "fvcxbb", "sock_send": "fvcxb", "sock_shutdown": "fx",
}  # fmt: skip
_RARE: Final = frozenset({"proc_exit", "proc_raise", "fd_renumber", "fd_close",
                          "fd_fdstat_set_rights"})  # fmt: skip
SWEEP_SEEDS: Final = 16
_DIRECTORY: Final = 2
_WRITING: Final = 1 << 6 | 1 << 8 | 1 << 22
_OPENED: Final = ((0, 1), (2, _DIRECTORY), (4, 0))
"""(path, open flags) of the files with which a sequence begins."""


def _any(random: Random) -> int:
    kind = random.randrange(5)
    if kind == 0:
        return random.choice(_NUMBERS)
    if kind == 1:
        return random.choice(_ADDRESSES)
    if kind == 2:
        return 1 << random.randrange(64)
    if kind == 3:
        return random.getrandbits(64)
    return random.choice(list(_KINDS.values()))(random)


def _with_arguments(random: Random, number: int, row: WasiFunction) -> Record:
    fitting = random.choice((0.0, 0.5, 0.9, 1.0))
    words = []
    path = _path(random)
    for letter in _SHAPES[row.name]:
        if random.random() >= fitting:
            words.append(_any(random))
        elif letter == "p":
            path = _path(random)
            words.append(path[0])
        elif letter == "l":
            words.append(path[1])
        else:
            words.append(_KINDS[letter](random))
    return (number, *words)


def wasi_sequence(seed: int, length: int) -> list[Record]:
    """The calls of one seed, beginning with files that later calls may find.

    It calls a part of all functions; `SWEEP_SEEDS` consecutive seeds together call every one.
    """
    random = Random(seed)
    numbers = {row.name: number for number, row in enumerate(FUNCTIONS)}
    paths = WASI_DATA.places["path"]
    calls: list[Record] = [
        (numbers["path_create_directory"], 3, *paths[2]),
        (numbers["path_symlink"], *paths[0], 3, *paths[4]),
    ]
    for place, flags in _OPENED:
        base = U64 if flags != _DIRECTORY else U64 & ~_WRITING
        calls.append((numbers["path_open"], 3, 1, *paths[place], flags, base, U64, 0, HEAP))
    sweep = [(seed + turn * SWEEP_SEEDS) % len(FUNCTIONS) for turn in range(3)]
    for number in sorted(sweep, key=lambda number: FUNCTIONS[number].name in _RARE):
        calls.append(_with_arguments(random, number, FUNCTIONS[number]))
    while len(calls) < length:
        number = random.randrange(len(FUNCTIONS))
        if FUNCTIONS[number].name in _RARE and random.randrange(10):
            continue
        calls.append(_with_arguments(random, number, FUNCTIONS[number]))
    return calls


Ranges = list[tuple[int, int]]
Rule = Callable[[tuple[int, ...], bytes, int], Ranges]


def _fixed(*places: tuple[int, int]) -> Rule:
    """Each place is (index of a pointer argument, bytes written there)."""
    return lambda words, before, result: [(words[i], size) for i, size in places]


def _sized(pointer: int, size: int, *more: tuple[int, int]) -> Rule:
    """A buffer whose size is another argument."""
    return lambda words, before, result: [
        (words[pointer], words[size]),
        *((words[i], length) for i, length in more),
    ]


def _vectors(pointer: int, count: int, result_pointer: int) -> Rule:
    def rule(words: tuple[int, ...], before: bytes, result: int) -> Ranges:
        ranges = [(words[result_pointer], 4)]
        if not result and words[pointer] + 8 * words[count] <= len(before):
            for place in range(words[count]):
                ranges.append(unpack_from("<II", before, words[pointer] + 8 * place))
        return ranges

    return rule


_RULES: Final[dict[str, Rule]] = {
    # The size of the strings does not depend on the guest, and is small.
    "args_get": _fixed((0, 64), (1, 256)), "args_sizes_get": _fixed((0, 4), (1, 4)),
    "environ_get": _fixed((0, 64), (1, 256)), "environ_sizes_get": _fixed((0, 4), (1, 4)),
    "clock_res_get": _fixed((1, 8)), "clock_time_get": _fixed((2, 8)),
    "fd_fdstat_get": _fixed((1, 24)), "fd_filestat_get": _fixed((1, 64)),
    "fd_pread": _vectors(1, 2, 4), "fd_prestat_dir_name": _sized(1, 2),
    "fd_prestat_get": _fixed((1, 8)), "fd_pwrite": _fixed((4, 4)), "fd_read": _vectors(1, 2, 3),
    "fd_readdir": _sized(1, 2, (4, 4)), "fd_seek": _fixed((3, 8)), "fd_tell": _fixed((1, 8)),
    "fd_write": _fixed((3, 4)), "path_filestat_get": _fixed((4, 64)), "path_open": _fixed((8, 4)),
    "path_readlink": _sized(3, 4, (5, 4)),
    "poll_oneoff": lambda words, before, result: [(words[1], 32 * words[2]), (words[3], 4)],
    "random_get": _sized(0, 1),
}  # fmt: skip


def wasi_footprint(name: str, words: tuple[int, ...], before: bytes, result: int) -> Ranges:
    """The ranges (address, length) that the call may have written."""
    rule = _RULES.get(name)
    return rule(words, before, result) if rule is not None else []
