"""`files.upload`: what is left out, what does not fit, and nothing half done."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import FileError, NoSpaceError, Sandbox
from wasmsand.sdk.ignoring import IgnoreRules


def make(top: Path, *names: str, content: str = "x") -> None:
    for name in names:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def uploaded(sandbox: Sandbox, path: str = "p") -> list[str]:
    found = sandbox.files.list(path, recursive=True)
    return [entry.path.removeprefix(f"/home/user/{path}/") for entry in found]


def test_excluded_files_are_left_out(sandbox: Sandbox, tmp_path: Path) -> None:
    make(tmp_path, "a.py", "a.pyc", "node_modules/x/y.js", "src/b.py", "src/c.pyc", "docs/n.md")
    sandbox.files.upload(tmp_path, "p", exclude=["*.pyc", "node_modules", "/docs/"])
    assert uploaded(sandbox) == ["a.py", "src", "src/b.py"]


def test_gitignore_files_apply(sandbox: Sandbox, tmp_path: Path) -> None:
    make(tmp_path, ".gitignore", content="*.log\nbuild/\n!keep.log\n")
    make(tmp_path, "src/.gitignore", content="/generated.py\n")
    make(tmp_path, "a.log", "keep.log", "build/x", "src/generated.py", "src/sub/generated.py")
    sandbox.files.upload(tmp_path, "p", gitignore=True)
    assert uploaded(sandbox) == [
        ".gitignore", "keep.log", "src", "src/.gitignore", "src/sub", "src/sub/generated.py",
    ]  # fmt: skip
    sandbox.files.upload(tmp_path, "whole")
    assert len(uploaded(sandbox, "whole")) == 10


def test_rules_of_the_repository_above_apply(sandbox: Sandbox, tmp_path: Path) -> None:
    make(tmp_path, ".gitignore", content="*.log\n/pkg/secret\n")
    make(tmp_path, ".git/HEAD", "pkg/a.log", "pkg/secret", "pkg/sub/secret", "pkg/b")
    sandbox.files.upload(tmp_path / "pkg", "p", gitignore=True)
    assert uploaded(sandbox) == ["b", "sub", "sub/secret"]


def test_the_repository_itself_is_sent_unless_excluded(sandbox: Sandbox, tmp_path: Path) -> None:
    make(tmp_path, ".gitignore", content="*.log\nHEAD\n")
    make(tmp_path, ".git/HEAD", ".git/x.log", "HEAD", "b")
    sandbox.files.upload(tmp_path, "p", gitignore=True)
    assert uploaded(sandbox) == [".git", ".git/HEAD", ".git/x.log", ".gitignore", "b"]
    sandbox.files.upload(tmp_path, "q", gitignore=True, exclude=[".git"])
    assert uploaded(sandbox, "q") == [".gitignore", "b"]


def test_what_does_not_fit_is_refused_before_anything_is_sent(
    make_sandbox: MakeSandbox, tmp_path: Path
) -> None:
    make(tmp_path, "a", "z/b", content="x" * 600_000)
    with make_sandbox(fs_limit_bytes=1 << 20) as sandbox:
        with pytest.raises(NoSpaceError, match="raise fs_limit_bytes"):
            sandbox.files.upload(tmp_path, "p")
        sandbox.files.mkdir("there")
        with pytest.raises(NoSpaceError):
            sandbox.files.upload(tmp_path, "there")
        assert [entry.name for entry in sandbox.files.list(recursive=True)] == ["there"]
        sandbox.files.upload(tmp_path, "there", exclude=["z"])
        sandbox.files.upload(tmp_path, "there", exclude=["z"])  # replaces the same files


def test_too_many_files_are_refused(make_sandbox: MakeSandbox, tmp_path: Path) -> None:
    make(tmp_path, *(f"f{number}" for number in range(60)))
    with make_sandbox(max_inodes=50) as sandbox:
        with pytest.raises(NoSpaceError, match="raise max_inodes"):
            sandbox.files.upload(tmp_path, "p")
        assert sandbox.files.list() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_an_unreadable_file_is_refused_before_anything_is_sent(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    make(tmp_path, "a", "b")
    (tmp_path / "b").chmod(0)
    with pytest.raises(PermissionError):
        sandbox.files.upload(tmp_path, "p")
    assert sandbox.files.list() == []


def test_a_new_directory_appears_complete_or_not_at_all(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a", "b")
    readlink = os.readlink

    def vanished(path: str) -> str:
        if path.endswith("link"):  # as if it were removed while the directory is sent
            raise FileNotFoundError(path)
        return readlink(path)

    (tmp_path / "link").symlink_to("a")
    monkeypatch.setattr(os, "readlink", vanished)
    with pytest.raises(FileNotFoundError):
        sandbox.files.upload(tmp_path, "p")
    assert sandbox.files.list() == []
    monkeypatch.undo()
    sandbox.files.upload(tmp_path, "p")
    assert uploaded(sandbox) == ["a", "b", "link"]


def test_a_file_does_not_replace_a_directory(sandbox: Sandbox, tmp_path: Path) -> None:
    make(tmp_path, "a", "b/c")
    sandbox.files.write("p/b", "a file")
    with pytest.raises(FileError, match="ENOTDIR"):
        sandbox.files.upload(tmp_path, "p")
    assert uploaded(sandbox) == ["b"]
    sandbox.files.mkdir("q/a")
    with pytest.raises(FileError, match="EISDIR"):
        sandbox.files.upload(tmp_path, "q")
    assert uploaded(sandbox, "q") == ["a"]


@pytest.mark.parametrize("exclude", ["*.pyc", 5, [1]])
def test_wrong_patterns_are_refused(sandbox: Sandbox, tmp_path: Path, exclude: object) -> None:
    with pytest.raises(TypeError, match=r"^exclude"):
        sandbox.files.upload(tmp_path, "p", exclude=exclude)  # type: ignore[arg-type]


def test_patterns_mean_what_they_mean_to_git() -> None:
    """Random patterns and paths, decided by the git of the sandbox."""
    chance = random.Random(20260116)
    parts = ["a", "b", "ab", "*", "?", "a*", "*b", "**", "[ab]", "[!a]", "[^b]", "\\a", "a**b"]
    names = ["a", "b", "ab", "abb", "c"]
    paths = ["/".join(path) for size in (1, 2, 3) for path in itertools.product(names, repeat=size)]
    with Sandbox() as sandbox:
        sandbox.commands.run("git init -q r")
        for _ in range(60):
            patterns = []
            for _ in range(chance.randint(1, 4)):
                pattern = "/".join(chance.choice(parts) for _ in range(chance.randint(1, 3)))
                before = chance.choice(("", "", "!", "/", "!/"))
                patterns.append(before + pattern + chance.choice(("", "", "/", " ")))
            sandbox.files.write("r/.gitignore", "\n".join(["# some", *patterns]) + "\n")
            asked = sandbox.commands.run(
                "cd r && git check-ignore --no-index --stdin", stdin="\n".join(paths) + "\n"
            )
            expected = set(asked.stdout.splitlines())
            rules = IgnoreRules().with_lines(patterns)
            assert {path for path in paths if _ignored(rules, path)} == expected, patterns


def _ignored(rules: IgnoreRules, path: str) -> bool:
    """Whether a file, or a directory above it, is ignored."""
    names = path.split("/")
    above = ["/".join(names[:count]) for count in range(1, len(names))]
    return any(rules.ignore(each, is_directory=True) for each in above) or rules.ignore(
        path, is_directory=False
    )
