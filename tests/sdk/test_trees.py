"""`sandbox.files`: trees that move between the host and the sandbox, and tar archives."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from tests.sdk.backends import MakeSandbox
from tests.tarballs import member, tar_archive
from wasmsand import (
    ArchiveError,
    IsDirectoryError,
    NoSpaceError,
    NotDirectoryError,
    NotFoundError,
    Sandbox,
)


def test_a_directory_goes_in_and_comes_out_the_same(sandbox: Sandbox, tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    (source / "d" / "empty").mkdir(parents=True)
    (source / "d" / "data").write_bytes(bytes(range(256)) * 5000)
    (source / "run").write_text("#!/bin/bash\necho ran\n")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to("d/data")
    os.utime(source / "run", (1_000_000_000, 1_000_000_000))
    sandbox.files.upload(source, "project")
    assert sandbox.commands.run("project/run; wc -c < project/link").stdout == "ran\n1280000\n"
    assert sandbox.commands.run("stat -c '%U %Y' project/run").stdout == "user 1000000000\n"
    assert sandbox.files.download("project", target) == []
    assert sorted(os.listdir(target)) == ["d", "link", "run"]
    assert (target / "d" / "data").read_bytes() == (source / "d" / "data").read_bytes()
    assert (target / "run").stat().st_mode & 0o777 == 0o755
    assert (target / "run").stat().st_mtime == 1_000_000_000
    assert os.readlink(target / "link") == "d/data"
    assert (target / "d" / "empty").is_dir()


def test_a_single_file_goes_in_and_comes_out(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "script").write_text("echo hi\n")
    (tmp_path / "script").chmod(0o700)
    sandbox.files.upload(tmp_path / "script", "bin/script")
    assert sandbox.files.stat("bin/script").mode == 0o700
    assert sandbox.files.download("bin/script", tmp_path / "new" / "copy") == []
    assert (tmp_path / "new" / "copy").read_text() == "echo hi\n"


def test_uploading_a_missing_file_is_an_error(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sandbox.files.upload(tmp_path / "nothing", "x")
    with pytest.raises(NotFoundError):
        sandbox.files.download("nothing", tmp_path / "x")
    assert sandbox.files.list() == []
    assert not (tmp_path / "x").exists()


def test_links_that_lead_outside_are_not_downloaded(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.commands.run(
        "mkdir -p t/d; cd t; echo x > f; mkfifo p; ln -s /etc/passwd abs; ln -s ../../etc up;"
        "ln -s ../f d/ok; ln -s .. d/top; ln -s ../.. d/over; ln -s . here; ln -s here/.. trick"
    )
    left_out = sandbox.files.download("t", tmp_path / "t")
    assert left_out == ["abs", "d/over", "p", "trick", "up"]
    assert (tmp_path / "t" / "d" / "ok").read_text() == "x\n"
    assert sorted(os.listdir(tmp_path / "t")) == ["d", "f", "here"]


def test_nothing_is_written_through_an_existing_link(sandbox: Sandbox, tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    (outside / "file").write_text("mine")
    (target / "d").symlink_to(outside)
    sandbox.files.write("t/d/file", "evil")
    with pytest.raises(NotADirectoryError):
        sandbox.files.download("t", target)
    (target / "d").unlink()
    (target / "d").mkdir()
    (target / "d" / "file").symlink_to(outside / "file")
    sandbox.files.download("t", target)
    assert (outside / "file").read_text() == "mine"
    assert (target / "d" / "file").read_text() == "evil"


def test_an_exported_archive_is_what_tar_reads(sandbox: Sandbox) -> None:
    sandbox.commands.run(
        "mkdir -p t/d; echo content > t/d/f; ln -s f t/d/l; mkfifo t/p; : > t/$(printf %0200d 1);"
        "echo x > t/$'odd\\xff'"
    )
    data = b"".join(sandbox.files.export_tar("t"))
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        kinds = {info.name: info.type for info in tar}
        file = tar.extractfile("d/f")
        assert file is not None
        assert file.read() == b"content\n"
    assert kinds == {
        f"{1:0200d}": tarfile.REGTYPE,
        "d": tarfile.DIRTYPE,
        "d/f": tarfile.REGTYPE,
        "d/l": tarfile.SYMTYPE,
        "odd\udcff": tarfile.REGTYPE,
        "p": tarfile.FIFOTYPE,
    }
    sandbox.files.write("t.tar", data)
    result = sandbox.commands.run("mkdir u; tar -C u -xf t.tar && diff -r --no-dereference t/d u/d")
    assert (result.stdout, result.exit_code) == ("", 0)


def test_an_archive_of_one_file(sandbox: Sandbox) -> None:
    sandbox.files.write("d/f", "x")
    data = b"".join(sandbox.files.export_tar("d/f"))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == ["f"]


@pytest.mark.parametrize("packed", [False, True])
def test_archives_are_imported_from_bytes_files_and_pieces(sandbox: Sandbox, packed: bool) -> None:
    data = tar_archive((member("d/f"), b"content"), (member("d/l", tarfile.SYMTYPE, "f"), b""))
    if packed:
        data = gzip.compress(data)
    sandbox.files.import_tar(data, "one")
    sandbox.files.import_tar(io.BytesIO(data), "two")
    sandbox.files.import_tar((data[i : i + 7] for i in range(0, len(data), 7)), "three")
    for name in ("one", "two", "three"):
        assert sandbox.files.read(f"{name}/d/l") == b"content"


def test_an_archive_of_the_sandboxs_own_tar_with_hard_links(sandbox: Sandbox) -> None:
    sandbox.commands.run("mkdir t; echo x > t/a; ln t/a t/b; tar -C t -czf t.tgz .")
    sandbox.files.import_tar(sandbox.files.read("t.tgz"), "u")
    assert sandbox.commands.run("stat -c %h u/a u/b; cat u/b").stdout == "2\n2\nx\n"


def test_import_replaces_files_and_never_writes_through_links(sandbox: Sandbox) -> None:
    sandbox.files.write("outside", "mine")
    sandbox.commands.run("mkdir t; ln -s ../outside t/f; ln -s .. t/d")
    sandbox.files.import_tar(tar_archive((member("f"), b"new")), "t")
    assert sandbox.files.read("outside") == b"mine"
    assert sandbox.files.read("t/f") == b"new"
    with pytest.raises(NotDirectoryError):
        sandbox.files.import_tar(tar_archive((member("d/outside"), b"evil")), "t")
    assert sandbox.files.read("outside") == b"mine"
    sandbox.files.mkdir("t/x")
    with pytest.raises(IsDirectoryError):
        sandbox.files.import_tar(tar_archive((member("x"), b"file")), "t")


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "a/.."])
def test_names_that_lead_outside_are_refused(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(ArchiveError, match="leads outside"):
        sandbox.files.import_tar(tar_archive((member(name), b"x")), "t")
    assert sandbox.files.list("t") == []


def test_an_absolute_name_is_taken_as_relative(sandbox: Sandbox) -> None:
    sandbox.files.import_tar(tar_archive((member("/etc/x"), b"y")), "t")
    assert sandbox.files.read("t/etc/x") == b"y"


@pytest.mark.parametrize(
    "data",
    [b"no archive", b"\x1f\x8bno gzip", b"x" * 5000, gzip.compress(b"x" * 5000)[:30]],
    ids=["text", "gzip", "long", "cut"],
)
def test_data_that_is_not_an_archive_is_refused(sandbox: Sandbox, data: bytes) -> None:
    with pytest.raises(ArchiveError, match=r"^EINVAL: .*not a tar archive"):
        sandbox.files.import_tar(data)


def test_an_archive_larger_than_the_limit_is_refused(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(fs_limit_bytes=1_000_000, max_inodes=100)
    with pytest.raises(NoSpaceError):
        sandbox.files.import_tar(tar_archive((member("f"), bytes(2_000_000))))
    many = tar_archive(*((member(f"f{number}"), b"") for number in range(200)))
    with pytest.raises(NoSpaceError, match="max_inodes"):
        sandbox.files.import_tar(many)


def test_a_header_that_unpacks_to_gigabytes_is_refused(make_sandbox: MakeSandbox) -> None:
    header = tarfile.TarInfo("x")
    header.type = tarfile.XHDTYPE
    header.size = 4 << 30
    bomb = gzip.compress(header.tobuf()) + gzip.compress(bytes(20_000_000)) * 20
    sandbox = make_sandbox(fs_limit_bytes=1_000_000, max_inodes=100)
    with pytest.raises(ArchiveError, match=r"^EINVAL: .*a header has 4294967296 bytes"):
        sandbox.files.import_tar(bomb)


def test_members_that_unpack_to_gigabytes_are_refused(make_sandbox: MakeSandbox) -> None:
    header = member("x", tarfile.CONTTYPE)
    header.type, header.size = b"V", 4 << 30
    bomb = gzip.compress(header.tobuf()) + gzip.compress(bytes(20_000_000)) * 20
    sandbox = make_sandbox(fs_limit_bytes=1_000_000, max_inodes=100)
    with pytest.raises(NoSpaceError, match=r"^ENOSPC: .*the archive holds more"):
        sandbox.files.import_tar(bomb)
