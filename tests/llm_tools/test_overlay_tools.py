"""A model sees its changes of a mounted directory; only the operator lets it write them back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wasmsand import Mount, Sandbox
from wasmsand.tools import SandboxTools


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "old.txt").write_text("old\n")
    return tmp_path


@pytest.fixture
def sandbox(project: Path) -> Iterator[Sandbox]:
    with Sandbox(mounts={"/project": Mount(project, mode="overlay")}, cwd="/project") as sandbox:
        yield sandbox


CHANGE = {"command": "echo two >> a.txt; rm old.txt; echo new > new.txt"}


def test_a_model_sees_what_it_has_changed(
    tools: SandboxTools, sandbox: Sandbox, project: Path
) -> None:
    assert tools.handle("sandbox_diff", {})["patch"] == ""
    tools.handle("sandbox_run", CHANGE)
    answer = tools.handle("sandbox_diff", {})
    patch = answer.pop("patch")
    assert answer == {
        "path": "/project",
        "added": ["new.txt"],
        "changed": ["a.txt"],
        "removed": ["old.txt"],
        "conflicts": [],
    }
    assert "+two\n" in patch
    assert "patch" not in tools.handle("sandbox_diff", {"patch": False})
    assert sorted(path.name for path in project.iterdir()) == ["a.txt", "old.txt"]
    assert (project / "a.txt").read_text() == "one\n"
    text = tools.answer_openai({"id": "c", "function": {"name": "sandbox_diff", "arguments": ""}})
    assert text["content"].startswith("added: new.txt\nchanged: a.txt\nremoved: old.txt\ndiff ")


def test_nothing_is_written_back_unless_the_operator_allows_it(
    sandbox: Sandbox, project: Path
) -> None:
    plain = SandboxTools(sandbox)
    plain.handle("sandbox_run", CHANGE)
    assert "sandbox_apply" not in [tool.name for tool in plain.definitions]
    assert plain.handle("sandbox_apply", {})["error"]["code"] == "UNKNOWN_TOOL"
    assert (project / "a.txt").read_text() == "one\n"
    allowed = SandboxTools(sandbox, apply_changes=True)
    assert "sandbox_apply" in [tool.name for tool in allowed.definitions]
    answer = allowed.handle("sandbox_apply", {"path": "/project/"})
    assert (answer["added"], answer["removed"]) == (["new.txt"], ["old.txt"])
    assert (project / "a.txt").read_text() == "one\ntwo\n"
    assert sorted(path.name for path in project.iterdir()) == ["a.txt", "new.txt"]
    assert allowed.handle("sandbox_diff", {})["patch"] == ""


def test_a_conflict_is_left_to_the_user(sandbox: Sandbox, project: Path) -> None:
    tools = SandboxTools(sandbox, apply_changes=True)
    tools.handle("sandbox_run", CHANGE)
    (project / "a.txt").write_text("of the user\n")
    assert tools.handle("sandbox_diff", {})["conflicts"] == ["a.txt"]
    error = tools.handle("sandbox_apply", {})["error"]
    assert error["message"].startswith("nothing was written: ")
    assert (project / "a.txt").read_text() == "of the user\n"
    assert not (project / "new.txt").exists()


def test_only_overlays_can_be_named(tools: SandboxTools) -> None:
    for path in ("/etc", "/project/..", "/project/a.txt"):
        error = tools.handle("sandbox_diff", {"path": path})["error"]
        assert "is not such a directory; use one of: /project" in error["message"]


def test_long_patches_are_cut_and_saved(sandbox: Sandbox) -> None:
    tools = SandboxTools(sandbox, output_limit=500)
    tools.handle("sandbox_run", {"command": "seq 1000 > a.txt; touch $(seq 600)"})
    answer = tools.handle("sandbox_diff", {})
    assert len(answer["patch"]) < 700
    assert "the whole output is in /tmp/tool-output/" in answer["patch"]
    assert answer["added"][-1] == "... and 100 more"


def test_without_an_overlay_the_tools_are_not_offered() -> None:
    with Sandbox() as sandbox:
        names = [tool.name for tool in SandboxTools(sandbox, apply_changes=True).definitions]
        assert not {"sandbox_diff", "sandbox_apply"} & set(names)
