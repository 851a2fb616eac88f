"""`--connect`, `cp` and `ls`: sandboxes of a server, from the command line."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("msgspec", reason="pip install 'wasmsand[serve]'")

from tests.cli.command import COMMAND
from tests.cli.user import User
from tests.http.server import ServerProcess, serving

TOKEN = "a-token-of-these-tests"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(environ={"WASMSAND_TOKENS": f"me:{TOKEN}"}) as server:
        yield server.url


def wasmsand(url: str, *words: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        timeout=120,
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "WASMSAND_URL": url, "WASMSAND_TOKEN": token},
    )


def kept(url: str, script: str) -> str:
    """Run `script` in a sandbox that is kept; returns its ID."""
    result = wasmsand(url, "run", "--keep", script)
    found = re.search("wasmsand: sandbox (sbx-[^\\s]+)\n", result.stderr)
    assert found, result.stderr
    return found[1]


def test_run_makes_a_sandbox_that_ends_with_it(url: str) -> None:
    result = wasmsand(url, "run", "echo $((6 * 7)); echo e >&2; exit 3")
    assert (result.stdout, result.stderr, result.returncode) == ("42\n", "e\n", 3)
    assert wasmsand(url, "ls").stdout == ""


def test_a_kept_sandbox_can_be_used_again(url: str) -> None:
    identity = kept(url, "echo hi > a.txt")
    assert wasmsand(url, "run", "--sandbox", identity, "cat a.txt").stdout == "hi\n"
    assert wasmsand(url, "ls").stdout.startswith(identity)
    assert wasmsand(url, "ls", identity).stdout == "a.txt\n"
    long = wasmsand(url, "ls", "-l", f"{identity}:/home/user").stdout
    assert re.fullmatch(r"-rw-r--r-- +3 \d{4}-\d\d-\d\d [\d:]{8} a.txt\n", long), long


def test_cp_takes_files_in_and_out(url: str, tmp_path: Path) -> None:
    identity = kept(url, "mkdir d")
    (tmp_path / "f.txt").write_text("content")
    for target in (f"{identity}:", f"{identity}:d", f"{identity}:d/g.txt", f"{identity}:new/"):
        result = wasmsand(url, "cp", str(tmp_path / "f.txt"), target)
        assert (result.returncode, result.stderr) == (0, "")
    found = wasmsand(url, "run", "--sandbox", identity, "find . -type f | sort").stdout
    assert found == "./d/f.txt\n./d/g.txt\n./f.txt\n./new/f.txt\n"
    assert wasmsand(url, "cp", f"{identity}:d", str(tmp_path)).returncode == 0
    assert (tmp_path / "d" / "g.txt").read_text() == "content"
    assert wasmsand(url, "cp", f"{identity}:f.txt", str(tmp_path / "renamed")).returncode == 0
    assert (tmp_path / "renamed").read_text() == "content"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ls", "sbx-0"], "no sandbox"),
        (["ls", "../../x"], "wasmsand: "),
        (["cp", "/no/such", "sbx-0:"], "no sandbox"),
        (["run", "--sandbox", "sbx-0", "true"], "no sandbox"),
        (["run", "--wasm-dir", "/tmp", "true"], "wasm_dir is a directory of this machine"),
    ],
)
def test_mistakes_are_named(url: str, words: list[str], message: str) -> None:
    result = wasmsand(url, *words)
    assert result.returncode == (2 if "--wasm-dir" in words else 125)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_missing_files_are_named(url: str, tmp_path: Path) -> None:
    identity = kept(url, ":")
    result = wasmsand(url, "cp", f"{tmp_path}/nothing", f"{identity}:")
    assert (result.returncode, "nothing: No such file" in result.stderr) == (125, True)
    result = wasmsand(url, "cp", f"{identity}:nothing", str(tmp_path))
    assert (result.returncode, "ENOENT" in result.stderr) == (125, True)


def test_a_wrong_token_and_an_unreachable_server_are_reported(url: str) -> None:
    assert "token" in wasmsand(url, "ls", token="another-token-than-that").stderr
    nobody = wasmsand("http://127.0.0.1:9", "run", "true")
    assert nobody.returncode == 125
    assert "127.0.0.1:9" in nobody.stderr


def test_snapshots_are_taken_listed_restored_and_deleted(url: str) -> None:
    identity = kept(url, "echo one > a.txt")
    snapshot = wasmsand(url, "snapshot", "--name", "before\x1b", identity).stdout.strip()
    assert re.fullmatch("snap-[0-9a-f]+", snapshot)
    wasmsand(url, "run", "--sandbox", identity, "echo two > a.txt")
    listed = wasmsand(url, "snapshot", "--list", identity).stdout
    assert re.fullmatch(rf"{snapshot}  [-\d]+ [:\d]+  \d+\.\d MB  before\?\n", listed)
    assert wasmsand(url, "restore", identity, "before\x1b").returncode == 0
    assert wasmsand(url, "run", "--sandbox", identity, "cat a.txt").stdout == "one\n"
    assert wasmsand(url, "snapshot", "--delete", snapshot, identity).returncode == 0
    failed = wasmsand(url, "restore", identity, snapshot)
    assert (failed.returncode, failed.stdout) == (125, "")
    assert failed.stderr.startswith(f"wasmsand: no snapshot {snapshot[:64]!r}")


def test_copies_are_sandboxes_of_their_own(url: str) -> None:
    identity = kept(url, "echo one > a.txt")
    snapshot = wasmsand(url, "snapshot", identity).stdout.strip()
    wasmsand(url, "run", "--sandbox", identity, "echo two > a.txt")
    first, second = wasmsand(url, "fork", "--count", "2", identity).stdout.split()
    third = wasmsand(url, "fork", "--snapshot", snapshot, identity).stdout.strip()
    wasmsand(url, "run", "--sandbox", second, "echo 2 >> a.txt")
    found = [
        wasmsand(url, "run", "--sandbox", each, "cat a.txt").stdout
        for each in (identity, first, second, third)
    ]
    assert found == ["two\n", "two\n", "two\n2\n", "one\n"]


def test_a_sandbox_of_a_server_is_saved_here(url: str, tmp_path: Path) -> None:
    first, second = str(tmp_path / "1.wsand"), str(tmp_path / "2.wsand")
    assert wasmsand(url, "run", "--save", first, "echo one > a.txt").returncode == 0
    assert wasmsand("", "load", first, "cat a.txt").stdout == "one\n"
    identity = kept(url, "echo two > a.txt")
    assert wasmsand(url, "run", "--sandbox", identity, "--save", second, ":").returncode == 0
    assert wasmsand("", "load", second, "cat a.txt").stdout == "two\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("snapshot", "sbx-none"), "no sandbox 'sbx-none'"),
        (("snapshot", "--list", "--name", "a", "sbx-none"), "give only one of"),
        (("fork", "../../metrics"), "unknown path"),
        (("fork", "--count", "0", "sbx-none"), "'0' is not a positive number"),
        (("restore", "sbx-none", "a"), "no sandbox 'sbx-none'"),
        (("run", "--load", "f", "true"), "not of a server"),
    ],
)
def test_wrong_copies_are_refused(url: str, words: tuple[str, ...], message: str) -> None:
    result = wasmsand(url, *words)
    assert result.returncode in (2, 125)
    assert message in result.stderr


def test_a_shell_in_a_sandbox_of_the_server(url: str) -> None:
    identity = kept(url, "echo from before > a.txt")
    environ = {"WASMSAND_TOKEN": TOKEN}
    with User("shell", "--connect", url, "--id", identity, environ=environ) as user:
        user.expect("$ ")
        user.type("cat a.txt; stty size\r")
        user.expect("from before\r\n24 80\r\n")
        user.resize(40, 100)
        user.type("until [ \"$(stty size)\" = '40 100' ]; do sleep 0.05; done; echo it grew\r")
        user.expect("\rit grew\r\n")
        # A key that is pressed before bash has given the terminal to the program would miss it.
        user.type("bash -c 'echo runs; exec sleep 100'\r")
        user.expect("\rruns\r\n")
        user.type("\x03")
        user.type("echo status $?; exit 3\r")
        user.expect("status 130\r\n")
        assert (user.status(), user.has_old_settings) == (3, True)
    assert "a.txt\n" in wasmsand(url, "ls", identity).stdout  # it goes on


def test_programs_and_python_on_a_terminal_of_the_server(url: str) -> None:
    environ = {"WASMSAND_TOKEN": TOKEN, "WASMSAND_URL": url}
    with User("run", "--keep", "vim", "a.txt", environ=environ) as user:
        user.wait_for_screen("~")
        user.type("ifar away\x1b:wq\r")
        assert (user.status(), user.has_old_settings) == (0, True)
        found = re.search(rb"wasmsand: sandbox (sbx-\w+)", user.shown)
    assert found
    identity = found[1].decode()
    assert wasmsand(url, "run", "--sandbox", identity, "cat a.txt").stdout == "far away\n"
    with User("python", "--id", identity, environ=environ) as user:
        user.wait_for_screen(">>>")
        user.type("open('a.txt').read()\r")
        user.wait_for_screen("'far away\\n'")
        user.type("\x04")
        assert user.status() == 0


def test_a_server_that_goes_away_gives_the_terminal_back() -> None:
    server = ServerProcess("--grace-seconds", "1")
    with User("shell", "--connect", server.url) as user:
        user.expect("$ ")
        server.terminate()
        assert (user.status(), user.has_old_settings) == (125, True)
        assert b"wasmsand: the server at" in user.shown


def test_a_token_error_says_how_to_give_it(url: str, tmp_path: Path) -> None:
    without = wasmsand(url, "run", "true", token="")
    assert without.returncode == 125
    assert without.stderr == (
        "wasmsand: the server needs a token: put it into the environment variable WASMSAND_TOKEN, "
        "or into a file and give --token-file FILE\n"
    )
    wrong = wasmsand(url, "ls", token="wrong-token-of-these-tests")
    assert "the server does not accept your token" in wrong.stderr
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    given = wasmsand(url, "run", "--token-file", str(file), "echo hi", token="")
    assert (given.stdout, given.stderr) == ("hi\n", "")
    missing = wasmsand(url, "run", "--token-file", "/no/such", "true")
    assert (missing.returncode, "/no/such: No such file" in missing.stderr) == (2, True)
