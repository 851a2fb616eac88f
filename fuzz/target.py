"""The definition of a target.

Owns `Target`, `Finding` and `Source`, which reads decisions from an input. Rules: a target is
created in the process that runs it; `run` returns for every input, or raises an exception, which
is a finding; what one input leaves behind must not affect the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from random import Random
from typing import ClassVar, Final, TypeVar

from fuzz.mutation import LONGEST, mutated

MIB: Final = 1 << 20
T = TypeVar("T")


class Finding(Exception):
    """A rule was broken. `kind` names the rule; the message says how."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Target(ABC):
    """One interface under attack."""

    name: ClassVar[str]
    about: ClassVar[str]
    """One line for `--list`."""
    words: Sequence[bytes] = ()
    """Bytes that mean something to the interface."""
    hang_seconds: ClassVar[float] = 20.0
    """An input that takes longer is a finding. The bound is wide, because machines are busy."""
    memory_bytes: ClassVar[int] = 256 * MIB
    """How much this process may grow during one input, and by all inputs together."""
    longest: ClassVar[int] = LONGEST

    @abstractmethod
    def seeds(self) -> Iterable[bytes]:
        """Inputs to begin with."""

    @abstractmethod
    def run(self, data: bytes) -> None:
        """Try one input; check that the interface is usable afterwards."""

    def mutate(self, random: Random, data: bytes, other: bytes) -> bytes:
        """A new input made from two known ones."""
        return mutated(random, data, other, self.words, most=self.longest)

    def close(self) -> None:  # noqa: B027  (most targets have nothing to close)
        """End the target, after the last input."""


class Source:
    """Reads decisions from an input; after its end it reads zeros."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    @property
    def ended(self) -> bool:
        """Whether the whole input has been read."""
        return self._place >= len(self._data)

    def byte(self) -> int:
        """The next byte."""
        self._place += 1
        return self._data[self._place - 1] if self._place <= len(self._data) else 0

    def number(self, width: int) -> int:
        """The next `width` bytes as an unsigned number."""
        return int.from_bytes(bytes(self.byte() for _ in range(width)), "little")

    def bytes(self, count: int) -> bytes:
        """Up to `count` bytes."""
        piece = self._data[self._place : self._place + count]
        self._place += count
        return piece

    def choice(self, values: Sequence[T]) -> T:
        """One of up to 256 values."""
        return values[self.byte() % len(values)]
