"""Tar archives: read from every tool and format, written for every tool, and hostile ones."""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import MIB, Limits
from wasmsand.kernel.vfs import ROOT, ImageBuilder, standard_tree
from wasmsand.machine import (
    ArchiveRejected,
    DiskImageRejected,
    Machine,
    MachineOptions,
    export_tar,
    import_tar,
    read_disk_image,
    write_disk_image,
)
from wasmsand.machine.tar_format import END, Kind, Member, padding
from wasmsand.machine.tar_reader import TarReader
from wasmsand.machine.tar_source import PieceSource, unpacked
from wasmsand.machine.tar_writer import decimal_time, header
from wasmsand.sdk.errors import ArchiveError
from wasmsand.sdk.transfer import pack_directory, unpack_directory

pytestmark = pytest.mark.no_userland

needs_tar = pytest.mark.skipif(shutil.which("tar") is None, reason="there is no tar here")


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = new_machine()
    yield made
    made.close()


def new_machine(limits: Limits | None = None) -> Machine:
    builder = ImageBuilder()
    standard_tree(builder)
    return Machine(MachineOptions(limits=limits or Limits()), image=builder.build())


def read(data: bytes, step: int = 777) -> list[tuple[Member, bytes]]:
    """Members and contents of an archive that comes in small pieces."""
    pieces = (data[i : i + step] for i in range(0, len(data), step))
    reader = TarReader(unpacked(pieces), 1000)
    found = []
    for member in reader:
        content = bytearray(member.size if member.size < 64 * MIB else 0)
        for offset, piece in reader.pieces():
            content[offset : offset + len(piece)] = piece
        found.append((member, bytes(content)))
    return found


def by_tarfile(*members: tuple[tarfile.TarInfo, bytes], kind: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mtime = kind, link, 1_234_567_890
    return info


def with_records(name: str, **records: str) -> tarfile.TarInfo:
    info = member(name)
    info.pax_headers = {key.replace("__", "."): value for key, value in records.items()}
    return info


# Reading what others write.


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """One of everything that all formats can hold."""
    top = tmp_path / "tree"
    (top / "directory").mkdir(parents=True)
    (top / "directory" / "file").write_bytes(bytes(range(256)) * 300)
    (top / "empty").write_bytes(b"")
    (top / "script").write_bytes(b"#!/bin/sh\n")
    (top / "script").chmod(0o4755)
    (top / "link").symlink_to("directory/file")
    os.link(top / "directory" / "file", top / "second")
    os.mkfifo(top / "fifo")
    for path in top.rglob("*"):
        os.utime(path, (1_234_567_890, 1_234_567_890), follow_symlinks=False)
    return top


def names(found: Iterable[tuple[Member, bytes]]) -> dict[bytes, Kind]:
    return {m.name.removeprefix(b"./").removesuffix(b"/"): m.kind for m, _ in found}


@needs_tar
@pytest.mark.parametrize("kind", ["v7", "oldgnu", "gnu", "ustar", "pax"])
@pytest.mark.parametrize("packed", ["", "z"])
def test_every_format_of_gnu_tar_is_read(tree: Path, kind: str, packed: str) -> None:
    command = ["tar", f"-c{packed}f", "-", "--sort=name", f"--format={kind}", "-C", str(tree)]
    if kind == "v7":
        command.append("--exclude=./fifo")
    data = subprocess.run([*command, "."], capture_output=True, check=True).stdout
    found = read(data)
    kinds = names(found)
    kinds.pop(b"fifo", None)
    assert kinds == {
        b".": Kind.DIRECTORY,
        b"directory": Kind.DIRECTORY,
        b"directory/file": Kind.FILE,
        b"empty": Kind.FILE,
        b"link": Kind.SYMLINK,
        b"script": Kind.FILE,
        b"second": Kind.LINK,
    }
    by_name = {m.name.removeprefix(b"./"): (m, content) for m, content in found}
    assert by_name[b"directory/file"][1] == bytes(range(256)) * 300
    assert by_name[b"link"][0].target == b"directory/file"
    assert by_name[b"second"][0].target.removeprefix(b"./") == b"directory/file"
    script = by_name[b"script"][0]
    assert (script.mode, script.mtime_ns) == (0o4755, 1_234_567_890 * 10**9)
    assert script.uid == os.getuid()


@needs_tar
@pytest.mark.parametrize("kind", ["oldgnu", "gnu", "pax"])
@pytest.mark.parametrize("length", [99, 100, 101, 255, 1000])
def test_long_names_of_gnu_tar_are_read(tmp_path: Path, kind: str, length: int) -> None:
    name = "/".join(["n" * 90] * 20)[:length].rstrip("/") + "x"
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"content")
    (tmp_path / "link").symlink_to(name)
    command = ["tar", "-cf", "-", f"--format={kind}", "-C", str(tmp_path), name, "link"]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    (file, content), (link, _) = read(data)
    assert (file.name, content, link.target) == (name.encode(), b"content", name.encode())


