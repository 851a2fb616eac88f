"""Mutations: new inputs made from old ones.

Rules: every choice comes from the given `Random`, so that a seed repeats a run; an input never
grows beyond `LONGEST`.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

LONGEST: Final = 1 << 16
_BLOCK: Final = 64
_INTERESTING: Final = (
    0, 1, 2, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128, 255, 256, 511, 512, 1023, 1024, 4095,
    4096, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63,
    2**64 - 1,
)  # fmt: skip


def mutated(
    random: Random, data: bytes, other: bytes, words: Sequence[bytes], *, most: int = LONGEST
) -> bytes:
    """`data` with a few changes.

    `other` is another input; `words` are byte strings that mean something to the target.
    """
    changed = bytearray(data)
    for _ in range(1 << random.randrange(4)):
        _change(random, changed, other, words)
    return bytes(changed[:most])


def _change(random: Random, data: bytearray, other: bytes, words: Sequence[bytes]) -> None:
    place = random.randrange(len(data) + 1)
    size = min(len(data) - place, 1 + random.randrange(_BLOCK))
    match random.randrange(10):
        case 0 if data:
            data[min(place, len(data) - 1)] ^= 1 << random.randrange(8)
        case 1 if data:
            data[min(place, len(data) - 1)] = random.randrange(256)
        case 2:
            del data[place : place + size]
        case 3:
            data[place:place] = random.randbytes(1 + random.randrange(8))
        case 4:
            data[place:place] = bytes(data[place : place + size])
        case 5:
            width = random.choice((1, 2, 4, 8))
            value = random.choice(_INTERESTING) & ((1 << 8 * width) - 1)
            order = random.choice(("little", "big"))
            data[place : place + width] = value.to_bytes(width, order)  # type: ignore[arg-type]
        case 6:
            start = random.randrange(len(other) + 1)
            piece = other[start : start + 1 + random.randrange(4 * _BLOCK)]
            data[place : place + random.choice((0, len(piece)))] = piece
        case 7:
            data[place:] = other[random.randrange(len(other) + 1) :]
        case 8:
            _change_number(random, data)
        case _ if words:
            word = random.choice(words)
            data[place : place + random.choice((0, len(word)))] = word


def _change_number(random: Random, data: bytearray) -> None:
    """Replace a decimal number in the text."""
    digits = [place for place, byte in enumerate(data) if 0x30 <= byte <= 0x39]
    if not digits:
        return
    start = end = random.choice(digits)
    while start > 0 and 0x30 <= data[start - 1] <= 0x39:
        start -= 1
    while end < len(data) and 0x30 <= data[end] <= 0x39:
        end += 1
    value = random.choice((random.choice(_INTERESTING), int(data[start:end][:18]) + 1))
    data[start:end] = random.choice((b"", b"-")) + str(value).encode()
