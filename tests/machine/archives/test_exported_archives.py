"""Archives that a sandbox exports: what other tools read, and what arrives on the host."""

from __future__ import annotations

import io
import os
import random
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.machine.archives.reading import names, read
from tests.tarballs import member, tar_archive
from wasmsand.kernel.limits import MIB
from wasmsand.kernel.vfs import ROOT
from wasmsand.machine import (
    Machine,
    export_tar,
    import_tar,
)
from wasmsand.machine.tar_format import END, Member, MemberKind, padding
from wasmsand.machine.tar_reader import TarReader
from wasmsand.machine.tar_source import PieceSource
from wasmsand.machine.tar_writer import header
from wasmsand.sdk.errors import ArchiveError
from wasmsand.sdk.transfer import pack_entries, unpack_directory, unpack_file

pytestmark = pytest.mark.no_userland


needs_tar = pytest.mark.skipif(shutil.which("tar") is None, reason="this host has no tar")


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
        kind = choose.choice([k for k in MemberKind if k is not MemberKind.OTHER])
        if kind is MemberKind.DIRECTORY:
            name = name.rstrip(b"/") + b"d"
        content = choose.randbytes(
            choose.choice([0, 1, 511, 512, 513]) if kind is MemberKind.FILE else 0
        )
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
            target=name if kind in (MemberKind.LINK, MemberKind.SYMLINK) else b"",
            extents=extents,
        )
        data = header(written) + content + padding(len(content)) + END
        reader = TarReader(PieceSource([data]), 10)
        (found,) = [(m, b"".join(piece for _, piece in reader.pieces())) for m in reader]
        assert found == (written, content)


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


def test_a_downloaded_link_leads_only_to_files_of_the_archive(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "secret").write_text("mine")
    (out / "there").write_text("before")
    (out / "leads").symlink_to(tmp_path / "secret")
    data = tar_archive(
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
        unpack_directory([tar_archive((member("g", tarfile.LNKTYPE, "../secret"), b""))], out)
    assert (tmp_path / "secret").stat().st_nlink == 1


def test_a_downloaded_file_of_holes_takes_no_space(machine: Machine, tmp_path: Path) -> None:
    machine.files.write("/tmp/t/f", b"x")
    node = machine.kernel.namespace.resolve(ROOT, machine.kernel.namespace.root, b"/tmp/t/f")
    machine.kernel.namespace.resize(ROOT, node, 200 * MIB)
    unpack_directory(export_tar(machine, "/tmp/t"), tmp_path)
    status = (tmp_path / "f").stat()
    assert status.st_size == 200 * MIB
    assert status.st_blocks * 512 < 10 * MIB


def test_a_single_downloaded_file_of_holes_takes_no_space(machine: Machine, tmp_path: Path) -> None:
    machine.files.write("/tmp/f", b"x")
    node = machine.kernel.namespace.resolve(ROOT, machine.kernel.namespace.root, b"/tmp/f")
    machine.kernel.namespace.resize(ROOT, node, 200 * MIB)
    unpack_file(export_tar(machine, "/tmp/f"), tmp_path / "new" / "copy")
    status = (tmp_path / "new" / "copy").stat()
    assert (status.st_size, status.st_blocks * 512 < 10 * MIB) == (200 * MIB, True)
    for data in (b"", b"x" * 600, END, tar_archive((member("d", tarfile.DIRTYPE), b""))):
        with pytest.raises(ArchiveError):
            unpack_file([data], tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_everything_can_be_exported(machine: Machine) -> None:
    """Like `tar --one-file-system /`: with the directory /proc, but without its content."""
    found = names(read(b"".join(export_tar(machine, "/"))))
    assert found[b"proc"] is MemberKind.DIRECTORY
    assert found[b"etc/passwd"] is MemberKind.FILE
    assert not [name for name in found if name.startswith((b"proc/", b"dev/null"))]


def test_uploads_are_read_back(machine: Machine, tree: Path) -> None:
    entries = [(str(path), str(path.relative_to(tree))) for path in sorted(tree.rglob("*"))]
    import_tar(machine, "/tmp/t", pack_entries(entries))
    assert [entry.path for entry in machine.files.tree("/tmp/t")] == [
        f"/tmp/t/{name}"
        for name in ("directory", "directory/file", "empty", "link", "script", "second")
    ]
