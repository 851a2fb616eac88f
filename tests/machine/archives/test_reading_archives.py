"""Archives that other tools wrote are read, in every format."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.machine.archives.reading import names, read
from tests.tarballs import member, tar_archive, with_records
from wasmsand.kernel.limits import MIB
from wasmsand.machine import (
    Machine,
    import_tar,
)
from wasmsand.machine.tar_format import MemberKind
from wasmsand.machine.tar_writer import decimal_time

pytestmark = pytest.mark.no_userland


needs_tar = pytest.mark.skipif(shutil.which("tar") is None, reason="this host has no tar")


SPARSE = ["--format=gnu", *(f"--format=pax --sparse-version={v}" for v in ("0.0", "0.1", "1.0"))]


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
        b".": MemberKind.DIRECTORY,
        b"directory": MemberKind.DIRECTORY,
        b"directory/file": MemberKind.FILE,
        b"empty": MemberKind.FILE,
        b"link": MemberKind.SYMLINK,
        b"script": MemberKind.FILE,
        b"second": MemberKind.LINK,
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
    data = tar_archive(
        (info, b"x" * 5000), (member("l", tarfile.LNKTYPE, info.name), b""), kind=kind
    )
    (file, content), (link, _) = read(data)
    assert (file.name, content) == (info.name.encode(), b"x" * 5000)
    assert (file.uid, file.mode, file.mtime_ns) == (info.uid, 0o1640, 1_234_567_890 * 10**9)
    assert (link.kind, link.target) == (MemberKind.LINK, file.name)


def test_a_fraction_and_a_time_before_1970_are_read() -> None:
    data = tar_archive(
        (with_records("a", mtime="12.5"), b""),
        (with_records("b", mtime="-1.25"), b""),
        (with_records("c", mtime="3.1234567899999"), b""),
    )
    assert [m.mtime_ns for m, _ in read(data)] == [12_500_000_000, -1_250_000_000, 3_123_456_789]
    assert decimal_time(-1_250_000_000) == b"-1.250000000"


def test_an_archive_in_several_parts_of_gzip_is_read() -> None:
    data = tar_archive((member("a"), b"1" * 3000), (member("b"), b"2"))
    parts = b"".join(gzip.compress(data[i : i + 1000]) for i in range(0, len(data), 1000))
    assert [content for _, content in read(parts + bytes(700))] == [b"1" * 3000, b"2"]