SPARSE = ["--format=gnu", *(f"--format=pax --sparse-version={v}" for v in ("0.0", "0.1", "1.0"))]


@needs_tar
@pytest.mark.parametrize("options", SPARSE)
@pytest.mark.parametrize("pieces", [0, 1, 3, 60])
def test_files_with_holes_of_gnu_tar_are_read(
    tmp_path: Path, machine: Machine, options: str, pieces: int
) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        for number in range(pieces):
            file.seek(number * 2 * MIB + 4096)
            file.write(b"%04d" % number * 1024)
        file.truncate(200 * MIB)
    command = ["tar", "-cSf", "-", *options.split(), "-C", str(tmp_path), "sparse"]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    assert len(data) < 2 * MIB
    import_tar(machine, "/tmp", [data])
    entry = machine.files.stat("/tmp/sparse")
    assert entry.size == 200 * MIB
    assert machine.kernel.root.space.used_bytes < 8 * MIB
    for number in range(pieces):
        place = number * 2 * MIB
        expected = bytes(96) + b"%04d" % number * 1024 + bytes(100)
        assert machine.files.read("/tmp/sparse", place + 4000, 96 + 4096 + 100) == expected


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_python_are_read(kind: int) -> None:
    info = member("d/" + "é" * 40)
    info.uid, info.mode = 5_000_000 if kind != tarfile.USTAR_FORMAT else 1000, 0o1640
    data = by_tarfile(
        (info, b"x" * 5000), (member("l", tarfile.LNKTYPE, info.name), b""), kind=kind
    )
    (file, content), (link, _) = read(data)
    assert (file.name, content) == (info.name.encode(), b"x" * 5000)
    assert (file.uid, file.mode, file.mtime_ns) == (info.uid, 0o1640, 1_234_567_890 * 10**9)
    assert (link.kind, link.target) == (Kind.LINK, file.name)


def test_a_fraction_and_a_time_before_1970_are_read() -> None:
    data = by_tarfile(
        (with_records("a", mtime="12.5"), b""),
        (with_records("b", mtime="-1.25"), b""),
        (with_records("c", mtime="3.1234567899999"), b""),
    )
    assert [m.mtime_ns for m, _ in read(data)] == [12_500_000_000, -1_250_000_000, 3_123_456_789]
    assert decimal_time(-1_250_000_000) == b"-1.250000000"


def test_an_archive_in_several_parts_of_gzip_is_read() -> None:
    data = by_tarfile((member("a"), b"1" * 3000), (member("b"), b"2"))
    parts = b"".join(gzip.compress(data[i : i + 1000]) for i in range(0, len(data), 1000))
    assert [content for _, content in read(parts + bytes(700))] == [b"1" * 3000, b"2"]


# Writing what others read.


