"""How a server begins and ends, and that standard output carries only the protocol."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.rpc.peer import COMMAND, Peer, peer
from tests.wire.line_peer import SECONDS

CREATE = b'{"jsonrpc":"2.0","id":1,"method":"create"}\n'


def test_the_server_ends_with_its_input(server: Peer) -> None:
    server.close_input()
    assert server.ended() == 0
    assert server.stderr() == ""


def test_a_request_that_was_begun_is_answered_before_the_end(server: Peer) -> None:
    server.send('{"jsonrpc":"2.0","id":9,"method":"run","params":{"command":"sleep 0.5; echo x"}}')
    server.close_input()
    assert server.receive()["result"]["stdout"] == "x\n"
    assert server.ended() == 0


def test_a_last_line_without_newline_counts() -> None:
    done = subprocess.run(COMMAND, input=CREATE.strip(), capture_output=True, timeout=SECONDS)
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {"ok": True}}
    assert done.returncode == 0


def test_kill_works_without_a_sandbox(bare: Peer) -> None:
    assert bare.call("kill") == {"ok": True}
    assert bare.ended() == 0


def test_kill_as_a_notification_ends_the_server_without_an_answer(server: Peer) -> None:
    server.send('{"jsonrpc":"2.0","method":"kill"}')
    assert server.ended() == 0


def test_requests_after_kill_are_not_answered(server: Peer) -> None:
    server.send(
        '{"jsonrpc":"2.0","id":1,"method":"kill"}\n{"jsonrpc":"2.0","id":2,"method":"env.get"}'
    )
    assert server.receive()["id"] == 1
    assert server.ended() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("busy", [False, True])
def test_a_signal_ends_the_server_quietly(server: Peer, number: signal.Signals, busy: bool) -> None:
    if busy:
        server.send('{"jsonrpc":"2.0","id":1,"method":"run","params":{"command":"sleep 60"}}')
        time.sleep(0.5)
    server.process.send_signal(number)
    assert server.ended() == 128 + number
    assert server.stderr() == ""


def test_the_server_ends_when_nobody_reads_its_answers() -> None:
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(CREATE)
        process.stdin.write(
            b'{"jsonrpc":"2.0","id":2,"method":"run","params":{"command":"sleep 60"}}\n'
        )
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) == 141


def test_output_of_the_server_itself_goes_to_standard_error() -> None:
    script = (
        "import os, subprocess, sys\n"
        "from wasmsand.wire.channel import claim_stdio\n"
        "channel = claim_stdio()\n"
        "print('by print', flush=True)\n"
        "os.write(1, b'by write\\n')\n"
        "subprocess.run(['echo', 'by a child'])\n"
        "channel.send({'line': channel.next_line().decode()})\n"
        "assert sys.stdin.read() == ''\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=b"in\n", capture_output=True, timeout=SECONDS
    )
    assert done.stdout == b'{"line":"in"}\n'
    assert done.stderr == b"by print\nby write\nby a child\n"


def test_closed_standard_output_is_a_clear_failure() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *COMMAND],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=SECONDS,
    )
    assert done.returncode == 125
    assert done.stderr == b"wasmsand: standard input or output: Bad file descriptor\n"


def test_a_batch_is_answered_as_one_line_without_its_notifications(server: Peer) -> None:
    def call(number: object, method: str, **params: object) -> dict[str, object]:
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    batch = [
        call(1, "env.set", name="A", value="x"),
        {"jsonrpc": "2.0", "method": "env.set", "params": {"name": "B", "value": "y"}},
        7,
        call("two", "env.get", name="B"),
        call(3, "nope"),
    ]
    response = server.exchange(json.dumps(batch))
    assert [
        (item["id"], item.get("result"), item.get("error", {}).get("code")) for item in response
    ] == [
        (1, {"ok": True}, None),
        (None, None, -32600),
        ("two", {"value": "y"}, None),
        (3, None, -32601),
    ]


def test_a_batch_of_notifications_is_not_answered(server: Peer) -> None:
    server.send('[{"jsonrpc":"2.0","method":"env.set","params":{"name":"A","value":"x"}}]')
    assert server.call("env.get", name="A") == {"value": "x"}


def test_notifications_are_not_answered_even_if_they_fail(server: Peer) -> None:
    server.send('{"jsonrpc":"2.0","method":"nope"}')
    server.send('{"jsonrpc":"2.0","method":"files.read","params":{"path":"/nowhere"}}')
    assert server.call("env.get", name="A") == {"value": None}


def test_a_batch_goes_on_to_its_end_after_kill(server: Peer) -> None:
    response = server.exchange(
        '[{"jsonrpc":"2.0","id":1,"method":"kill"},'
        '{"jsonrpc":"2.0","id":2,"method":"env.get","params":{"name":"A"}}]'
    )
    assert response[0]["result"] == {"ok": True}
    assert response[1]["error"]["message"] == "ENODEV: the sandbox was killed"
    assert server.ended() == 0


def test_a_file_of_many_megabytes_goes_in_and_out(server: Peer) -> None:
    data = "QUJD" * 4_000_000
    server.call("files.write", path="/tmp/big", data=data)
    assert server.call("files.read", path="/tmp/big") == {"data": data}


def test_a_name_that_is_not_utf8_comes_out_and_can_be_sent_back(server: Peer) -> None:
    server.call("run", command=r"mkdir d; echo x > d/$'\xff'")
    (entry,) = server.call("files.list", path="d")["entries"]
    assert server.call("files.read", path="d/" + entry["name"]) == {"data": "eAo="}


def test_two_servers_do_not_see_each_other() -> None:
    with peer() as one, peer() as two:
        one.create()
        two.create()
        one.call("files.write", path="/tmp/mine", data="")
        assert two.call("files.list", path="/tmp") == {"entries": []}
