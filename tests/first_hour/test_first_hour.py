"""The first hour of a new user: `pip install wasmsand`, then each interface as its page shows it.

Everything runs in a clean environment with an empty cache, without a network, and may not compile
anything (see `tests/wheel/installation.py`).
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.cli.user import User
from tests.first_hour.printed_commands import NOT_RUN, printed_commands, reason_against
from tests.wheel.installation import Installation

COMMAND_PAGES = (
    "quickstart.md",
    "guides/cli.md",
    "guides/hosts.md",
    "guides/mcp.md",
    "guides/mounts.md",
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


def test_help_and_doctor(installed: Installation, home: Path) -> None:
    shown = installed.wasmsand("--help", home=home)
    assert "WASMSAND_CACHE" in shown.stdout
    assert "wasmsand doctor" in shown.stdout
    doctor = installed.wasmsand("doctor", home=home)
    assert doctor.returncode == 0, doctor.stdout
    assert "wrong" not in doctor.stdout


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_the_python_code_of_a_page_runs_as_printed(
    installed: Installation, home: Path, repository: Path, page: str
) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(repository / "tests")!r})
from pathlib import Path
from documents import run_document
print(run_document(Path({str(repository / page)!r})))
"""
    result = installed.run("-c", code, home=home, cwd=repository)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0


def test_wasmsand_python(installed: Installation, home: Path) -> None:
    result = installed.wasmsand("python", "-c", "print(6 * 7)", home=home)
    assert (result.stdout, result.stderr) == ("42\n", "")


def test_the_commands_of_the_pages_run_as_printed(
    installed: Installation, home: Path, tmp_path: Path, repository: Path
) -> None:
    """In order, in one directory, with the files that they name."""
    work = tmp_path / "work"
    (home / "src/app").mkdir(parents=True)
    (work / "src").mkdir(parents=True)
    (work / "src/app.py").write_text("print(1)\n")
    (work / "Makefile").write_text("test:\n\techo tested\n")
    (work / "names.txt").write_text("b\na\nb\n")
    (work / "data.csv").write_text("2\n1\n")
    (work / "access.log").write_text("10.0.0.1 GET /\n10.0.0.2 GET /\n10.0.0.1 GET /\n")
    with server(installed, home) as url:
        terminal = Terminal(installed, home, work, url)
        printed = [
            command
            for page in COMMAND_PAGES
            for command in printed_commands(repository / "docs" / page)
            if reason_against(command) is None
        ]
        # All pages use the same sandbox: what ends it comes last.
        for command in sorted(printed, key=lambda command: command.startswith("wasmsand kill")):
            terminal.run(command)
    assert (work / "report.txt").read_text() == "1 app.py\n"
    assert (work / "out.csv").read_text() == "1\n2\n"
    assert (work / "a.txt").read_text() == "hi\n"


