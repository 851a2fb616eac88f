"""Files and directories of the client's machine in the sandbox of `wasmsand mcp`."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="pip install 'wasmsand[mcp]'")

from tests.mcp.serving import COMMAND, call, environment, http_server, run, stdio_client, text
from wasmsand.cli import mcp as mcp_command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "app"
    directory.mkdir()
    (directory / "main.py").write_text("print('one')\n")
    return directory


def test_a_project_is_changed_in_the_sandbox_only(project: Path) -> None:
    async def test() -> None:
        async with stdio_client("--project", str(project)) as client:
            assert "/project (changes stay in the sandbox)" in (client.instructions or "")
            assert "Work in /project." in (client.instructions or "")
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert "sandbox_diff" in tools
            assert "sandbox_apply" not in tools
            ran = await call(client, "sandbox_run", command="pwd; python3 main.py")
            assert ran["stdout"] == "/project\none\n"
            imported = await call(client, "sandbox_python", code="import main")
            assert imported["stdout"] == "one\n"
            edit = {"path": "main.py", "old_string": "one", "new_string": "two"}
            await call(client, "sandbox_edit_file", **edit)
            assert (await call(client, "sandbox_run", command="python3 main.py"))["stdout"] == (
                "two\n"
            )
            diff = text(await client.call_tool("sandbox_diff", {}))
            assert diff.startswith("changed: main.py\ndiff --git ")
            assert "-print('one')\n+print('two')\n" in diff

    run(test)
    assert (project / "main.py").read_text() == "print('one')\n"


def test_changes_are_written_back_if_the_operator_allows_it(project: Path) -> None:
    async def test() -> None:
        async with stdio_client("--project", str(project), "--allow-apply") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            annotations = tools["sandbox_apply"].annotations
            assert annotations is not None
            assert annotations.destructive_hint is True
            await call(client, "sandbox_run", command="echo hi > new.txt")
            assert (await call(client, "sandbox_apply"))["added"] == ["new.txt"]

    run(test)
    assert (project / "new.txt").read_text() == "hi\n"


@pytest.mark.parametrize(("mode", "written"), [("ro", False), ("rw", True)])
def test_a_project_may_be_read_only_or_changed_itself(
    project: Path, mode: str, written: bool
) -> None:
    async def test() -> None:
        async with stdio_client("--project", f"{project}:{mode}") as client:
            result = await call(client, "sandbox_run", command="echo hi > new.txt")
            assert (result["exit_code"] == 0) is written
            assert "sandbox_diff" not in [tool.name for tool in (await client.list_tools()).tools]

    run(test)
    assert (project / "new.txt").exists() is written


def test_git_works_in_a_project(project: Path) -> None:
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)

    async def test() -> None:
        async with stdio_client("--project", str(project)) as client:
            script = "echo '# end' >> main.py; git log --oneline | wc -l; git status --short"
            result = await call(client, "sandbox_run", command=script)
            assert (result["stdout"], result["stderr"]) == ("1\n M main.py\n", "")

    run(test)


def test_files_are_copied_and_directories_mounted(project: Path, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n")
    words = ("--file", str(tmp_path / "data.csv"), "--file", f"{project}:copy")

    async def test() -> None:
        async with stdio_client(*words, "--mount", f"{project}:/mnt/app:ro") as client:
            script = "cat data.csv; ls copy; ls /mnt/app; touch copy/new"
            result = await call(client, "sandbox_run", command=script)
            assert (result["exit_code"], result["stdout"]) == (0, "a,b\nmain.py\nmain.py\n")

    run(test)
    assert [path.name for path in project.iterdir()] == ["main.py"]


def test_sessions_over_http_have_their_own_changes(project: Path) -> None:
    from mcp import Client

    async def test() -> None:
        with http_server("--project", str(project)) as url:
            async with Client(url) as one, Client(url) as two:
                await call(one, "sandbox_run", command="echo mine > new.txt")
                assert (await call(one, "sandbox_diff"))["added"] == ["new.txt"]
                assert (await call(two, "sandbox_diff"))["added"] == []

    run(test)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--project", "/nowhere/at/all"), "cannot mount /nowhere/at/all"),
        (("--project", "."), ""),
        (("--project", "", "--timeout", "1"), "--project: ':/project' is not"),
        (("--file", "/nowhere/at/all"), "--file /nowhere/at/all: No such file or directory"),
        (("--mount", "x"), "is not HOST:GUEST"),
        (("--project", ".", "--mount", ".:/project"), "--project uses /project"),
        (("--project", ".", "--isolation", "process"), "cannot mount directories"),
    ],
)
def test_wrong_options_are_reported_at_once(words: tuple[str, ...], message: str) -> None:
    ended = subprocess.run(
        [*COMMAND, *words], input="", capture_output=True, text=True, env=environment(), timeout=120
    )
    if message:
        assert ended.returncode != 0
        assert message in ended.stderr
        assert "Traceback" not in ended.stderr
    else:
        assert (ended.returncode, ended.stderr) == (0, "")


def test_the_configurations_of_the_guide_start_a_server(repository: Path, project: Path) -> None:
    guide = (repository / "docs" / "guides" / "mcp.md").read_text("utf-8")
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", guide, re.DOTALL)]
    inline = [json.loads(found) for found in re.findall(r"`(\{.*?\})`", guide)]
    assert len(blocks) == 2
    assert len(inline) == 1
    for configured in (*blocks, *inline):
        (servers,) = configured.values()
        server = servers["sandbox"]
        assert server["command"] == "wasmsand"
        words = [word.replace("${workspaceFolder}", str(project)) for word in server["args"]]
        command = [sys.executable, "-m", "wasmsand", *words]
        ended = subprocess.run(
            command, input="", capture_output=True, text=True, env=environment(), timeout=120
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "none"),
        (("--http", "127.0.0.1:0"), "none"),
        (("--http", "0.0.0.0:0"), "process"),
        (("--http", "0.0.0.0:0", "--isolation", "none"), "none"),
        (("--http", "0.0.0.0:0", "--project", "."), "none"),
        (("--http", "localhost:0", "--isolation", "process"), "process"),
    ],
)
def test_sandboxes_for_other_machines_run_in_processes_of_their_own(
    words: tuple[str, ...], expected: str
) -> None:
    parser = argparse.ArgumentParser()
    mcp_command.add_options(parser)
    arguments = parser.parse_args(words)
    options = mcp_command._sandbox_options(arguments)
    assert mcp_command._isolation(arguments, options) == expected
