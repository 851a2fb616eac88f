"""Hostile archives: each is refused, in little time and memory."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.tarballs import member, tar_archive, with_records
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.machine import (
    ArchiveRejected,
    DiskImageRejected,
    Machine,
    import_tar,
    read_disk_image,
)
from wasmsand.machine.tar_format import END

pytestmark = pytest.mark.no_userland


def pax_header(size: int, letter: bytes = b"x") -> bytes:
    info = member("x", letter)
    info.size = size
    return info.tobuf(tarfile.USTAR_FORMAT)


CHILD = """
import gzip, resource, sys
from tests.machine.archives.reading import new_machine
from tests.machine.archives.test_hostile_archives import *
machine = new_machine()
packed = {packed}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    import_tar(machine, "/tmp", packed)
except KernelError as error:
    print(error.errno.name)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000)
"""


BOMBS = {
    "pax": "[gzip.compress(pax_header(480 << 20) + bytes(100 << 20))] * 5",
    "global": "[gzip.compress(pax_header(480 << 20, b'g') + bytes(100 << 20))] * 5",
    "long name": "[gzip.compress(pax_header(480 << 20, b'L') + bytes(100 << 20))] * 5",
    "size of a record": """[gzip.compress(
        tar_archive((with_records("x", size="9" * 18), b"")) + bytes(100 << 20))] * 5""",
    "member": "[gzip.compress(pax_header(480 << 20, b'V') + bytes(100 << 20))] * 5",
    "extents": """[gzip.compress(tar_archive((with_records("x", GNU__sparse__major="1",
        GNU__sparse__minor="0", GNU__sparse__realsize="99"), b"99999999\\n" * (100 << 17))))]""",
    "no extents": """[gzip.compress(tar_archive((with_records("x", GNU__sparse__major="1",
        GNU__sparse__minor="0", GNU__sparse__realsize="99"), b"9" * (100 << 20))))]""",
}


@pytest.mark.parametrize("packed", BOMBS.values(), ids=BOMBS)
def test_an_archive_that_unpacks_to_much_takes_little_memory(packed: str, repository: Path) -> None:
    """Runs in a process of its own, whose peak memory the operating system reports."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD.format(packed=f"iter({packed})")],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert child.stderr == ""
    assert child.stdout in ("EINVAL\nTrue\n", "ENOSPC\nTrue\n", "True\n")


def test_a_chain_of_extended_headers_is_refused(machine: Machine) -> None:
    for letter in (b"x", b"g", b"L", b"K"):
        for count in (100, 100_000):
            with pytest.raises(ArchiveRejected, match="extended headers"):
                import_tar(machine, "/tmp", [pax_header(0, letter) * count + tar_archive()])


@pytest.mark.parametrize(
    "records",
    [
        {"mtime": "1e999"},
        {"mtime": "nan"},
        {"mtime": "-inf"},
        {"mtime": "9" * 400},
        {"mtime": "9" * 5000},
        {"mtime": str(1 << 63)},
        {"mtime": "0x10"},
        {"mtime": "\u0663"},
        {"size": "-1"},
        {"size": "1e3"},
        {"size": "99999999999999999999"},
        {"uid": "-1"},
        {"uid": str(1 << 32)},
        {"gid": "x"},
        {"path": "a\0b"},
        {"path": "x" * 4096},
        {"path": "../x"},
        {"linkpath": "a\0b"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "7"},
        {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "5"},
        {"GNU.sparse.map": "0,1,2", "GNU.sparse.size": "5"},
        {"GNU.sparse.map": "0,5,2,5", "GNU.sparse.size": "50"},
        {"GNU.sparse.map": "0,99", "GNU.sparse.size": "50"},
        {"GNU.sparse.map": "0,-1", "GNU.sparse.size": "50"},
        {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 50)},
        {f"WASMSAND.{number}": "1" for number in range(1000)},
    ],
    ids=lambda records: next(f"{k}={v}"[:40] for k, v in records.items()),
)
def test_absurd_records_are_refused(machine: Machine, records: dict[str, str]) -> None:
    info = member("a/b")
    info.pax_headers = records
    data = tar_archive((info, b""))
    with pytest.raises(ArchiveRejected):
        import_tar(machine, "/tmp/t", [data])
    assert [e for e in machine.files.tree("/tmp/t") if e.type != "dir"] == []
    with pytest.raises(DiskImageRejected):
        read_disk_image(machine, io.BytesIO(disk(data)))


def disk(data: bytes) -> bytes:
    """An archive with the header of a disk image."""
    return disk_image_header() + data


def disk_image_header() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"WASMSAND.disk": "1"}
    ):
        pass
    return buffer.getvalue()[:1024]


@pytest.mark.parametrize(
    "field", [(100, 8), (108, 8), (116, 8), (124, 12), (136, 12)], ids=lambda f: f"{f[0]}"
)
@pytest.mark.parametrize(
    "number", [b"\xff" * 12, b"\x80" + b"\xff" * 11, b"99999999999", b"-1", b"0x7", b"  \0 8"]
)
def test_absurd_numbers_in_a_header_are_refused_or_accepted(
    machine: Machine, field: tuple[int, int], number: bytes
) -> None:
    start, length = field
    block = bytearray(tar_archive((member("a"), b""))[:512])
    block[start : start + length] = number[:length].ljust(length, b"\0")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    try:
        import_tar(machine, "/tmp/t", [bytes(block) + END])
    except ArchiveRejected:
        return
    entry = machine.files.stat("/tmp/t/a")
    assert (entry.size, 0 <= entry.mtime_ns < 1 << 63) == (0, True)


def test_names_of_a_header_end_at_a_nul(machine: Machine) -> None:
    import_tar(machine, "/tmp/t", [tar_archive((member("a\0b"), b"x"), kind=tarfile.USTAR_FORMAT)])
    assert [entry.name for entry in machine.files.list("/tmp/t")] == ["a"]


def test_an_archive_that_is_cut_short_is_refused_wherever_it_is_cut(machine: Machine) -> None:
    data = tar_archive((with_records("a", mtime="1.5"), b"x" * 600), (member("b"), b"y"))
    end = data.index(b"y") + 512
    for length in (1, 511, 512, 700, 1024, 1500, 2000, 2048, 2100, end - 1, end - 512):
        with pytest.raises(ArchiveRejected):
            import_tar(machine, "/tmp/t", [data[:length]])
    import_tar(machine, "/tmp/t", [data[:end]])


def test_content_of_an_absurd_size_is_not_skipped_for_ever(machine: Machine) -> None:
    info = tarfile.TarInfo("volume")
    info.type = b"V"  # `tarfile` skips the content of types that it does not know
    info.size = 1 << 62
    data = info.tobuf(tarfile.GNU_FORMAT) + bytes(2 * tarfile.BLOCKSIZE)
    with pytest.raises(KernelError) as caught:
        import_tar(machine, "/tmp/in", [data])
    assert caught.value.errno is Errno.EINVAL
