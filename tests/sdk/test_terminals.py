"""Programs on pseudo-terminals: `sandbox.pty()`, through every interface."""

from __future__ import annotations

import gc
import time

import pytest

from tests.sdk.backends import MakeSandbox
from tests.waiting import wait_until
from userland.recipes.screen import Display
from wasmsand import (
    CommandError,
    InputTimeoutError,
    Sandbox,
    SandboxClosedError,
    StateError,
    Terminal,
)

PATIENCE_MS = 60_000


def read_until(terminal: Terminal, wanted: bytes) -> bytes:
    """The output up to `wanted`."""
    shown = b""
    while wanted not in shown:
        data = terminal.read(timeout_ms=PATIENCE_MS)
        assert data, f"the program ended; it showed {shown!r}"
        shown += data
    return shown


def test_a_program_has_a_terminal_of_the_wanted_size(sandbox: Sandbox) -> None:
    with sandbox.pty("tty; stty size; echo $TERM $NAME; pwd", cols=100, rows=30,
                     env={"NAME": "you"}, cwd="/tmp") as terminal:  # fmt: skip
        shown = b"".join(terminal)
        assert shown == b"/dev/pts/0\r\n30 100\r\nxterm-256color you\r\n/tmp\r\n"
        assert (terminal.wait(), terminal.exit_code, terminal.size) == (0, 0, (100, 30))


def test_without_a_command_it_is_an_interactive_shell(sandbox: Sandbox) -> None:
    with sandbox.pty() as terminal:
        prompt = b"\x1b[1;32muser@sandbox\x1b[0m:\x1b[1;34m~\x1b[0m$ "
        read_until(terminal, prompt)
        terminal.write("cd /tmp; exit 3\r")
        shown = b"".join(terminal)
        assert shown.endswith(b"exit\r\n")
        assert (terminal.poll(), terminal.wait()) == (3, 3)


def test_the_prompt_has_no_colours_on_a_terminal_without(sandbox: Sandbox) -> None:
    for variables in ({"TERM": "dumb"}, {"NO_COLOR": "1"}):
        with sandbox.pty(env=variables, cwd="/usr/bin") as terminal:
            assert b"\x1b[1;32m" not in read_until(terminal, b"user@sandbox:/usr/bin$ ")


def test_vim_edits_and_saves_a_file(sandbox: Sandbox) -> None:
    display = Display()
    with sandbox.pty(["vim", "letter.txt"]) as terminal:
        terminal.write("iDear reader\r\rGoodbye\x1b")
        while display.lines[2] != "Goodbye":
            display.feed(terminal.read(timeout_ms=PATIENCE_MS))
        assert display.lines[:3] == ["Dear reader", "", "Goodbye"]
        terminal.write(":wq\r")
        b"".join(terminal)
        assert terminal.wait() == 0
    assert sandbox.files.read("letter.txt") == b"Dear reader\n\nGoodbye\n"


def test_top_draws_and_quits(sandbox: Sandbox) -> None:
    display = Display()
    with sandbox.pty("top -d 1") as terminal:
        while not any("COMMAND" in line for line in display.lines):
            display.feed(terminal.read(timeout_ms=PATIENCE_MS))
        terminal.write("q")
        b"".join(terminal)
        assert terminal.wait() == 0


def test_ctrl_c_interrupts_a_command_and_the_shell_goes_on(sandbox: Sandbox) -> None:
    with sandbox.pty() as terminal:
        read_until(terminal, b"$ ")
        terminal.write("sleep 100 # started\r")
        read_until(terminal, b"started")
        wait_until(lambda: any(p.argv[:1] == ("sleep",) for p in sandbox.commands.list()))
        terminal.write("\x03")
        read_until(terminal, b"$ ")
        terminal.write("echo status $?\r")
        read_until(terminal, b"\rstatus 130\r\n")


def test_a_resize_arrives(sandbox: Sandbox) -> None:
    script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done"
    with sandbox.pty(script) as terminal:
        read_until(terminal, b"ready")
        terminal.resize(132, 50)
        read_until(terminal, b"50 132\r\n")
        assert terminal.size == (132, 50)


def test_output_goes_to_the_callback(sandbox: Sandbox) -> None:
    shown: list[bytes] = []
    with sandbox.pty("seq 20000", on_data=shown.append) as terminal:
        assert terminal.wait(timeout_ms=PATIENCE_MS) == 0
        assert b"".join(shown) == b"".join(b"%d\r\n" % n for n in range(1, 20001))
        with pytest.raises(ValueError, match="on_data"):
            terminal.read()


def test_what_a_callback_raises_ends_the_terminal_and_is_raised(sandbox: Sandbox) -> None:
    def fail(_data: bytes) -> None:
        raise KeyError("mine")

    terminal = sandbox.pty("echo one; cat", on_data=fail)
    with pytest.raises(KeyError, match="mine"):
        terminal.wait(timeout_ms=PATIENCE_MS)


def test_reading_ends_with_a_timeout(sandbox: Sandbox) -> None:
    with sandbox.pty(["sleep", "100"]) as terminal:
        with pytest.raises(TimeoutError):
            terminal.read(timeout_ms=50)
        with pytest.raises(TimeoutError):
            terminal.wait(timeout_ms=50)
        assert (terminal.poll(), terminal.exit_code) == (None, None)


