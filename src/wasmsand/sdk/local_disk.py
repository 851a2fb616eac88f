"""The disk image of a local sandbox: its files alone, as a saved machine without sessions.

Owns `write_disk` and `read_disk`. Rules: a disk image holds files only, so it can be loaded onto
another image than it was saved from. Images in the older form, a plain tar archive, are still read.
"""

from __future__ import annotations

import io
from typing import IO, cast

from wasmsand.machine import DiskImageRejected, Machine, read_disk_image
from wasmsand.sdk.errors import DiskImageError


def write_disk(machine: Machine, stream: IO[bytes]) -> None:
    """Write the files of a machine, which may have been closed."""
    # Imported here, because most sandboxes have no disk image.
    from wasmsand.machine.saved import StateRejected, write_machine

    try:
        write_machine(stream, machine.state(), (), {})
    except StateRejected as rejected:
        raise DiskImageError(str(rejected)) from None


def read_disk(machine: Machine, stream: IO[bytes]) -> None:
    """Load a disk image into a new machine. Raises `DiskImageError`."""
    from wasmsand.machine.saved import SavedMachine, StateRejected
    from wasmsand.machine.saved.framing import MAGIC

    beginning = stream.read(len(MAGIC))
    whole = cast("IO[bytes]", _Joined(beginning, stream))
    try:
        if beginning == MAGIC:
            SavedMachine(whole).load_files(machine)
        else:
            read_disk_image(machine, whole)
    except (DiskImageRejected, StateRejected) as rejected:
        raise DiskImageError(str(rejected)) from None


class _Joined:
    """A stream whose beginning was read already."""

    def __init__(self, beginning: bytes, rest: IO[bytes]) -> None:
        self._beginning = io.BytesIO(beginning)
        self._rest = rest

    def read(self, size: int) -> bytes:
        """Read `size` bytes; fewer only where the stream has fewer."""
        data = self._beginning.read(size)
        return data + self._rest.read(size - len(data)) if len(data) < size else data
