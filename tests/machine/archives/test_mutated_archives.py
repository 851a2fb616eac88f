"""Damaged archives and random bytes are unpacked or refused; nothing else happens."""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from tests.machine.archives.reading import new_machine
from tests.tarballs import member, tar_archive, with_records
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import MIB, Limits
from wasmsand.kernel.vfs import ROOT
from wasmsand.machine import (
    ArchiveRejected,
    DiskImageRejected,
    Machine,
    import_tar,
    read_disk_image,
    write_disk_image,
)
from wasmsand.sdk.errors import ArchiveError
from wasmsand.sdk.transfer import unpack_directory

pytestmark = pytest.mark.no_userland


LONG = "d/" + "m" * 80 + "/" + "n" * 90


def seeds() -> dict[str, bytes]:
    """Archives to mutate: one of each format, and a disk image."""
    members = [
        (member("d", tarfile.DIRTYPE), b""),
        (member(LONG), b"x" * 700),
        (member("f"), b"y"),
        (member("l", tarfile.SYMTYPE, "d"), b""),
        (member("h", tarfile.LNKTYPE, "f"), b""),
        (with_records("s", GNU__sparse__map="0,5,512,5", GNU__sparse__size="9999"), b"0123456789"),
        (with_records("t", mtime="1.5", path="t" * 200, uid="77"), b"z"),
    ]
    kinds = {"pax": tarfile.PAX_FORMAT, "gnu": tarfile.GNU_FORMAT, "ustar": tarfile.USTAR_FORMAT}
    found = {name: tar_archive(*members[:5], kind=kind) for name, kind in kinds.items()}
    found["records"] = tar_archive(*members)
    machine = new_machine()
    machine.files.write("/tmp/a/b", b"x" * 3000)
    machine.files.symlink("b", "/tmp/a/l")
    machine.files.remove("/etc/passwd")
    machine.files.write("/tmp/sparse", b"y")
    node = machine.kernel.namespace.resolve(ROOT, machine.kernel.namespace.root, b"/tmp/sparse")
    machine.kernel.namespace.write(ROOT, node, 9 * MIB, b"end")
    stream = io.BytesIO()
    write_disk_image(machine, stream)
    found["disk"] = stream.getvalue()
    found["gzip"] = gzip.compress(found["records"])
    return found


def mutated(choose: random.Random, data: bytes, *, whole: bool) -> bytes:
    """The data with some bytes changed, moved, doubled or removed; most checksums are corrected."""
    changed = bytearray(data)
    for _ in range(choose.choice([1, 1, 2, 4])):
        place = choose.randrange(len(changed))
        match choose.randrange(6):
            case 0:
                changed[place] ^= 1 << choose.randrange(8)
            case 1:
                changed[place : place + 12] = choose.choice(
                    [b"\xff" * 12, b"\x80" + b"\xff" * 11, b"77777777777\0", b"9" * 12, b"0" * 12]
                )
            case 2:
                del changed[place : place + choose.choice([1, 512, 1024])]
            case 3:
                start = place & ~511
                block = changed[start : start + 512]
                changed[start:start] = block * choose.choice([1, 2, 20])
            case 4:
                start = place & ~511
                changed[start + 156 : start + 157] = choose.choice(
                    [b"x", b"g", b"L", b"K", b"S", b"0", b"1", b"2", b"5", b"V", b"\0"]
                )
            case 5:
                changed[place : place + 8] = choose.randbytes(8)
        if not changed:
            return b""
    if not whole and choose.random() < 0.9:
        for start in range(0, len(changed) - 511, 512):
            block = changed[start : start + 512]
            if block[257:262] == b"ustar":
                block[148:156] = b" " * 8
                changed[start + 148 : start + 156] = b"%06o\0 " % sum(block)
    return bytes(changed)


@pytest.mark.parametrize("name", ["pax", "gnu", "ustar", "records", "disk", "gzip"])
def test_mutated_archives_are_unpacked_or_refused_and_nothing_else(
    name: str, tmp_path: Path
) -> None:
    seed = seeds()[name]
    choose = random.Random(f"archives {name}")
    machine = new_machine(Limits(fs_limit_bytes=4 * MIB, max_inodes=200))
    tracemalloc.start()
    for number in range(400):
        data = mutated(choose, seed, whole=name == "gzip")
        try:
            import_tar(machine, "/tmp/t", [data])
        except KernelError:
            pass
        if name == "disk":
            try:
                read_disk_image(new_machine(Limits(fs_limit_bytes=4 * MIB)), io.BytesIO(data))
            except DiskImageRejected:
                pass
        try:
            unpack_directory([data], tmp_path / str(number))
        except (ArchiveError, OSError):
            pass
        shutil.rmtree(tmp_path / str(number))
    assert tracemalloc.get_traced_memory()[1] < 30 * MIB
    tracemalloc.stop()
    assert os.listdir(tmp_path) == []
    # Everything unpacked can be removed again, whatever its names are.
    machine.files.remove("/tmp/t", recursive=True)
    assert machine.kernel.root.space.used_blocks == 0


def test_random_bytes_are_refused(machine: Machine) -> None:
    choose = random.Random(11)
    for _ in range(300):
        data = choose.randbytes(choose.choice([1, 511, 512, 513, 5000]))
        for start in (b"", b"\x1f\x8b\x08\0\0\0\0\0\0\0"):
            with pytest.raises(ArchiveRejected):
                import_tar(machine, "/tmp/t", [start + data])