def test_kill_ends_every_process(sandbox: Sandbox) -> None:
    with sandbox.pty("trap '' HUP; sleep 101 & sleep 100") as terminal:
        wait_until(lambda: len(sandbox.commands.list()) == 3)
        terminal.kill()
        terminal.kill()
        assert terminal.wait(timeout_ms=PATIENCE_MS) == 137
    wait_until(lambda: sandbox.commands.list() == [])


def test_a_terminal_of_root(sandbox: Sandbox) -> None:
    with sandbox.pty("id -un; touch /etc/mine && echo done", user="root") as terminal:
        assert b"".join(terminal) == b"root\r\ndone\r\n"


def test_close_hangs_up(sandbox: Sandbox) -> None:
    terminal = sandbox.pty("sleep 100")
    terminal.close()
    terminal.close()
    assert terminal.closed
    assert terminal.wait(timeout_ms=PATIENCE_MS) == 129
    with pytest.raises(CommandError, match="EBADF"):
        terminal.write("x")
    wait_until(lambda: sandbox.commands.list() == [])


def test_a_terminal_that_nobody_holds_hangs_up(sandbox: Sandbox) -> None:
    terminal = sandbox.pty("sleep 100")
    assert len(sandbox.commands.list()) >= 1
    del terminal
    gc.collect()
    wait_until(lambda: sandbox.commands.list() == [])


def test_input_for_an_ended_program_is_an_error(sandbox: Sandbox) -> None:
    with sandbox.pty("exit 4") as terminal:
        assert b"".join(terminal) == b""
        assert terminal.wait() == 4
        with pytest.raises(CommandError, match="EPIPE"):
            terminal.write("x")


def test_a_program_whose_output_is_not_read_waits(sandbox: Sandbox) -> None:
    with sandbox.pty("for ((i=0; ; i++)); do echo 0123456789012345 $i; echo $i > n; done") as yes:
        counts = [-1, -2]
        deadline = time.monotonic() + 60
        while counts[-1] != counts[-2]:
            assert time.monotonic() < deadline
            time.sleep(0.5)
            counts.append(int(sandbox.files.read_text("n") or 0))
        # Terminal, server and client buffer something each, and no more.
        assert counts[-1] < 40_000
        yes.read()


def test_a_write_waits_for_a_program_that_does_not_read(sandbox: Sandbox) -> None:
    with sandbox.pty(["sleep", "100"]) as terminal:
        flood = b"line\n" * 200_000
        with pytest.raises(InputTimeoutError) as raised:
            terminal.write(flood, timeout_ms=300)
        assert 4096 <= raised.value.written < 300_000


def test_a_thousand_resizes_per_second_and_huge_sizes(sandbox: Sandbox) -> None:
    with sandbox.pty("read x; stty size") as terminal:
        for number in range(1000):
            terminal.resize(1 + number % 65535, 1 + number % 500)
        terminal.resize(65535, 65535)
        terminal.write("\r")
        read_until(terminal, b"65535 65535\r\n")
        for wrong in (0, 65536, -1):
            with pytest.raises(ValueError, match="cols"):
                terminal.resize(wrong, 24)
            with pytest.raises(ValueError, match="rows"):
                sandbox.pty(rows=wrong)
        with pytest.raises(TypeError):
            terminal.resize("80", 24)  # type: ignore[arg-type]


def test_the_number_of_terminals_is_limited(sandbox: Sandbox) -> None:
    opened = []
    refusal = r"limit of 64 terminals|EAGAIN|commands run in this|max_terminals"
    with pytest.raises(Exception, match=refusal):
        for _ in range(65):
            opened.append(sandbox.pty(["sleep", "100"]))
    assert len(opened) >= 8
    for terminal in opened:
        terminal.end()
    del opened
    wait_until(lambda: sandbox.commands.list() == [])
    with sandbox.pty("echo again") as terminal:
        assert b"".join(terminal) == b"again\r\n"


@pytest.mark.xfail(reason="L160: a terminal is not copied", raises=StateError, strict=True)
def test_a_copy_has_the_terminals_of_its_original(sandbox: Sandbox) -> None:
    with sandbox.pty():
        sandbox.snapshot()


def test_a_missing_program_gets_no_terminal(sandbox: Sandbox) -> None:
    with pytest.raises(CommandError, match="ENOENT"):
        sandbox.pty(["nothing"])
    with pytest.raises(ValueError, match="command"):
        sandbox.pty([])


def test_terminals_end_with_their_sandbox(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox()
    terminal = sandbox.pty(["sleep", "100"])
    sandbox.kill()
    for act in (terminal.read, terminal.wait, lambda: terminal.write("x")):
        with pytest.raises(SandboxClosedError):
            act()
    terminal.close()
    assert terminal.closed


def test_a_terminal_says_what_it_is(sandbox: Sandbox) -> None:
    with sandbox.pty(["sleep", "9"]) as terminal:
        assert repr(terminal) == f"<Terminal pid={terminal.pid} 80x24 'sleep 9'>"
        terminal.kill()
        terminal.wait()
        assert "exit_code=137" in repr(terminal)
