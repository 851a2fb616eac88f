"""The arguments of a guest's system call, as the kernel reads them.

Owns `Words`.
"""

from __future__ import annotations


class Words:
    """The arguments of a system call."""

    __slots__ = ("a", "b", "c", "d", "e", "f")

    def __init__(self) -> None:
        self.a = self.b = self.c = self.d = self.e = self.f = 0