@needs_tar
def test_exported_archives_are_what_gnu_tar_and_python_read(
    machine: Machine, tmp_path: Path
) -> None:
    files = machine.files
    files.write("/tmp/t/d/" + "n" * 200, b"long", mode=0o640)
    files.write("/tmp/t/bytes\udcff", b"odd")
    files.write("/tmp/t/ünï", b"utf-8")
    files.symlink("x" * 300, "/tmp/t/link")
    files.write("/tmp/t/a", b"twice")
    node = machine.kernel.namespace.resolve(ROOT, machine.kernel.namespace.root, b"/tmp/t/a")
    machine.kernel.namespace.link(ROOT, node, machine.kernel.namespace.root, b"/tmp/t/d/b")
    files.write("/tmp/t/sparse", b"start")
    node = machine.kernel.namespace.resolve(ROOT, machine.kernel.namespace.root, b"/tmp/t/sparse")
    machine.kernel.namespace.write(ROOT, node, 50 * MIB, b"end")
    data = b"".join(export_tar(machine, "/tmp/t"))
    assert len(data) < MIB
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert sorted(archive.getnames()) == sorted(
            ["a", "bytes\udcff", "d", "d/b", "d/" + "n" * 200, "link", "sparse", "ünï"]
        )
        assert archive.getmember("d/b").islnk()
        assert archive.getmember("sparse").size == 50 * MIB + 3
    subprocess.run(["tar", "-xf", "-", "-C", str(tmp_path)], input=data, check=True)
    assert (tmp_path / "d" / ("n" * 200)).read_bytes() == b"long"
    assert (tmp_path / "d" / ("n" * 200)).stat().st_mode & 0o777 == 0o640
    assert os.readlink(tmp_path / "link") == "x" * 300
    assert (tmp_path / "d" / "b").stat().st_ino == (tmp_path / "a").stat().st_ino
    assert (tmp_path / "ünï").read_bytes() == b"utf-8"
    assert (tmp_path / os.fsdecode(b"bytes\xff")).read_bytes() == b"odd"
    content = (tmp_path / "sparse").read_bytes()
    assert (content[:6], content[-4:], len(content)) == (b"start\0", b"\0end", 50 * MIB + 3)


def test_every_member_comes_back_as_it_was_written() -> None:
    choose = random.Random(7)
    for _ in range(300):
        name = choose.randbytes(choose.choice([1, 20, 99, 100, 101, 300])).replace(b"\0", b"x")
        kind = choose.choice([k for k in Kind if k is not Kind.OTHER])
        if kind is Kind.DIRECTORY:
            name = name.rstrip(b"/") + b"d"
        content = choose.randbytes(choose.choice([0, 1, 511, 512, 513]) if kind is Kind.FILE else 0)
        extents = None
        size = len(content)
        if content and choose.random() < 0.5:
            extents, size = [(choose.randrange(9000), len(content))], 20_000
        written = Member(
            name=name,
            kind=kind,
            mode=choose.randrange(0o10000),
            uid=choose.choice([0, 1000, 1 << 31]),
            gid=choose.choice([0, 1000, (1 << 32) - 1]),
            size=size,
            mtime_ns=choose.choice([0, 1, -1, 10**18, 10**20, -(10**19)]),
            target=name if kind in (Kind.LINK, Kind.SYMLINK) else b"",
            extents=extents,
        )
        data = header(written) + content + padding(len(content)) + END
        reader = TarReader(PieceSource([data]), 10)
        (found,) = [(m, b"".join(piece for _, piece in reader.pieces())) for m in reader]
        assert found == (written, content)


# Hard links.


def test_hard_links_are_exported_once_and_downloaded_as_links(
    machine: Machine, tmp_path: Path
) -> None:
    machine.files.write("/tmp/t/f00", bytes(5 * MIB))
    root = machine.kernel.namespace.root
    node = machine.kernel.namespace.resolve(ROOT, root, b"/tmp/t/f00")
    for number in range(1, 60):
        machine.kernel.namespace.link(ROOT, node, root, b"/tmp/t/f%02d" % number)
    data = b"".join(export_tar(machine, "/tmp/t"))
    assert len(data) < 5 * MIB + 60 * 512 + 65536
    assert unpack_directory([data], tmp_path / "out") == []
    assert (tmp_path / "out" / "f59").stat().st_nlink == 60
    import_tar(machine, "/tmp/u", [data])
    again = machine.kernel.namespace.resolve(ROOT, root, b"/tmp/u/f30")
    assert machine.kernel.namespace.stat(again).nlink == 60
    assert machine.kernel.root.space.used_bytes <= 10 * MIB + 65536


