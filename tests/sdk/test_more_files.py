"""`sandbox.files`: streams, appending, names, modes, lists of trees."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import (
    AlreadyExistsError,
    FileError,
    InvalidPathError,
    IsDirectoryError,
    NoSpaceError,
    NotDirectoryError,
    NotFoundError,
    Sandbox,
)


def test_read_as_text(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "grün")
    assert sandbox.files.read_text("a") == "grün"
    sandbox.files.write("latin", b"gr\xfcn")
    assert sandbox.files.read_text("latin", encoding="latin-1") == "grün"
    assert sandbox.files.read_text("latin", errors="replace") == "gr\ufffdn"
    with pytest.raises(UnicodeDecodeError):
        sandbox.files.read_text("latin")


def test_a_stream_gives_pieces_of_the_size_asked_for(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 10
    sandbox.files.write("a", data)
    pieces = list(sandbox.files.read_stream("a", chunk_size=1000))
    assert [len(piece) for piece in pieces] == [1000, 1000, 560]
    assert b"".join(pieces) == data
    sandbox.files.write("empty", "")
    assert list(sandbox.files.read_stream("empty")) == []


def test_files_of_proc_can_be_read(sandbox: Sandbox) -> None:
    assert sandbox.files.read("/proc/sys/kernel/hostname") == b"sandbox\n"


def test_a_file_of_holes_fills_neither_memory_nor_disk_of_the_host(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    sandbox.commands.run("truncate -s 4T sparse")
    with pytest.raises(FileError, match=r"^EFBIG: .*holes"):
        sandbox.files.read("sparse")
    with pytest.raises(FileError, match=r"^EFBIG: "):
        list(sandbox.files.export_tar("."))
    with pytest.raises(FileError, match=r"^EFBIG: "):
        sandbox.files.download("sparse", tmp_path / "sparse")
    assert not (tmp_path / "sparse").exists()
    sandbox.files.download("/proc/sys/kernel/hostname", tmp_path / "name")
    assert (tmp_path / "name").read_text() == "sandbox\n"
    assert next(iter(sandbox.files.read_stream("sparse", chunk_size=10))) == bytes(10)
    sandbox.files.copy("sparse", "copy")
    assert sandbox.files.stat("copy").size == 4 << 40
    sandbox.commands.run("ln sparse linked")
    sandbox.files.write("linked", "")
    sandbox.files.write("copy", "new")
    assert [sandbox.files.stat(name).size for name in ("sparse", "linked", "copy")] == [0, 0, 3]


def test_write_from_a_file_object(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "host").write_bytes(b"\x00content")
    with open(tmp_path / "host", "rb") as file:
        sandbox.files.write("a", file)
    sandbox.files.write("b", io.BytesIO(b"x" * 3_000_000))
    assert sandbox.files.read("a") == b"\x00content"
    assert sandbox.files.stat("b").size == 3_000_000


def test_a_file_object_that_never_ends_is_refused(make_sandbox: MakeSandbox) -> None:
    class Endless(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return bytes(size)

    sandbox = make_sandbox(fs_limit_bytes=1_000_000)
    with pytest.raises(NoSpaceError):
        sandbox.files.write("a", Endless())  # type: ignore[arg-type]


def test_append_makes_and_extends(sandbox: Sandbox) -> None:
    sandbox.files.append("logs/a", "one\n")
    sandbox.files.append("logs/a", b"two\n")
    assert sandbox.files.read("logs/a") == b"one\ntwo\n"
    with pytest.raises(IsDirectoryError):
        sandbox.files.append("logs", "x")


def test_append_that_does_not_fit_leaves_the_file_as_it_was(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(fs_limit_bytes=100_000)
    sandbox.files.write("a", b"x" * 50_000)
    with pytest.raises(NoSpaceError):
        sandbox.files.append("a", b"y" * 100_000)
    assert sandbox.files.read("a") == b"x" * 50_000


def test_a_write_leaves_open_files_their_old_content(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "old\n")
    command = sandbox.commands.start("exec 5<a; echo open; read; cat <&5; cat a")
    assert next(iter(command)).text == "open\n"
    sandbox.files.write("a", "new\n")
    command.write_stdin("\n")
    assert command.wait().stdout == "old\nnew\n"


def test_write_keeps_mode_and_owner(sandbox: Sandbox) -> None:
    sandbox.files.write("run.sh", "#!/bin/bash\necho one\n")
    sandbox.files.chmod("run.sh", 0o750)
    sandbox.files.write("run.sh", "#!/bin/bash\necho two\n")
    assert sandbox.files.stat("run.sh").mode == 0o750
    assert sandbox.commands.run("./run.sh").stdout == "two\n"


def tree(sandbox: Sandbox) -> None:
    for path in ("b/x.py", "b/deep/y.py", "b/deep/z.txt", "a.py", "c-1"):
        sandbox.files.write(path, path)
    sandbox.files.symlink("b", "link")


def test_a_recursive_list_does_not_follow_links(sandbox: Sandbox) -> None:
    tree(sandbox)
    entries = sandbox.files.list(recursive=True)
    assert [entry.path for entry in entries][:3] == [
        "/home/user/a.py",
        "/home/user/b",
        "/home/user/b/deep",
    ]
    assert sandbox.files.list("./", recursive=True) == entries
    assert [(entry.name, entry.type) for entry in entries] == [
        ("a.py", "file"),
        ("b", "dir"),
        ("deep", "dir"),
        ("y.py", "file"),
        ("z.txt", "file"),
        ("x.py", "file"),
        ("c-1", "file"),
        ("link", "symlink"),
    ]


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", ["a.py", "y.py", "x.py"]),
        ("b/*.py", ["x.py"]),
        ("b/**/*.py", ["y.py", "x.py"]),
        ("**/deep/*", ["y.py", "z.txt"]),
        ("?.txt", ["z.txt"]),
        ("[ab].py", ["a.py"]),
        ("**", ["a.py", "b", "deep", "y.py", "z.txt", "x.py", "c-1", "link"]),
        ("nothing*", []),
    ],
)
def test_globs(sandbox: Sandbox, glob: str, names: list[str]) -> None:
    tree(sandbox)
    found = sandbox.files.list("/home/user", recursive=True, glob=glob)
    assert [entry.name for entry in found] == names


def test_a_glob_of_one_directory(sandbox: Sandbox) -> None:
    tree(sandbox)
    assert [entry.name for entry in sandbox.files.list(glob="*.py")] == ["a.py"]


def test_paths_of_entries_can_be_used(sandbox: Sandbox) -> None:
    tree(sandbox)
    for entry in sandbox.files.list("b", recursive=True):
        if entry.type == "file":
            assert sandbox.files.read(entry.path).decode() in entry.path


def test_names_that_are_not_utf8_survive(sandbox: Sandbox) -> None:
    sandbox.commands.run(r"echo x > $'odd\xff'")
    (entry,) = sandbox.files.list()
    assert sandbox.files.read(entry.path) == b"x\n"
    sandbox.files.rename(entry.path, entry.path + "2")
    assert sandbox.commands.run("ls | od -An -c | tr -d ' '").stdout == "odd3772\\n\n"


def test_mkdir_with_and_without_parents(sandbox: Sandbox) -> None:
    with pytest.raises(NotFoundError):
        sandbox.files.mkdir("a/b", parents=False)
    sandbox.files.mkdir("a/b")
    sandbox.files.mkdir("a/b", exist_ok=True)
    sandbox.files.mkdir("a/b", exist_ok=True, parents=False)
    with pytest.raises(AlreadyExistsError):
        sandbox.files.mkdir("a/b")
    sandbox.files.write("file", "")
    with pytest.raises(AlreadyExistsError):
        sandbox.files.mkdir("file", exist_ok=True, parents=False)
    with pytest.raises(NotDirectoryError):
        sandbox.files.mkdir("file", exist_ok=True)


def test_rm_of_a_missing_file_is_an_error_unless_missing_ok(sandbox: Sandbox) -> None:
    sandbox.files.rm("nothing", missing_ok=True)
    with pytest.raises(NotFoundError):
        sandbox.files.rm("nothing")


def test_a_tree_deeper_than_a_path_can_be_removed(sandbox: Sandbox) -> None:
    script = "mkdir top; cd top; for ((i = 0; i < 60; i++)); do mkdir $0 && cd $0; done"
    assert sandbox.commands.run(["bash", "-c", script, "d" * 100]).exit_code == 0
    with pytest.raises(InvalidPathError, match=r"^ENAMETOOLONG: "):
        sandbox.files.list(recursive=True)
    sandbox.files.rm("top", recursive=True)
    assert sandbox.files.list() == []


def test_rename(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "x")
    sandbox.files.write("b", "y")
    sandbox.files.rename("a", "b")
    assert [entry.name for entry in sandbox.files.list()] == ["b"]
    assert sandbox.files.read("b") == b"x"
    with pytest.raises(NotFoundError) as caught:
        sandbox.files.rename("nothing", "c")
    assert caught.value.path == "/home/user/nothing"


def test_copy_of_a_file(sandbox: Sandbox) -> None:
    sandbox.files.write("a", "content")
    sandbox.files.chmod("a", 0o700)
    sandbox.files.copy("a", "new/b")
    assert sandbox.files.read("new/b") == b"content"
    assert sandbox.files.stat("new/b").mode == 0o700
    assert sandbox.commands.run("stat -c %U new/b").stdout == "user\n"
    sandbox.files.write("a", "changed")
    sandbox.files.copy("a", "new/b")
    assert sandbox.files.read("new/b") == b"changed"
    with pytest.raises(IsDirectoryError):
        sandbox.files.copy("a", "new")


def test_copy_of_a_tree(sandbox: Sandbox) -> None:
    sandbox.commands.run("mkdir -p t/d; echo 1 > t/d/f; ln -s d/f t/l; mkfifo t/p; chmod 700 t/d")
    sandbox.files.copy("t", "u")
    assert sandbox.commands.run("diff -r --no-dereference t u 2>&1 | grep -v fifo").stdout == ""
    assert sandbox.files.readlink("u/l") == "d/f"
    assert sandbox.files.stat("u/d").mode == 0o700
    sandbox.files.copy("t/d", "u")
    assert sandbox.files.read("u/f") == b"1\n"


@pytest.mark.parametrize(("source", "target"), [("t", "t/in"), ("t", "t"), ("f", "f")])
def test_nothing_is_copied_into_itself(sandbox: Sandbox, source: str, target: str) -> None:
    sandbox.files.mkdir("t")
    sandbox.files.write("f", "x")
    with pytest.raises(InvalidPathError, match=r"^EINVAL: "):
        sandbox.files.copy(source, target)
    assert sandbox.files.read("f") == b"x"


def test_links(sandbox: Sandbox) -> None:
    sandbox.files.symlink("target/of it", "d/link")
    assert sandbox.files.readlink("d/link") == "target/of it"
    assert sandbox.files.stat("d/link", follow=False).type == "symlink"
    with pytest.raises(NotFoundError):
        sandbox.files.stat("d/link")
    with pytest.raises(AlreadyExistsError):
        sandbox.files.symlink("x", "d/link")
    sandbox.files.write("file", "")
    with pytest.raises(InvalidPathError, match="not a symbolic link"):
        sandbox.files.readlink("file")


def test_dot_dot_stays_in_the_sandbox(sandbox: Sandbox) -> None:
    assert sandbox.files.read("/../../etc/passwd") == sandbox.files.read("/etc/passwd")
    sandbox.files.write("../../../../tmp/x", "y")
    assert sandbox.files.read("/tmp/x") == b"y"
