"""What the archives' tests share: a machine without programs, and an archive as a list."""

from __future__ import annotations

from collections.abc import Iterable

from wasmsand.kernel.limits import MIB, Limits
from wasmsand.kernel.vfs import ImageBuilder, standard_tree
from wasmsand.machine import (
    Machine,
    MachineOptions,
)
from wasmsand.machine.tar_format import Member, MemberKind
from wasmsand.machine.tar_reader import TarReader
from wasmsand.machine.tar_source import unpacked


def new_machine(limits: Limits | None = None) -> Machine:
    builder = ImageBuilder()
    standard_tree(builder)
    return Machine(MachineOptions(limits=limits or Limits()), image=builder.build())


def read(data: bytes, step: int = 777) -> list[tuple[Member, bytes]]:
    """The members and contents of an archive that arrives in small pieces."""
    pieces = (data[i : i + step] for i in range(0, len(data), step))
    reader = TarReader(unpacked(pieces), 1000)
    found = []
    for member in reader:
        content = bytearray(member.size if member.size < 64 * MIB else 0)
        for offset, piece in reader.pieces():
            content[offset : offset + len(piece)] = piece
        found.append((member, bytes(content)))
    return found


def names(found: Iterable[tuple[Member, bytes]]) -> dict[bytes, MemberKind]:
    return {m.name.removeprefix(b"./").removesuffix(b"/"): m.kind for m, _ in found}