def test_a_downloaded_link_leads_to_nothing_but_files_of_the_archive(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "secret").write_text("mine")
    (out / "there").write_text("before")
    (out / "leads").symlink_to(tmp_path / "secret")
    data = by_tarfile(
        (member("a", tarfile.LNKTYPE, "there"), b""),
        (member("b", tarfile.LNKTYPE, "leads"), b""),
        (member("c", tarfile.LNKTYPE, "nowhere"), b""),
        (member("d", tarfile.LNKTYPE, "d"), b""),
        (member("e"), b"x"),
        (member("f", tarfile.LNKTYPE, "e"), b""),
    )
    assert unpack_directory([data], out) == ["a", "b", "c", "d"]
    assert sorted(os.listdir(out)) == ["e", "f", "leads", "there"]
    with pytest.raises(ArchiveError, match="leads outside"):
        unpack_directory([by_tarfile((member("g", tarfile.LNKTYPE, "../secret"), b""))], out)
    assert (tmp_path / "secret").stat().st_nlink == 1


def test_a_downloaded_file_of_holes_takes_no_room(machine: Machine, tmp_path: Path) -> None:
    machine.files.write("/tmp/t/f", b"x")
    node = machine.kernel.namespace.resolve(ROOT, machine.kernel.namespace.root, b"/tmp/t/f")
    machine.kernel.namespace.resize(ROOT, node, 200 * MIB)
    unpack_directory(export_tar(machine, "/tmp/t"), tmp_path)
    status = (tmp_path / "f").stat()
    assert status.st_size == 200 * MIB
    assert status.st_blocks * 512 < 10 * MIB


def test_everything_can_be_exported(machine: Machine) -> None:
    """As `tar --one-file-system /`: with /proc, but without what it holds."""
    found = names(read(b"".join(export_tar(machine, "/"))))
    assert found[b"proc"] is Kind.DIRECTORY
    assert found[b"etc/passwd"] is Kind.FILE
    assert not [name for name in found if name.startswith((b"proc/", b"dev/null"))]


def test_uploads_are_read_back(machine: Machine, tree: Path) -> None:
    import_tar(machine, "/tmp/t", pack_directory(tree))
    assert [entry.path for entry in machine.files.tree("/tmp/t")] == [
        f"/tmp/t/{name}"
        for name in ("directory", "directory/file", "empty", "link", "script", "second")
    ]


# Archives that are hostile.


def pax_header(size: int, letter: bytes = b"x") -> bytes:
    info = member("x", letter)
    info.size = size
    return info.tobuf(tarfile.USTAR_FORMAT)


CHILD = """
import gzip, resource, sys
from tests.machine.test_archives import *
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
        by_tarfile((with_records("x", size="9" * 18), b"")) + bytes(100 << 20))] * 5""",
    "member": "[gzip.compress(pax_header(480 << 20, b'V') + bytes(100 << 20))] * 5",
    "extents": """[gzip.compress(by_tarfile((with_records("x", GNU__sparse__major="1",
        GNU__sparse__minor="0", GNU__sparse__realsize="99"), b"99999999\\n" * (100 << 17))))]""",
    "no extents": """[gzip.compress(by_tarfile((with_records("x", GNU__sparse__major="1",
        GNU__sparse__minor="0", GNU__sparse__realsize="99"), b"9" * (100 << 20))))]""",
}


@pytest.mark.parametrize("packed", BOMBS.values(), ids=BOMBS)
def test_what_unpacks_to_much_takes_no_memory(packed: str, repository: Path) -> None:
    """In a process of its own, whose peak of memory is the kernel's word."""
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
                import_tar(machine, "/tmp", [pax_header(0, letter) * count + by_tarfile()])


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
def test_records_that_are_absurd_are_refused(machine: Machine, records: dict[str, str]) -> None:
    info = member("a/b")
    info.pax_headers = records
    data = by_tarfile((info, b""))
    with pytest.raises(ArchiveRejected):
        import_tar(machine, "/tmp/t", [data])
    assert [e for e in machine.files.tree("/tmp/t") if e.type != "dir"] == []
    with pytest.raises(DiskImageRejected):
        read_disk_image(machine, io.BytesIO(disk(data)))


