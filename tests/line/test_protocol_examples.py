"""Every example in the protocol's specification: request and answer."""

from __future__ import annotations

import json
import time

import pytest

from tests.line.peer import Peer, PeerMaker

ID = "550e8400-e29b-41d4-a716-44665544000"


def test_shell(shared: Peer) -> None:
    answer = shared.ask(
        {"type": "shell", "command": "ls /", "id": ID + "0", "time_limit_ms": shared.limit(30_000)}
    )
    assert answer.pop("stdout").startswith("bin\n")
    assert answer == {
        "type": "shell",
        "id": ID + "0",
        "stderr": "",
        "exit_code": 0,
        "timed_out": False,
    }


def test_write_file_and_read_file(shared: Peer) -> None:
    assert shared.ask(
        {
            "type": "write_file",
            "path": "/tmp/test.txt",
            "content": "Hello, world!",
            "id": ID + "1",
            "mode": "0644",
        }
    ) == {"type": "write_file", "id": ID + "1", "success": True, "error": None}
    assert shared.ask(
        {"type": "read_file", "path": "/tmp/test.txt", "id": ID + "2", "encoding": "text"}
    ) == {
        "type": "read_file",
        "id": ID + "2",
        "content": "Hello, world!",
        "success": True,
        "error": None,
    }


def test_reset(sandbox: Peer) -> None:
    sandbox.shell("echo x > /tmp/x; rm /etc/passwd")
    assert sandbox.ask({"type": "reset", "id": ID + "3"}) == {
        "type": "reset",
        "id": ID + "3",
        "success": True,
    }
    assert sandbox.shell("ls /tmp; wc -l < /etc/passwd | grep -v '^0$' > /dev/null") == {
        "type": "shell",
        "id": "sh",
        "stdout": "",
        "stderr": "",
        "exit_code": 0,
        "timed_out": False,
    }


def test_status(shared: Peer) -> None:
    answer = shared.ask({"type": "status", "id": ID + "4"})
    uptime, used = answer.pop("uptime_ms"), answer.pop("memory_used_bytes")
    assert answer == {
        "type": "status",
        "id": ID + "4",
        "memory_limit_bytes": 67108864,
        "ready": True,
    }
    assert isinstance(uptime, int)
    assert 0 <= uptime < 1_000_000
    assert isinstance(used, int)
    assert 0 <= used <= 67108864


def test_a_command_that_takes_too_long(shared: Peer) -> None:
    answer = shared.ask({"type": "shell", "command": "sleep 60", "id": ID, "time_limit_ms": 100})
    assert answer == {
        "type": "shell",
        "id": ID,
        "error": "Command execution failed: timeout exceeded",
        "stdout": "",
        "stderr": "",
        "exit_code": None,
        "timed_out": True,
    }


def test_output_from_before_the_timeout_is_returned(shared: Peer) -> None:
    answer = shared.shell("echo out; echo err >&2; sleep 60", time_limit_ms=shared.limit(5000))
    assert (answer["stdout"], answer["stderr"]) == ("out\n", "err\n")
    assert answer["timed_out"] is True


def test_the_default_time_limit_is_five_seconds(shared: Peer) -> None:
    began = time.monotonic()
    answer = shared.ask({"type": "shell", "command": "sleep 60", "id": "1"})
    assert answer["timed_out"] is True
    assert 4.5 < time.monotonic() - began < 50


def test_the_example_session(start: PeerMaker) -> None:
    with start("--memory-limit", "128") as sandbox:
        limit = sandbox.limit(10_000)
        for line in (
            f"""{{"type":"shell","command":"echo 'Hello'","id":"1","time_limit_ms":{limit}}}""",
            '{"type":"write_file","path":"/tmp/test","content":"data","id":"2"}',
            f'{{"type":"shell","command":"cat /tmp/test","id":"3","time_limit_ms":{limit}}}',
            '{"type":"reset","id":"4"}',
        ):
            sandbox.send(line)
        sandbox.close_input()
        answers = {answer["id"]: answer for answer in iter(sandbox.receive, None)}
        assert sandbox.process.wait(sandbox.seconds) == 0
        assert answers["1"]["stdout"] == "Hello\n"
        assert answers["2"]["success"] is True
        assert answers["3"]["stdout"] == "data"
        assert answers["4"] == {"type": "reset", "id": "4", "success": True}
        assert sandbox.stderr() == ""


