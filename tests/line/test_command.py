"""The options of `wasm-sandbox`, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import wasmsand
from tests.line.peer import COMMAND, Peer, PeerMaker
from tests.wire.line_peer import SECONDS


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        timeout=SECONDS * 3,
        stdin=subprocess.DEVNULL,
    )


def test_help_lists_the_options_of_the_specification() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "wasm-sandbox [OPTIONS]" in done.stdout
    for option in ("--memory-limit <MB>", "--disk-image <PATH>", "--mode <MODE>", "--help"):
        assert option in done.stdout
    assert "Print version information" in done.stdout


def test_version() -> None:
    assert run("--version").stdout == f"wasm-sandbox {wasmsand.__version__}\n"


def test_the_installed_script_is_declared(repository: Path) -> None:
    assert 'wasm-sandbox = "wasmsand.cli.line:main"' in (repository / "pyproject.toml").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mode", "v86"], "--mode v86 needs --disk-image <PATH>"),
        (
            ["--mode", "v86", "--disk-image", "x.img"],
            "wasm-sandbox: the v86 machine is not built; build it (in a source checkout): "
            "wasmsand build v86",
        ),
        (["--mode", "fast"], "argument --mode: invalid choice: 'fast'"),
        (["--memory-limit", "0"], "'0' is not a positive number of megabytes"),
        (["--memory-limit", "64MB"], "'64MB' is not a positive number of megabytes"),
        (["--mem", "64"], "unrecognized arguments: --mem 64"),
        (["file"], "unrecognized arguments: file"),
    ],
)
def test_wrong_options_are_explained(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WASMSAND_V86_IMAGE", str(tmp_path / "nothing"))
    done = run(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr


def test_the_command_ends_with_its_input(sandbox: Peer) -> None:
    sandbox.close_input()
    assert sandbox.ended() == 0
    assert sandbox.stderr() == ""


def test_commands_are_answered_before_the_end(sandbox: Peer) -> None:
    limit = sandbox.limit(5000)
    sandbox.send(
        {"type": "shell", "command": "sleep 0.5; echo x", "id": "1", "time_limit_ms": limit}
    )
    sandbox.close_input()
    assert sandbox.receive()["stdout"] == "x\n"
    assert sandbox.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command_quietly(sandbox: Peer, number: signal.Signals) -> None:
    sandbox.ask({"type": "status", "id": "1"})
    sandbox.send({"type": "shell", "command": "sleep 60", "id": "2", "time_limit_ms": 60_000})
    time.sleep(0.3)
    sandbox.process.send_signal(number)
    assert sandbox.process.wait(sandbox.seconds) == 128 + number
    assert sandbox.stderr() == ""


def test_the_command_ends_when_nobody_reads_the_answers(start: PeerMaker) -> None:
    with subprocess.Popen(
        [*COMMAND, *start.words()], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"type":"status","id":"1"}\n')
        process.stdin.write(
            b'{"type":"shell","command":"sleep 60","id":"2","time_limit_ms":60000}\n'
        )
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(SECONDS * 3) == 141


def test_a_disk_image_keeps_files_from_one_run_to_the_next(
    start: PeerMaker, tmp_path: Path
) -> None:
    image = tmp_path / "disk.img"
    with start("--disk-image", str(image)) as sandbox:
        assert sandbox.shell("echo kept > notes")["exit_code"] == 0
        sandbox.close_input()
        assert sandbox.ended() == 0
    before = image.read_bytes()
    with start("--disk-image", str(image)) as sandbox:
        assert sandbox.shell("cat notes; echo more >> notes")["stdout"] == "kept\n"
        assert sandbox.ask({"type": "reset", "id": "r"})["success"]
        assert sandbox.shell("cat notes")["stdout"] == "kept\n"
        sandbox.process.kill()
        sandbox.process.wait()
    assert image.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["disk.img"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not an archive" * 100, "not a disk image"),
        (b"", "not a disk image"),
    ],
)
def test_a_file_that_is_not_a_disk_image_is_refused_and_kept(
    start: PeerMaker, tmp_path: Path, content: bytes, message: str
) -> None:
    image = tmp_path / "disk.img"
    image.write_bytes(content)
    done = run(*start.words("--disk-image", str(image)))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"wasm-sandbox: {image}: {message}")
    assert image.read_bytes() == content


def test_a_disk_image_in_a_missing_directory_is_refused(start: PeerMaker, tmp_path: Path) -> None:
    done = run(*start.words("--disk-image", str(tmp_path / "no" / "disk.img")))
    assert done.returncode == 1
    assert done.stderr == (
        f"wasm-sandbox: {tmp_path / 'no' / 'disk.img'}: the directory does not exist\n"
    )


def test_the_script_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from wasmsand.cli.line import main; main(['--version'])"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.stdout == run("--version").stdout


def test_a_reset_that_cannot_read_the_disk_leaves_the_sandbox_as_it_is(
    start: PeerMaker, tmp_path: Path
) -> None:
    image = tmp_path / "disk.img"
    with start("--disk-image", str(image)) as sandbox:
        sandbox.shell("echo x > x")
        image.write_bytes(b"broken meanwhile")
        answer = sandbox.ask({"type": "reset", "id": "r"})
        assert answer["success"] is False
        assert answer["error"].startswith(f"{image}: not a disk image")
        assert sandbox.shell("cat x")["stdout"] == "x\n"
