"""Every example in the protocol's specification: request and response, in order."""

from __future__ import annotations

import json
from pathlib import Path

from tests.rpc.peer import Peer

EXAMPLES = [
    (
        '{"jsonrpc":"2.0","id":3,"method":"files.write",'
        '"params":{"path":"/tmp/data.txt","data":"aGVsbG8gd29ybGQ="}}',
        '{"jsonrpc":"2.0","id":3,"result":{"ok":true}}',
    ),
    (
        '{"jsonrpc":"2.0","id":4,"method":"files.read","params":{"path":"/tmp/data.txt"}}',
        '{"jsonrpc":"2.0","id":4,"result":{"data":"aGVsbG8gd29ybGQ="}}',
    ),
    (
        '{"jsonrpc":"2.0","id":6,"method":"files.mkdir","params":{"path":"/tmp/subdir"}}',
        '{"jsonrpc":"2.0","id":6,"result":{"ok":true}}',
    ),
    (
        '{"jsonrpc":"2.0","id":5,"method":"files.list","params":{"path":"/tmp"}}',
        '{"jsonrpc":"2.0","id":5,"result":{"entries":[{"name":"data.txt","type":"file","size":11},'
        '{"name":"subdir","type":"dir","size":0}]}}',
    ),
    (
        '{"jsonrpc":"2.0","id":7,"method":"files.rm","params":{"path":"/tmp/data.txt"}}',
        '{"jsonrpc":"2.0","id":7,"result":{"ok":true}}',
    ),
    (
        '{"jsonrpc":"2.0","id":8,"method":"files.stat","params":{"path":"/tmp"}}',
        '{"jsonrpc":"2.0","id":8,"result":{"name":"tmp","type":"dir","size":0}}',
    ),
    (
        '{"jsonrpc":"2.0","id":9,"method":"env.set","params":{"name":"FOO","value":"bar"}}',
        '{"jsonrpc":"2.0","id":9,"result":{"ok":true}}',
    ),
    (
        '{"jsonrpc":"2.0","id":10,"method":"env.get","params":{"name":"FOO"}}',
        '{"jsonrpc":"2.0","id":10,"result":{"value":"bar"}}',
    ),
]


def test_the_examples_of_the_specification(bare: Peer, tmp_path: Path) -> None:
    create = {"wasmDir": str(tmp_path), "timeoutMs": 30000, "fsLimitBytes": 268435456}
    assert bare.exchange(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "create", "params": create})
    ) == {"jsonrpc": "2.0", "id": 1, "result": {"ok": True}}

    response = bare.exchange(
        '{"jsonrpc":"2.0","id":2,"method":"run","params":{"command":"echo hello | wc -c"}}'
    )
    milliseconds = response["result"].pop("executionTimeMs")
    assert response == {
        "jsonrpc": "2.0",
        "id": 2,
        "result": {"exitCode": 0, "stdout": "6\n", "stderr": ""},
    }
    assert 0 < milliseconds < 30_000

    for request, expected in EXAMPLES:
        assert bare.exchange(request) == json.loads(expected)

    response = bare.exchange(
        '{"jsonrpc":"2.0","id":3,"method":"files.read","params":{"path":"/tmp/nonexistent"}}'
    )
    assert response["id"] == 3
    assert response["error"]["code"] == 1
    assert response["error"]["message"].startswith("ENOENT: ")
    assert response["error"]["message"].endswith(": /tmp/nonexistent")

    assert bare.exchange('{"jsonrpc":"2.0","id":11,"method":"kill","params":{}}') == {
        "jsonrpc": "2.0",
        "id": 11,
        "result": {"ok": True},
    }
    assert bare.ended() == 0
    assert bare.stderr() == ""


def test_the_examples_as_one_script_are_answered_in_order(bare: Peer) -> None:
    bare.send('{"jsonrpc":"2.0","id":0,"method":"create","params":{"wasmDir":null}}')
    for request, _ in EXAMPLES:
        bare.send(request)
    bare.close_input()
    assert bare.receive()["result"] == {"ok": True}
    for _, expected in EXAMPLES:
        assert bare.receive() == json.loads(expected)
    assert bare.ended() == 0


def test_a_timeout_is_exit_code_124_and_the_sandbox_goes_on(bare: Peer) -> None:
    bare.create(timeoutMs=5000)
    result = bare.call("run", command="echo before; sleep 60")
    assert result["exitCode"] == 124
    assert result["stdout"] == "before\n"
    assert bare.call("run", command="echo after")["stdout"] == "after\n"


def test_files_write_makes_the_directories_above(server: Peer) -> None:
    server.call("files.write", path="/tmp/a/b/c.bin", data="/wAB")
    assert server.call("run", command="od -An -tx1 /tmp/a/b/c.bin")["stdout"] == " ff 00 01\n"


def test_an_unset_variable_is_null(server: Peer) -> None:
    assert server.call("env.get", name="NOT_SET") == {"value": None}


def test_a_variable_that_was_set_is_seen_by_later_commands(server: Peer) -> None:
    server.call("env.set", name="FOO", value="bar")
    assert server.call("run", command='echo "$FOO"')["stdout"] == "bar\n"


def test_files_of_other_types_are_files(server: Peer) -> None:
    server.call("run", command="mkdir d; cd d; ln -s /etc to_dir; mkfifo fifo; mkdir dir")
    entries = server.call("files.list", path="/home/user/d")["entries"]
    assert [(entry["name"], entry["type"]) for entry in entries] == [
        ("dir", "dir"),
        ("fifo", "file"),
        ("to_dir", "file"),
    ]


def test_a_full_file_system_is_enospc_and_names_the_option(bare: Peer) -> None:
    bare.create(fsLimitBytes=1024 * 1024)
    error = bare.error("files.write", path="/tmp/big", data="A" * 4 * 1024 * 1024)
    assert error["code"] == 1
    assert error["message"].startswith("ENOSPC: file system full")


def test_wasm_dir_gives_commands(bare: Peer, tmp_path: Path) -> None:
    (tmp_path / "empty-module.wasm").write_bytes(b"\0asm\x01\0\0\0")
    error = bare.error("create", wasmDir=str(tmp_path))
    assert error["code"] == 1
    assert error["message"].startswith("ENOEXEC: ")
    assert "empty-module.wasm" in error["message"]
    bare.create()  # a failed create has created nothing