def test_files_with_a_mode_and_in_base64(shared: Peer) -> None:
    assert shared.ask(
        {
            "type": "write_file",
            "path": "/tmp/bin/x",
            "content": "IyEvYmluL3NoCmVjaG8gcmFuCv8=",
            "encoding": "base64",
            "mode": "0750",
            "id": "w",
        }
    )["success"]
    assert shared.shell("stat -c %a,%s /tmp/bin/x; /tmp/bin/x 2>&-")["stdout"] == "750,20\nran\n"
    read = shared.ask({"type": "read_file", "path": "/tmp/bin/x", "encoding": "base64", "id": "r"})
    assert read["content"] == "IyEvYmluL3NoCmVjaG8gcmFuCv8="
    as_text = shared.ask({"type": "read_file", "path": "/tmp/bin/x", "id": "t"})
    assert as_text == {
        "type": "read_file",
        "id": "t",
        "content": None,
        "success": False,
        "error": 'EILSEQ: not UTF-8 (byte 19); use "encoding": "base64": /tmp/bin/x',
    }


def test_the_default_mode_is_0644(shared: Peer) -> None:
    for mode, expected in (("0600", "600"), ("755", "755"), (None, "644")):
        request = {"type": "write_file", "path": "/tmp/m", "content": "x", "id": "w"}
        assert shared.ask({**request, "mode": mode})["success"]
        assert shared.shell("stat -c %a /tmp/m")["stdout"] == expected + "\n"


def test_exit_codes_are_kept(shared: Peer) -> None:
    assert shared.shell("exit 7")["exit_code"] == 7
    assert shared.shell("kill -9 $$")["exit_code"] == 137
    assert shared.shell("no-such-command")["exit_code"] == 127


def test_a_file_that_is_not_there(shared: Peer) -> None:
    assert shared.ask({"type": "read_file", "path": "/nowhere", "id": "r"}) == {
        "type": "read_file",
        "id": "r",
        "content": None,
        "success": False,
        "error": "ENOENT: no such file or directory: /nowhere",
    }
    answer = shared.ask({"type": "write_file", "path": "/tmp", "content": "", "id": "w"})
    assert answer["success"] is False
    assert answer["error"].startswith("EISDIR: ")


def test_several_commands_in_flight_are_answered_as_they_finish(sandbox: Peer) -> None:
    sandbox.shell("true")
    limits = {"time_limit_ms": sandbox.limit(60_000)}
    # The slow command lasts as long as the others could take.
    slow = f"sleep {sandbox.limit(4)}"
    sandbox.send({"type": "shell", "command": slow, "id": "slow", **limits})
    for name in ("a", "b"):
        sandbox.send({"type": "shell", "command": f"echo {name}", "id": name, **limits})
    sandbox.send({"type": "status", "id": "status"})
    order = [sandbox.receive()["id"] for _ in range(4)]
    assert set(order[:3]) == {"a", "b", "status"}
    assert order[3] == "slow"


def test_a_script_of_short_commands_sent_as_a_whole_runs_in_order(sandbox: Peer) -> None:
    # The head start is a fixed time, which on a busy machine is sometimes too short.
    for turn in range(20):
        sandbox.send(
            {
                "type": "shell",
                "command": f"echo one > /tmp/{turn}",
                "id": "1",
                "time_limit_ms": sandbox.limit(5000),
            }
        )
        sandbox.send({"type": "read_file", "path": f"/tmp/{turn}", "id": "2"})
        answers = {answer["id"]: answer for answer in (sandbox.receive(), sandbox.receive())}
        if answers["2"]["content"] == "one\n":
            return
    pytest.fail("not once in twenty attempts")


def test_reset_waits_for_the_commands_before_it(sandbox: Peer) -> None:
    limit = sandbox.limit(5000)
    sandbox.send({"type": "shell", "command": "sleep 1; echo x", "id": "1", "time_limit_ms": limit})
    sandbox.send({"type": "reset", "id": "2"})
    first, second = sandbox.receive(), sandbox.receive()
    assert (first["id"], first["stdout"], second["id"]) == ("1", "x\n", "2")


def test_more_commands_than_run_at_a_time_are_all_answered(sandbox: Peer) -> None:
    for number in range(80):
        sandbox.send(
            {
                "type": "shell",
                "command": "true",
                "id": str(number),
                "time_limit_ms": sandbox.limit(60_000),
            }
        )
    sandbox.close_input()
    answers = {answer["id"]: answer["exit_code"] for answer in iter(sandbox.receive, None)}
    assert answers == {str(number): 0 for number in range(80)}


def test_the_memory_limit_holds(start: PeerMaker) -> None:
    with start("--memory-limit", "32") as sandbox:
        status = sandbox.ask({"type": "status", "id": "s"})
        assert status["memory_limit_bytes"] == 32 * 1024 * 1024
        answer = sandbox.shell("head -c 100M /dev/zero | tail -c 90M > /dev/null; echo $?")
        assert answer["stdout"] != "0\n"
        assert sandbox.shell("echo on | cat | sort")["stdout"] == "on\n"


def test_answers_are_one_line_of_ascii_each(sandbox: Peer) -> None:
    answer = sandbox.shell(r"printf 'é\n\u2028\xff\0'")
    assert answer["stdout"] == "é\n\u2028\ufffd\0"
    assert json.dumps(answer)
