"""The command after a bomb: background processes make room for it."""

from __future__ import annotations

import time

import pytest

from wasmsand import Sandbox

SCRIPT = "echo $(echo one | cat) $(seq 3 | wc -l); ls / | grep -c tmp"
OUTPUT = "one 3\n1\n"
SECONDS = 10.0
"""Seconds. An unhandled bomb would take the whole time limit, or block every later command."""

BOMBS = {
    "classic": ":(){ :|:& };:",
    "sleepers": "while :; do (sleep 100 &) ; done &",
    "disowned": "(while :; do (sleep 100 &) ; done) & disown; exit",
    "setsid": """b() { setsid bash -c "$(declare -f b); b" & setsid bash -c "$(declare -f b); b" & }
b""",
    "nohup": "echo 'while :; do nohup bash /tmp/b.sh >/dev/null 2>&1 & done' > /tmp/b.sh\n"
    "nohup bash /tmp/b.sh >/dev/null 2>&1 &",
    "catches signals": "trap '' TERM HUP INT; f() { while :; do f & done; }; f &",
    "computes": "for i in $(seq 60); do (while :; do :; done) & done",
    "threads": """python3 -c '
import threading, time
def work():
    while True:
        try: threading.Thread(target=work).start()
        except RuntimeError: time.sleep(0.001)
work()' &""",
    "vfork": """python3 -c '
import subprocess
while True:
    try: subprocess.Popen(["sleep", "100"])
    except OSError: pass' &""",
}


def run_in_time(sandbox: Sandbox) -> None:
    began = time.monotonic()
    result = sandbox.commands.run(SCRIPT, timeout_ms=60_000)
    assert (result.stdout, result.exit_code) == (OUTPUT, 0), result
    assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize("pause", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("bomb", list(BOMBS))
def test_the_command_after_a_bomb_runs_at_once(bomb: str, pause: float) -> None:
    with Sandbox() as sandbox:
        sandbox.commands.run(BOMBS[bomb], timeout_ms=5_000)
        for _ in range(3):
            time.sleep(pause)
            run_in_time(sandbox)


@pytest.mark.parametrize("bomb", ["classic", "disowned", "setsid"])
def test_a_command_beside_a_shell_in_which_a_bomb_went_off_runs_at_once(bomb: str) -> None:
    with Sandbox() as sandbox, sandbox.shell() as shell:
        shell.run(BOMBS[bomb].replace("; exit", ""), timeout_ms=2_000)
        for _ in range(3):
            run_in_time(sandbox)
            time.sleep(0.1)
        assert shell.run("ls / | grep -c tmp", timeout_ms=60_000).stdout == "1\n"


def test_background_processes_stay_while_there_is_room() -> None:
    with Sandbox() as sandbox:
        sandbox.commands.run("sleep 1000 & disown")
        for _ in range(3):
            run_in_time(sandbox)
        assert sandbox.commands.run("pgrep -c sleep || ps | grep -c '[s]leep'").stdout == "1\n"


def test_the_next_command_reports_background_processes_that_were_ended() -> None:
    with Sandbox(max_processes=16) as sandbox:
        sandbox.commands.run("for i in $(seq 15); do sleep 1000 & done")
        errors = [sandbox.commands.run("ls / > /dev/null").stderr for _ in range(2)]
        told = "ended 15 background processes to make room; raise max_processes"
        assert any(told in text for text in errors) or not any(errors)
