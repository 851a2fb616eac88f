"""Commands in a v86 machine: a real Linux behind the same API."""

from __future__ import annotations

import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.v86.built import needs_v86
from wasmsand import CommandError, Sandbox, UnsupportedError

pytestmark = needs_v86

_MESSAGE = b"hello from i386\n"


def static_program(exit_code: int) -> bytes:
    """A static ELF program for i386: it writes a message and exits."""
    base, header = 0x08048000, 52 + 32
    message_at = base + header + 34
    code = (
        b"\xb8" + struct.pack("<I", 4)  # eax = write
        + b"\xbb" + struct.pack("<I", 1)
        + b"\xb9" + struct.pack("<I", message_at)
        + b"\xba" + struct.pack("<I", len(_MESSAGE))
        + b"\xcd\x80"
        + b"\xb8" + struct.pack("<I", 1)  # eax = exit
        + b"\xbb" + struct.pack("<I", exit_code)
        + b"\xcd\x80"
    )  # fmt: skip
    assert len(code) == 34
    size = header + len(code) + len(_MESSAGE)
    ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
    elf = ident + struct.pack(
        "<HHIIIIIHHHHHH", 2, 3, 1, base + header, 52, 0, 0, 52, 32, 1, 40, 0, 0
    )
    segment = struct.pack("<8I", 1, 0, base, base, size, size, 5, 4096)
    return elf + segment + code + _MESSAGE


def test_a_static_i386_program_that_was_written_into_it_runs(machine: Sandbox) -> None:
    machine.files.write("/tmp/program", static_program(7))
    machine.files.chmod("/tmp/program", 0o755)
    result = machine.commands.run("/tmp/program")
    assert (result.stdout, result.stderr, result.exit_code) == (_MESSAGE.decode(), "", 7)


def test_it_is_a_debian_with_a_linux_kernel_and_python(machine: Sandbox) -> None:
    result = machine.commands.run(
        "uname -sm; id -un; pwd; python3 -c 'import json, sqlite3; print(json.dumps([1, 2]))'"
    )
    assert result.stdout == "Linux i686\nuser\n/home/user\n[1, 2]\n"
    assert result.stderr == ""


def test_input_output_and_errors_are_separate(machine: Sandbox) -> None:
    data = bytes(range(256)) * 1000
    result = machine.commands.run(["cat"], stdin=data)
    assert result.stdout_bytes == data
    result = machine.commands.run("cat; echo error >&2; exit 3", stdin="text")
    assert (result.stdout, result.stderr, result.exit_code) == ("text", "error\n", 3)


def test_a_command_that_does_not_read_its_input_ends(machine: Sandbox) -> None:
    assert machine.commands.run("exit 4", stdin=bytes(1_000_000)).exit_code == 4


def test_a_timeout_ends_every_process_of_the_command(machine: Sandbox) -> None:
    result = machine.commands.run("setsid sleep 977 & sleep 978", timeout_ms=3000)
    assert result.timed_out
    assert machine.commands.run("pgrep -f 'sleep 97' || echo none").stdout == "none\n"


def test_background_processes_live_on(machine: Sandbox) -> None:
    began = time.monotonic()
    machine.commands.run("(sleep 2; echo done > /tmp/later) &")
    while not machine.files.exists("/tmp/later"):
        assert time.monotonic() - began < 120
        time.sleep(0.2)
    assert machine.files.read_text("/tmp/later") == "done\n"


def test_a_background_process_that_prints_on_and_on_does_not_hold_its_command(
    machine: Sandbox,
) -> None:
    assert (
        machine.commands.run("yes & sleep 0.1; echo $! > /tmp/pid", timeout_ms=60_000).exit_code
        == 0
    )
    machine.commands.run("kill $(cat /tmp/pid) 2>/dev/null")


def test_output_beyond_the_limit_ends_the_command() -> None:
    with Sandbox(mode="v86", max_output_bytes=1000, timeout_ms=120_000) as sandbox:
        result = sandbox.commands.run("yes")
        assert result.truncated
        assert result.stdout == "y\n" * 500


def test_several_commands_run_at_a_time(machine: Sandbox) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = pool.map(
            lambda number: machine.commands.run(f"sleep 0.2; echo {number}").stdout, range(8)
        )
        assert list(results) == [f"{number}\n" for number in range(8)]


def test_programs_that_do_not_exist_have_the_errors_of_a_local_sandbox(machine: Sandbox) -> None:
    with pytest.raises(CommandError, match="ENOENT: no such file or directory: /nowhere"):
        machine.commands.run(["/nowhere"])
    with pytest.raises(CommandError, match="EACCES: permission denied: /tmp"):
        machine.commands.run(["/tmp"])
    with pytest.raises(CommandError, match="ENOENT: no such file or directory: /nope"):
        machine.commands.run("true", cwd="/nope")


def test_a_shell_keeps_its_state(machine: Sandbox) -> None:
    with machine.shell() as shell:
        shell.run("cd /tmp; export NAME=value")
        assert shell.run("pwd; echo $NAME").stdout == "/tmp\nvalue\n"


def test_started_commands_stream(machine: Sandbox) -> None:
    handle = machine.commands.start(["cat"])
    handle.write_stdin("line\n")
    handle.close_stdin()
    assert handle.wait().stdout == "line\n"


def test_the_clock_and_the_random_numbers_are_new_in_every_machine(machine: Sandbox) -> None:
    numbers = "od -An -N8 -tx8 /dev/urandom"
    date, first = machine.commands.run(f"date +%s; {numbers}").stdout.splitlines()
    assert abs(int(date) - time.time()) < 60
    with Sandbox(mode="v86", timeout_ms=240_000) as other:
        assert other.commands.run(numbers).stdout.strip() != first.strip()


def test_processes_and_usage_are_those_of_commands(machine: Sandbox) -> None:
    with machine.commands.start("sleep 979; true"):
        began = time.monotonic()
        while ("sleep", "979") not in [process.argv for process in machine.commands.list()]:
            assert time.monotonic() - began < 120
        usage = machine.usage()
        assert 0 < usage.memory_bytes <= usage.memory_limit_bytes
        assert usage.processes >= 2
    while machine.commands.list():
        assert time.monotonic() - began < 240


def test_what_it_does_not_offer_is_refused(machine: Sandbox) -> None:
    for attempt in (machine.python, machine.snapshot, machine.fork, machine.pty):
        with pytest.raises(UnsupportedError, match="mode='v86' does not offer"):
            attempt()
    with pytest.raises(UnsupportedError, match="v86 mode does not offer packages"):
        Sandbox(mode="v86", packages=["numpy"])
    with pytest.raises(ValueError, match="memory_limit_bytes can be at most"):
        Sandbox(mode="v86", memory_limit_bytes=1 << 40)
