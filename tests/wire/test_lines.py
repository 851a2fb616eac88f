"""Lines arrive unchanged from pieces of any size, and lines that are too long take no memory."""

from __future__ import annotations

import io
import random
import tracemalloc
from collections.abc import Iterator

import pytest

from wasmsand.wire.lines import LineReader, LineTooLong


class Pieces(io.RawIOBase):
    """A stream that returns pieces of any length, as a pipe may."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = next(self._pieces, b"")
        taken = self._rest[: len(buffer)]
        self._rest = self._rest[len(taken) :]
        buffer[: len(taken)] = taken
        return len(taken)


def reader(pieces: Iterator[bytes], limit: int) -> LineReader:
    return LineReader(io.BufferedReader(Pieces(pieces), 512), limit)


def cut(data: bytes, chance: random.Random) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        length = chance.choice((1, 2, 7, 100, 1000))
        yield data[position : position + length]
        position += length


def read_all(source: LineReader) -> list[bytes | None]:
    """All lines; None stands for one that was too long."""
    found: list[bytes | None] = []
    while True:
        try:
            line = source.next()
        except LineTooLong:
            found.append(None)
            continue
        if line is None:
            return found
        found.append(line)


@pytest.mark.parametrize("seed", range(200))
def test_lines_arrive_whole_from_any_pieces(seed: int) -> None:
    chance = random.Random(seed)
    limit = chance.choice((1, 10, 511, 512, 513, 2000))
    lines = [
        chance.randbytes(chance.choice((0, 1, limit - 1, limit, limit + 1, 3 * limit + 5))).replace(
            b"\n", b"\r"
        )
        for _ in range(chance.randrange(1, 12))
    ]
    data = b"\n".join(lines)
    if chance.random() < 0.5:
        data += b"\n"
    elif lines[-1] == b"":
        lines.pop()
    expected = [line if len(line) <= limit else None for line in lines]
    assert read_all(reader(cut(data, chance), limit)) == expected


def test_a_line_without_end_is_never_held() -> None:
    def forever() -> Iterator[bytes]:
        for _ in range(20_000):
            yield b"x" * 10_000
        yield b"\nnext\n"

    source = reader(forever(), 100_000)
    tracemalloc.start()
    try:
        with pytest.raises(LineTooLong, match="longer than 100000 bytes"):
            source.next()
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert source.next() == b"next"
    assert source.next() is None