def disk(data: bytes) -> bytes:
    """An archive as it would be a disk image."""
    return by_tarfile_global() + data


def by_tarfile_global() -> bytes:
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
def test_numbers_of_a_header_that_are_absurd_are_refused_or_taken(
    machine: Machine, field: tuple[int, int], number: bytes
) -> None:
    start, length = field
    block = bytearray(by_tarfile((member("a"), b""))[:512])
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
    import_tar(machine, "/tmp/t", [by_tarfile((member("a\0b"), b"x"), kind=tarfile.USTAR_FORMAT)])
    assert [entry.name for entry in machine.files.list("/tmp/t")] == ["a"]


def test_an_archive_that_is_cut_short_is_refused_wherever_it_is_cut(machine: Machine) -> None:
    data = by_tarfile((with_records("a", mtime="1.5"), b"x" * 600), (member("b"), b"y"))
    end = data.index(b"y") + 512
    for length in (1, 511, 512, 700, 1024, 1500, 2000, 2048, 2100, end - 1, end - 512):
        with pytest.raises(ArchiveRejected):
            import_tar(machine, "/tmp/t", [data[:length]])
    import_tar(machine, "/tmp/t", [data[:end]])


# Any bytes at all.


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
    found = {name: by_tarfile(*members[:5], kind=kind) for name, kind in kinds.items()}
    found["records"] = by_tarfile(*members)
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
    """Some bytes changed, moved, doubled or gone; checksums mostly made right again."""
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
    # What has been made can be removed again, whatever its names are.
    machine.files.remove("/tmp/t", recursive=True)
    assert machine.kernel.root.space.used_blocks == 0


def test_random_bytes_are_no_archive(machine: Machine) -> None:
    choose = random.Random(11)
    for _ in range(300):
        data = choose.randbytes(choose.choice([1, 511, 512, 513, 5000]))
        for start in (b"", b"\x1f\x8b\x08\0\0\0\0\0\0\0"):
            with pytest.raises(ArchiveRejected):
                import_tar(machine, "/tmp/t", [start + data])


# Disk images.


def test_a_disk_image_leaves_out_what_no_path_leads_to(machine: Machine) -> None:
    """It would grow with the square of the depth, and could not be loaded."""
    namespace = machine.kernel.namespace
    node = namespace.resolve(ROOT, namespace.root, b"/tmp")
    for _ in range(3_000):
        node = namespace.mkdir(ROOT, node, b"d" * 200, 0o755)
    machine.files.write("/tmp/kept", b"x")
    stream = io.BytesIO()
    write_disk_image(machine, stream)
    assert len(stream.getvalue()) < MIB
    stream.seek(0)
    twin = new_machine()
    read_disk_image(twin, stream)
    assert twin.files.read("/tmp/kept") == b"x"
    assert len(twin.files.tree("/tmp")) == 4094 // 201 + 1


def test_a_name_that_the_image_and_a_new_name_share_stays_one_file() -> None:
    builder = ImageBuilder()
    standard_tree(builder)
    builder.add_file(b"/opt/z", b"content")
    image = builder.build()
    machine = Machine(image=image)
    root = machine.kernel.namespace.root
    node = machine.kernel.namespace.resolve(ROOT, root, b"/opt/z")
    machine.kernel.namespace.link(ROOT, node, root, b"/opt/a")
    stream = io.BytesIO()
    write_disk_image(machine, stream)
    stream.seek(0)
    twin = Machine(image=image)
    read_disk_image(twin, stream)
    nodes = [
        twin.kernel.namespace.resolve(ROOT, twin.kernel.namespace.root, path)
        for path in (b"/opt/a", b"/opt/z")
    ]
    assert nodes[0] == nodes[1]
