"""`sandbox.files`: the file system from outside."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import (
    AlreadyExistsError,
    DirectoryNotEmptyError,
    FileError,
    FileInfo,
    InvalidPathError,
    IsDirectoryError,
    NoSpaceError,
    NotDirectoryError,
    NotFoundError,
    Sandbox,
)


def test_bytes_round_trip(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 100
    sandbox.files.write("/tmp/data", data)
    assert sandbox.files.read("/tmp/data") == data


def test_text_is_written_as_utf8(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/text", "grün\n")
    assert sandbox.files.read("/tmp/text") == "grün\n".encode()


@pytest.mark.parametrize("data", [bytearray(b"abc"), memoryview(b"abc")])
def test_other_kinds_of_bytes_are_written(sandbox: Sandbox, data: bytes) -> None:
    sandbox.files.write("/tmp/data", data)
    assert sandbox.files.read("/tmp/data") == b"abc"


def test_an_empty_file(sandbox: Sandbox) -> None:
    sandbox.files.write("empty", b"")
    assert sandbox.files.read("empty") == b""
    assert sandbox.files.stat("empty").size == 0


def test_write_replaces_what_was_there(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "a long first version")
    sandbox.files.write("a", "short")
    assert sandbox.files.read("a") == b"short"


def test_write_makes_missing_directories(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/x/y/z.txt", "deep")
    assert sandbox.commands.run("cat /tmp/x/y/z.txt").stdout == "deep"


def test_a_relative_path_starts_in_the_home_directory(sandbox: Sandbox) -> None:
    sandbox.files.write("a/b", "x")
    assert sandbox.files.read("/home/user/a/b") == b"x"
    assert sandbox.files.exists(PurePosixPath("a", "b"))


def test_commands_and_files_see_the_same_files(sandbox: Sandbox) -> None:
    sandbox.files.write("in", "3\n1\n2\n")
    sandbox.commands.run("sort in > out; chmod 600 out; mkdir d; ln -s out link")
    assert sandbox.files.read("out") == b"1\n2\n3\n"
    assert sandbox.files.read("link") == b"1\n2\n3\n"
    assert sandbox.files.stat("out").mode == 0o600


def test_a_written_file_belongs_to_the_user(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "x")
    assert sandbox.commands.run("stat -c '%U %a' a; echo more >> a; cat a").stdout == (
        "user 644\nxmore\n"
    )


def test_list_gives_names_types_and_sizes_in_order(sandbox: Sandbox) -> None:
    sandbox.files.write("d/b.txt", "12345")
    sandbox.files.mkdir("d/a")
    sandbox.commands.run("ln -s b.txt d/c; mkfifo d/p")
    entries = sandbox.files.list("d")
    assert [(entry.name, entry.type, entry.size) for entry in entries] == [
        ("a", "dir", 0),
        ("b.txt", "file", 5),
        ("c", "symlink", 5),
        ("p", "fifo", 0),
    ]


def test_list_of_an_empty_directory(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("d")
    assert sandbox.files.list("d") == []


def test_stat_of_a_file_and_of_a_directory(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/a.txt", "12345")
    info = sandbox.files.stat("/tmp/a.txt")
    assert isinstance(info, FileInfo)
    assert (info.name, info.type, info.size, info.mode) == ("a.txt", "file", 5, 0o644)
    assert info.mtime_ns > 1_700_000_000 * 10**9
    directory = sandbox.files.stat("/tmp")
    assert (directory.name, directory.type, directory.size) == ("tmp", "dir", 0)
    assert sandbox.files.stat("/").type == "dir"


def test_exists(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "")
    sandbox.commands.run("ln -s nowhere dangling")
    assert sandbox.files.exists("a")
    assert sandbox.files.exists("/")
    assert not sandbox.files.exists("b")
    assert not sandbox.files.exists("a/b")
    assert not sandbox.files.exists("dangling")


def test_rm_of_a_file_a_link_and_a_tree(sandbox: Sandbox) -> None:
    sandbox.files.write("target", "x")
    sandbox.commands.run("ln -s target link; mkdir -p tree/a/b; touch tree/a/b/c")
    sandbox.files.rm("link")
    assert sandbox.files.exists("target")
    sandbox.files.rm("target")
    sandbox.files.rm("tree", recursive=True)
    assert sandbox.files.list() == []


def test_recursive_rm_does_not_follow_links(sandbox: Sandbox) -> None:
    sandbox.files.write("keep/file", "x")
    sandbox.commands.run("mkdir tree; ln -s ../keep tree/link")
    sandbox.files.rm("tree", recursive=True)
    assert sandbox.files.read("keep/file") == b"x"


def test_mkdir_makes_the_directories_above(sandbox: Sandbox) -> None:
    sandbox.files.mkdir("/tmp/a/b/c")
    assert sandbox.files.stat("/tmp/a/b/c").type == "dir"


@pytest.mark.parametrize(
    ("method", "path", "kind", "message"),
    [
        ("read", "/nope", NotFoundError, "ENOENT: no such file or directory: /nope"),
        ("read", "/no/pe", NotFoundError, "ENOENT: no such file or directory: /no/pe"),
        ("read", "/tmp", IsDirectoryError, "EISDIR: is a directory: /tmp"),
        ("read", "/etc/passwd/x", NotDirectoryError, "ENOTDIR: not a directory: /etc/passwd/x"),
        ("list", "/nope", NotFoundError, "ENOENT: no such file or directory: /nope"),
        ("list", "/etc/passwd", NotDirectoryError, "ENOTDIR: not a directory: /etc/passwd"),
        ("mkdir", "/tmp", AlreadyExistsError, "EEXIST: already exists: /tmp"),
        ("mkdir", "/etc/passwd", AlreadyExistsError, "EEXIST: already exists: /etc/passwd"),
        ("rm", "/nope", NotFoundError, "ENOENT: no such file or directory: /nope"),
        ("rm", "/tmp/full", DirectoryNotEmptyError, "ENOTEMPTY: directory not empty: /tmp/full"),
        ("stat", "/nope", NotFoundError, "ENOENT: no such file or directory: /nope"),
        ("read", "/tmp/loop", InvalidPathError, "ELOOP: too many symbolic links: /tmp/loop"),
        ("read", "/" + "x" * 256, InvalidPathError, "ENAMETOOLONG: path too long: /" + "x" * 256),
    ],
)
def test_errors_have_their_type_errno_path_and_message(
    sandbox: Sandbox, method: str, path: str, kind: type[FileError], message: str
) -> None:
    sandbox.files.write("/tmp/full/file", "x")
    sandbox.commands.run("ln -s loop /tmp/loop")
    with pytest.raises(kind) as caught:
        getattr(sandbox.files, method)(path)
    assert str(caught.value) == message
    assert caught.value.errno_name == message.partition(":")[0]
    assert caught.value.path == path


def test_writing_over_a_directory_is_an_error(sandbox: Sandbox) -> None:
    with pytest.raises(IsDirectoryError):
        sandbox.files.write("/tmp", "x")


def test_writing_below_a_file_is_an_error(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "x")
    with pytest.raises(NotDirectoryError):
        sandbox.files.write("a/b", "x")


def test_a_file_over_the_limit_is_refused_and_nothing_is_lost(
    make_sandbox: MakeSandbox,
) -> None:
    with make_sandbox(fs_limit_bytes=100_000) as sandbox:
        sandbox.files.write("a", b"x" * 60_000)
        with pytest.raises(NoSpaceError, match=r"^ENOSPC: .*fs_limit_bytes") as caught:
            sandbox.files.write("a", b"y" * 200_000)
        assert caught.value.path == "/home/user/a"
        assert sandbox.files.read("a") == b"x" * 60_000
        with pytest.raises(NoSpaceError):
            sandbox.files.write("b", b"y" * 60_000)
        sandbox.files.rm("a")
        sandbox.files.write("b", b"y" * 60_000)


def test_space_that_is_freed_can_be_used_again(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(fs_limit_bytes=1_000_000) as sandbox:
        for _ in range(20):
            sandbox.files.write("a", b"x" * 900_000)
            sandbox.files.rm("a")
        assert (
            sandbox.commands.run("head -c 900000 /dev/zero > b && wc -c < b").stdout == "900000\n"
        )


def test_a_file_with_the_longest_name_can_be_overwritten(sandbox: Sandbox) -> None:
    path = "/tmp/" + "n" * 255
    for content in (b"first", b"second"):
        sandbox.files.write(path, content)
        assert sandbox.files.read(path) == content
    assert [entry.name for entry in sandbox.files.list("/tmp")] == ["n" * 255]


def test_a_guest_cannot_block_overwriting_by_taking_a_name(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/target", b"first")
    sandbox.commands.run("mkdir /tmp/target.wasmsand-new")
    sandbox.files.write("/tmp/target", b"second")
    assert sandbox.files.read("/tmp/target") == b"second"
