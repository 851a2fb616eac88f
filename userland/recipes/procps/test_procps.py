"""ps and its kin see the processes of the sandbox."""

from __future__ import annotations

import re

import pytest

from userland.recipes.screen import Screen
from wasmsand import Sandbox
from wasmsand.machine import Machine

# sleep in the background, and already sleep rather than the shell that is about to be it.
NAP = "nap() { sleep $1 & until [[ $(< /proc/$!/comm) == sleep ]]; do :; done; }\n"


def test_ps_shows_the_processes_of_the_command(sandbox: Sandbox) -> None:
    lines = sandbox.commands.run(NAP + "nap 9; ps -o comm=,args=; kill %1").stdout.splitlines()
    assert lines[1:] == ["sleep           sleep 9", "ps              ps -o comm=,args="]


@pytest.mark.parametrize(
    ("script", "stdout"),
    [
        ("ps -p $$ -o pid=,ppid=,user=,tty= | xargs", "2 1 user ?\n"),
        (
            "ps aux | awk 'NR == 1 || $2 == 1 { print $1, $8, $11 }'",
            "USER STAT COMMAND\nroot Ss init\n",
        ),
        ("ps -ef | head -n 1", "UID        PID  PPID  C STIME TTY          TIME CMD\n"),
        ("ps -C nonesuch -o pid=; echo $?", "1\n"),
        (
            "nap 9; ps -o stat= -p $!; kill -STOP $!; ps -o stat= -p $!; kill -9 $!",
            "S\nT\n",
        ),
        ("nap 9; ps -o s=,comm= --ppid $$; kill %1", "S sleep\nR ps\n"),
        ("ps --sort=-pid -o comm= | tail -n 1", "bash\n"),
        (
            "ps -o nosuch 2>&1 | head -n 1",
            'error: unknown user-defined format specifier "nosuch"\n',
        ),
        ("nap 7; nap 8; pgrep -c sleep; kill %1 %2", "2\n"),
        ("nap 77; pgrep -xf 'sleep 7.' | wc -l; pgrep -x slee; echo $?; kill %1", "1\n1\n"),
        ("nap 7; pkill sleep; wait $!; echo $?; pgrep sleep; echo $?", "143\n1\n"),
        ("nap 7; pkill -KILL -x sleep; wait $! 2> err; echo $?", "137\n"),
        ("nap 7; pgrep -a sleep | cut -d' ' -f2-; kill $!", "sleep 7\n"),
        (
            'nap 7; [ "$(pidof sleep)" = $! ] && echo found; pidof nonesuch; echo $?; kill %1',
            "found\n1\n",
        ),
        ("cd /tmp; pwdx $$", "2: /tmp\n"),
        ("sysctl kernel.ostype; sysctl -n kernel.hostname", "kernel.ostype = Linux\nsandbox\n"),
        (
            "sysctl nonesuch 2>&1; echo $?",
            "sysctl: cannot stat /proc/sys/nonesuch: No such file or directory\n1\n",
        ),
    ],
)
def test_output(sandbox: Sandbox, script: str, stdout: str) -> None:
    result = sandbox.commands.run(NAP + script)
    assert (result.stdout, result.stderr) == (stdout, "")


def test_a_tree_of_processes(sandbox: Sandbox) -> None:
    script = "bash -c 'sleep 5; :' & sleep 0.5; ps -o cmd --forest; kill %1"
    assert sandbox.commands.run(script).stdout.splitlines()[2:] == [
        " \\_ bash -c sleep 5; :",
        " |   \\_ sleep 5",
        " \\_ ps -o cmd --forest",
    ]


def test_sysctl_lists_all(sandbox: Sandbox) -> None:
    lines = sandbox.commands.run("sysctl -a").stdout.splitlines()
    assert len(lines) > 20
    assert "kernel.ostype = Linux" in lines


def test_free_shows_the_limit_of_the_sandbox() -> None:
    with Sandbox(memory_limit_bytes=64 << 20) as sandbox:
        lines = sandbox.commands.run("free -b").stdout.splitlines()
    total, used, free = (int(field) for field in lines[1].split()[1:4])
    assert total == 64 << 20
    assert 0 < used < 16 << 20
    assert used + free == total
    assert lines[2].split() == ["Swap:", "0", "0", "0"]


def test_time_used_is_shown(sandbox: Sandbox) -> None:
    script = """
    (while :; do :; done) &
    until ps -o time=,stat= -p $! | grep -v 00:00:00; do sleep 0.1; done; kill $!
    """
    assert sandbox.commands.run(script).stdout == "00:00:01 R\n"


def test_uptime_is_that_of_the_sandbox(sandbox: Sandbox) -> None:
    shown = sandbox.commands.run("uptime; uptime -p; uptime -s").stdout.splitlines()
    assert re.fullmatch(r" \d\d:\d\d:\d\d up 0 min,  0 users?,  load average: .*", shown[0])
    assert shown[1] == "up 0 minutes"
    began = sandbox.commands.run(
        "date -d @$(($(date +%s) - $(cut -d. -f1 /proc/uptime))) +%F"
    ).stdout
    assert shown[2].startswith(began.strip())


def test_top_in_batch_mode(sandbox: Sandbox) -> None:
    lines = sandbox.commands.run(NAP + "nap 9; top -b -n 1; kill %1").stdout.splitlines()
    assert re.match(r"top - \d\d:\d\d:\d\d up .*load average: ", lines[0])
    assert re.match(r"Tasks: +4 total, +1 running, +3 sleeping", lines[1])
    assert re.match(r"MiB Mem : +1024.0 total, ", lines[3])
    assert "PID USER" in lines[6]
    assert any(re.search(r" user .* S .* sleep$", line) for line in lines[7:])


def test_vmstat(sandbox: Sandbox) -> None:
    lines = sandbox.commands.run("vmstat").stdout.splitlines()
    assert lines[1].split()[:6] == ["r", "b", "swpd", "free", "buff", "cache"]
    assert int(lines[2].split()[3]) > 100_000


def test_pmap_shows_one_memory(sandbox: Sandbox) -> None:
    lines = sandbox.commands.run("pmap $$").stdout.splitlines()
    assert re.fullmatch(r" total +\d+K", lines[-1])


def test_top_on_a_terminal(machine: Machine) -> None:
    with Screen(machine, "top -d 0.5") as screen:
        screen.wait_until(lambda lines: lines[0].startswith("top - ") and "COMMAND" in lines[6])
        screen.type("q")
        assert screen.wait_for_exit() == 0


def test_watch_repeats_a_command(machine: Machine) -> None:
    with Screen(machine, "watch -n 0.2 'echo x >> f; wc -l < f'") as screen:
        assert "Every 0.2s: echo x >> f; wc -l < f" in screen.wait_for("Every")[0]
        screen.wait_until(lambda lines: lines[2].isdigit() and int(lines[2]) >= 3)
        screen.type("\x03")
        assert screen.wait_for_exit() == 0


def test_watch_ends_when_the_output_changes(machine: Machine) -> None:
    with Screen(machine, "watch -n 0.1 -g 'ls'; echo over") as screen:
        screen.wait_for("Every")
        machine.files.write("/home/user/new", b"")
        screen.wait_for("over")