class Terminal:
    """Runs commands as a user types them."""

    def __init__(self, installed: Installation, home: Path, work: Path, url: str) -> None:
        self._installed = installed
        self._home = home
        self._work = work
        self._url = url
        self._sandbox: str | None = None
        """The kept sandbox, which the pages call `sbx-5a0ed1a2...`."""

    def run(self, command: str) -> None:
        """Run one command, which must succeed."""
        on_server = re.search(r"sbx-|--keep|wasmsand (ps|kill|attach)\b", command) is not None
        if self._sandbox is not None:
            command = command.replace("sbx-5a0ed1a2...", self._sandbox)
        variables = {"WASMSAND_URL": self._url} if on_server else {}
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=self._work,
            env=self._installed.environment(self._home, **variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
        if kept := re.search(r"wasmsand: sandbox (sbx-\S+)", ended.stderr):
            self._sandbox = kept[1]
            self.run("wasmsand cp Makefile sbx-5a0ed1a2...:")


def test_every_command_that_is_left_out_is_printed_somewhere(repository: Path) -> None:
    printed = [
        command
        for page in COMMAND_PAGES
        for command in printed_commands(repository / "docs" / page)
    ]
    for part in NOT_RUN:
        assert [command for command in printed if part in command], part


@contextmanager
def server(installed: Installation, home: Path) -> Iterator[str]:
    """`wasmsand serve` on a free port: its address."""
    process = subprocess.Popen(
        [installed.commands / "wasmsand", "serve", "--port", "0"],
        env=installed.environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                yield found[0]
                return
        raise AssertionError("the server did not start")
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_http(installed: Installation, home: Path) -> None:
    def ask(method: str, url: str, value: object = None) -> Any:
        data = None if value is None else json.dumps(value).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        with urlopen(Request(url, data, headers, method=method), timeout=120) as answer:
            body = answer.read()
            return json.loads(body) if body else None

    with server(installed, home) as url:
        made = ask("POST", f"{url}/v1/sandboxes", {})
        sandbox = f"{url}/v1/sandboxes/{made['id']}"
        result = ask("POST", f"{sandbox}/run", {"command": "seq 3 | paste -sd+ | bc"})
        assert (result["stdout"], result["exit_code"]) == ("6\n", 0)
        python = ask("POST", f"{sandbox}/run", {"command": ["python3", "-c", "print(6 * 7)"]})
        assert python["stdout"] == "42\n"
        ask("DELETE", sandbox)


def test_json_rpc_as_printed(installed: Installation, home: Path, repository: Path) -> None:
    page = (repository / "docs/protocols/json-rpc.md").read_text(encoding="utf-8")
    block = re.findall(r"^```\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[0]
    sent = [line[2:] for line in block.splitlines() if line.startswith("→ ")]
    printed = [json.loads(line[2:]) for line in block.splitlines() if line.startswith("← ")]
    assert len(sent) == len(printed) > 2
    result = installed.wasmsand("rpc", home=home, stdin="".join(f"{line}\n" for line in sent))
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    for answer in (*answers, *printed):
        answer["result"].pop("executionTimeMs", None)
        answer["result"].pop("timedOut", None)
        answer["result"].pop("truncated", None)
    assert answers == printed, result.stderr


def test_the_line_protocol(installed: Installation, home: Path) -> None:
    with subprocess.Popen(
        [installed.commands / "wasm-sandbox"],
        env=installed.environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(**request: object) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return answer

        shell = ask(type="shell", id="1", command="echo hi | tee note; python3 -c 'print(1)'")
        assert (shell["stdout"], shell["timed_out"]) == ("hi\n1\n", False)
        assert ask(type="read_file", id="2", path="note")["content"] == "hi\n"
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("command", "prompt", "typed", "answer"),
    [("python", ">>> ", "6 * 7\n", "42"), ("shell", "$ ", "echo $((6 * 7))\n", "42")],
)
def test_an_interactive_session_on_a_terminal(
    installed: Installation, home: Path, command: str, prompt: str, typed: str, answer: str
) -> None:
    environ = installed.environment(home, PYTHONPATH="")
    with User(command, command=[str(installed.commands / "wasmsand")], environ=environ) as user:
        user.expect(prompt)
        user.type(typed)
        user.expect(answer)
        user.expect(prompt)
        user.type("\x04")
        assert user.status() == 0


def test_mcp_on_standard_input_and_output(installed: Installation, home: Path) -> None:
    def request(number: int, method: str, **params: object) -> str:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return json.dumps(message) + "\n"

    with subprocess.Popen(
        [installed.commands / "wasmsand", "mcp"],
        env=installed.environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(text: str) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(text)
            process.stdin.flush()
            while "id" not in (answer := json.loads(process.stdout.readline())):
                pass  # a notification
            result: dict[str, Any] = answer["result"]
            return result

        begun = ask(
            request(
                1,
                "initialize",
                protocolVersion="2025-06-18",
                capabilities={},
                clientInfo={"name": "first hour", "version": "1"},
            )
        )
        assert begun["serverInfo"]["name"] == "wasmsand"
        process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        tools = ask(request(2, "tools/list"))["tools"]
        assert "sandbox_run" in [tool["name"] for tool in tools]
        called = {"name": "sandbox_run", "arguments": {"command": "echo hi"}}
        assert "hi" in str(ask(request(3, "tools/call", **called))["content"])
        process.stdin.close()
        assert process.wait(60) == 0
