"""`wasmsand run` acts as if the command were a local one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.command import COMMAND, wasmsand
from wasmsand.cli import make_parser
from wasmsand.cli.completion import commands_of


def test_output_and_status_pass_through() -> None:
    result = wasmsand("run", "echo hello | tr a-z A-Z; echo problem >&2; exit 3")
    assert (result.stdout, result.stderr, result.returncode) == (b"HELLO\n", b"problem\n", 3)


def test_options_of_the_command_need_no_dashes() -> None:
    result = wasmsand("run", "--env", "A=1", "ls", "-d", "-1", "/tmp", "--", "/usr")
    assert (result.stdout, result.stderr, result.returncode) == (b"/tmp\n/usr\n", b"", 0)


def test_sizes_have_units() -> None:
    result = wasmsand("run", "--fs-limit", "10M", "--memory-limit=1.5G", "df --output=size -k /")
    assert result.stdout.split() == [b"1K-blocks", b"10240"]


def test_several_words_are_a_program_and_its_arguments() -> None:
    result = wasmsand("run", "--", "printf", "%s|", "a b", "$HOME")
    assert result.stdout == b"a b|$HOME|"


def test_standard_input_passes_through_byte_by_byte() -> None:
    data = bytes(range(256)) * 1000
    assert wasmsand("run", "cat", stdin=data).stdout == data


def test_standard_input_comes_while_the_command_runs() -> None:
    command = [*COMMAND, "run", "while read -r line; do echo got $line; done"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in (b"one", b"two"):
            process.stdin.write(word + b"\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"got " + word + b"\n"
        process.stdin.close()
        assert process.wait(30) == 0


def test_standard_input_that_never_ends_does_not_keep_a_command_alive() -> None:
    pipeline = f"yes | {sys.executable} -m wasmsand run 'head -n 1'"
    result = subprocess.run(["bash", "-c", pipeline], capture_output=True, timeout=60)
    assert (result.stdout, result.stderr) == (b"y\n", b"")


def test_output_has_no_limit() -> None:
    count = 80 * 1024 * 1024
    pipeline = f"{sys.executable} -m wasmsand run 'head -c {count} /dev/zero' | wc -c"
    result = subprocess.run(["bash", "-c", pipeline], capture_output=True, timeout=120)
    assert result.stdout.strip() == str(count).encode()


def test_a_timeout_is_status_124() -> None:
    result = wasmsand("run", "--timeout", "0.5", "echo before; sleep 60")
    assert (result.returncode, result.stdout) == (124, b"before\n")
    assert result.stderr == b"wasmsand: command timed out\n"


def test_env_and_cwd() -> None:
    words = ["--env", "A=1", "--env", "B=x=y", "--cwd", "/tmp/new"]
    result = wasmsand("run", *words, 'echo "$A $B"; pwd')
    assert result.stdout == b"1 x=y\n/tmp/new\n"


def test_file_copies_a_host_file(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("content\n")
    script = tmp_path / "script"
    script.write_text("#!/bin/bash\necho ran\n")
    script.chmod(0o755)
    words = ["--file", f"{tmp_path}/data.txt", "--file", f"{script}:/tmp/bin/s"]
    assert wasmsand("run", *words, "cat data.txt; /tmp/bin/s").stdout == b"content\nran\n"


def test_directories_go_in_and_come_out(tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "a.txt").write_text("b\na\n")
    words = ["--file", f"{tmp_path}/in:work", "--out", f"work:{tmp_path}/all"]
    words += ["--out", f"/tmp/one:{tmp_path}/one"]
    result = wasmsand("run", *words, "sort work/sub/a.txt | tee work/sorted > /tmp/one")
    assert (result.returncode, result.stderr) == (0, b"")
    assert (tmp_path / "one").read_text() == "a\nb\n"
    assert (tmp_path / "all" / "sorted").read_text() == "a\nb\n"
    assert (tmp_path / "all" / "sub" / "a.txt").read_text() == "b\na\n"


def test_what_comes_out_stays_below_its_directory(tmp_path: Path) -> None:
    script = "mkdir d; ln -s /etc/passwd d/link; mkfifo d/fifo; echo x > d/file"
    result = wasmsand("run", "--out", f"d:{tmp_path}/d", script)
    assert result.returncode == 0
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == ["file"]
    assert result.stderr.count(b"not copied") == 2


def test_a_command_that_fails_still_gives_its_files(tmp_path: Path) -> None:
    result = wasmsand("run", "--out", f"log:{tmp_path}/log", "echo why > log; exit 3")
    assert result.returncode == 3
    assert (tmp_path / "log").read_text() == "why\n"


def test_the_host_file_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("content\n")
    wasmsand("run", "--file", str(path), "echo changed > data.txt")
    assert path.read_text() == "content\n"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["run"], 2, b"what to run? For example: wasmsand run 'echo hello'"),
        (["run", "--timeout", "x", "true"], 2, b"'x' is not a number of seconds"),
        (["run", "--timeout", "-1", "true"], 2, b"must be a positive number of seconds"),
        (["run", "--env", "A", "true"], 2, b"'A' is not NAME=VALUE"),
        (["run", "--cwd", "a", "true"], 2, b"'a' is not an absolute path"),
        (["run", "--file", "/no/such", "true"], 125, b"wasmsand: --file /no/such: No such file"),
        (["run", "--file", ":x", "true"], 2, b"':x' is not HOST or HOST:GUEST"),
        (["run", "--out", "/no/such:/tmp/x", "true"], 125, b"wasmsand: --out /no/such: ENOENT"),
        (["run", "--out", "/", "true"], 2, b"'/' is not GUEST or GUEST:HOST"),
        (["run", "--fs-limit", "0", "true"], 2, b"'0' is not a size, such as 65536, 512K, 10M"),
        (["run", "--fs-limit", "10X", "true"], 2, b"'10X' is not a size"),
        (["run", "--timout", "1", "true"], 2, b"unknown option --timout; did you mean --timeout?"),
        (["python", "--fil", "x"], 2, b"unknown option --fil; did you mean --file?"),
        (["python", "no-such-script.py"], 2, b"no-such-script.py: no such file on this machine"),
        (["run", "--keep", "true"], 2, b"--keep and --sandbox need a server: give --connect URL"),
        (["run", "--connect", "nonsense", "true"], 2, b"url must be like http://127.0.0.1:8750"),
        (["run", "--wasm-dir", "/no/such", "true"], 125, b"/no/such"),
        (["ls"], 2, b"give its address with --connect"),
        (["cp", "a", "b"], 2, b"either FROM or TO must be a path in a sandbox (ID:PATH)"),
        (["cp", "a:b", "c:d"], 2, b"either FROM or TO must be a path in a sandbox (ID:PATH)"),
        (["cp", "x", "sbx:y"], 2, b"give its address with --connect"),
        (["completion", "tcsh"], 2, b"invalid choice: 'tcsh'"),
        (
            ["run", "--", "no-such-program", "x"],
            127,
            b"wasmsand: no-such-program: command not found",
        ),
        (["run", "no-such-program"], 127, b"no-such-program: command not found"),
        (["run", "node", "x.js"], 127, b"node: command not found\nhint: there is no Node.js"),
        (["run", "apt-get", "install", "vim"], 127, b"\nhint: the sandbox has no package manager"),
        (["run", "echo hi", "--timeout", "1"], 127, b"options of wasmsand come before it"),
        (["run", "/etc/passwd", "x"], 126, b"cannot run /etc/passwd: EACCES"),
        (["nonsense"], 2, b"there is no command 'nonsense'"),
        (["shel"], 2, b"there is no command 'shel'; did you mean shell?"),
    ],
)
def test_mistakes_are_named(words: list[str], status: int, message: bytes) -> None:
    result = wasmsand(*words)
    assert result.returncode == status
    assert message in result.stderr
    assert b"Traceback" not in result.stderr


def test_a_hint_of_a_saved_sandbox_cannot_control_the_terminal(tmp_path: Path) -> None:
    file = str(tmp_path / "m.wsand")
    hints = r"printf 'node\t\033]0;title\007\033[31mred\n' | sudo tee /usr/share/wasmsand/hints"
    assert wasmsand("run", "--save", file, hints).returncode == 0
    result = wasmsand("run", "--load", file, "node", "x.js")
    assert result.stderr == b"wasmsand: node: command not found\nhint: ]0;title[31mred\n"


def test_output_comes_while_the_command_runs() -> None:
    command = [*COMMAND, "run", "echo first; sleep 30"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        started = time.monotonic()
        assert process.stdout.readline() == b"first\n"
        assert time.monotonic() - started < 20
        process.terminate()


def test_help_teaches_by_examples() -> None:
    assert b"examples" in wasmsand("--help").stdout
    for name, command in commands_of(make_parser()).items():
        if name not in ("line", "build", "bench"):
            assert "wasmsand " in (command.examples or ""), name


def test_without_a_command_it_prints_its_help() -> None:
    result = wasmsand()
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == wasmsand("--help").stdout


def test_version() -> None:
    assert wasmsand("--version").stdout == b"wasmsand 0.1.0\n"


def test_a_reader_that_goes_away_ends_the_command() -> None:
    pipeline = f"{sys.executable} -m wasmsand run yes < /dev/null | head -n 1"
    result = subprocess.run(["bash", "-c", pipeline], capture_output=True, timeout=60)
    assert (result.stdout, result.stderr) == (b"y\n", b"")


def test_ctrl_c_ends_the_command() -> None:
    command = [*COMMAND, "run", "echo started; sleep 60"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
