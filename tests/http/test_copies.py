"""Snapshots, restore and fork over HTTP, as a client in another language uses them."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from tests.http.server import Client, serving, write_tokens
from wasmsand import Sandbox
from wasmsand.machine import image_programs

pytestmark = pytest.mark.skipif(
    not any(program.name == "python" for program in image_programs()),
    reason="the image was built without Python",
)
ALICE, BOB = "token-of-alice-0123456789", "token-of-bob-0123456789"
GIB = 1 << 30


@pytest.fixture
def python(client: Client, sandbox: str) -> str:
    """The id of an open session."""
    return str(client.ask("POST", f"{sandbox}/python", {}).json["id"])


def run(client: Client, sandbox: str, python: str, code: str) -> Any:
    answer = client.ask("POST", f"{sandbox}/python/{python}/run", {"code": code}).json
    assert answer["error"] is None, answer
    return answer["value"]


def figure(client: Client, name: str) -> float:
    """A metric of the server."""
    text = client.ask("GET", "/metrics").body.decode()
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def test_snapshots_are_taken_listed_restored_and_deleted(
    client: Client, sandbox: str, python: str
) -> None:
    run(client, sandbox, python, "x = 1; open('/tmp/f', 'w').write('one')")
    client.ask("PATCH", f"{sandbox}/env", {"set": {"MODE": "before"}})
    taken = client.ask("POST", f"{sandbox}/snapshots", {"name": "start"})
    assert taken.status == 201
    assert (taken.json["name"], taken.json["sessions"]) == ("start", ["python"])
    assert taken.json["size_bytes"] > 1_000_000
    unnamed = client.ask("POST", f"{sandbox}/snapshots", {}).json
    assert unnamed["name"] == unnamed["id"]
    assert figure(client, "wasmsand_snapshots") == 2
    held = taken.json["size_bytes"] + unnamed["size_bytes"]
    assert figure(client, "wasmsand_snapshot_bytes") == held
    listed = client.ask("GET", f"{sandbox}/snapshots").json["snapshots"]
    assert listed == [taken.json, unnamed]
    run(client, sandbox, python, "x = 2; import os; os.unlink('/tmp/f')")
    client.ask("PATCH", f"{sandbox}/env", {"set": {"MODE": "after"}})
    later = client.ask("POST", f"{sandbox}/python", {}).json["id"]
    for name in ("start", unnamed["id"]):
        restored = client.ask("POST", f"{sandbox}/restore", {"snapshot": name}).json
        assert restored["id"] == sandbox.rpartition("/")[2]
        assert [session["id"] for session in restored["sessions"]] == [python]
        assert run(client, sandbox, python, "x, open('/tmp/f').read()") is None
        assert run(client, sandbox, python, "[x, open('/tmp/f').read()]") == [1, "one"]
        assert client.ask("GET", f"{sandbox}/env").json["env"]["MODE"] == "before"
    refused = client.ask("POST", f"{sandbox}/python/{later}/run", {"code": "1"})
    assert refused.error[:2] == (404, "session_not_found")
    assert client.ask("DELETE", f"{sandbox}/snapshots/start").json == {"ok": True}
    assert client.ask("DELETE", f"{sandbox}/snapshots/start").error[:2] == (
        404,
        "snapshot_not_found",
    )
    refused = client.ask("POST", f"{sandbox}/restore", {"snapshot": "start"})
    assert refused.error[:2] == (404, "snapshot_not_found")
    assert figure(client, "wasmsand_snapshots") == 1


def test_forks_and_sandboxes_from_snapshots_have_the_sessions(
    client: Client, sandbox: str, python: str
) -> None:
    run(client, sandbox, python, "rows = list(range(100_000))")
    answer = client.ask("POST", f"{sandbox}/fork", {"count": 2})
    assert answer.status == 201
    twins = answer.json["sandboxes"]
    snapshot = client.ask("POST", f"{sandbox}/snapshots", {}).json["id"]
    made = client.ask("POST", "/v1/sandboxes", {"snapshot": snapshot, "idle_seconds": 60})
    assert made.status == 201
    for number, twin in enumerate([*twins, made.json]):
        path = f"/v1/sandboxes/{twin['id']}"
        listed = client.ask("GET", f"{path}/sessions").json["sessions"]
        assert listed == twin["sessions"]
        assert [(each["id"], each["kind"]) for each in listed] == [(python, "python")]
        assert run(client, path, python, f"rows.append({number}); [len(rows), rows[-1]]") == [
            100_001,
            number,
        ]
        assert client.ask("POST", f"{path}/run", {"command": "echo ok"}).json["stdout"] == "ok\n"
        assert client.ask("DELETE", path).status == 200
    assert run(client, sandbox, python, "len(rows)") == 100_000


def test_what_runs_is_refused_or_dropped(client: Client, sandbox: str, python: str) -> None:
    run(client, sandbox, python, "import socket; s = socket.socket()")
    refused = client.ask("POST", f"{sandbox}/fork", {})
    assert refused.error[:2] == (409, "cannot_copy")
    assert "session 0 (python) cannot be copied" in refused.error[2]
    twin = client.ask("POST", f"{sandbox}/fork", {"running": "drop"}).json["sandboxes"][0]
    assert twin["sessions"] == []
    run(client, sandbox, python, "s.close()")
    client.ask("POST", f"{sandbox}/commands", {"command": ["sleep", "100"]})
    refused = client.ask("POST", f"{sandbox}/snapshots", {})
    assert "a command runs" in refused.error[2]
    assert client.ask("POST", f"{sandbox}/snapshots", {"running": "drop"}).status == 201
    client.ask("DELETE", f"/v1/sandboxes/{twin['id']}")


@pytest.mark.parametrize(
    ("method", "part", "body", "code"),
    [
        ("POST", "/snapshots", {"name": "a/b"}, "invalid_value"),
        ("POST", "/snapshots", {"name": ""}, "invalid_value"),
        ("POST", "/snapshots", {"name": "x" * 256}, "invalid_value"),
        ("POST", "/snapshots", {"name": "nul\0"}, "invalid_value"),
        ("POST", "/snapshots", {"name": 7}, "invalid_value"),
        ("POST", "/snapshots", {"running": "maybe"}, "invalid_value"),
        ("POST", "/snapshots", {"commands": ["cmd-0"]}, "cannot_copy"),
        ("POST", "/snapshots", {"commands": ["x"] * 65}, "invalid_value"),
        ("POST", "/fork", {"count": 0}, "invalid_value"),
        ("POST", "/fork", {"count": 65}, "invalid_value"),
        ("POST", "/fork", {"count": 1.5}, "invalid_value"),
        ("POST", "/restore", {}, "invalid_value"),
        ("POST", "/restore", {"snapshot": "../../etc"}, "snapshot_not_found"),
        ("DELETE", "/snapshots/..%2f..%2fx", None, "no_such_route"),
        ("POST", "/commands/cmd-0/capture", {}, "command_not_found"),
        ("POST", "/commands/cmd-0/captured", None, "command_not_found"),
    ],
)
def test_bad_requests_are_refused(
    client: Client, sandbox: str, method: str, part: str, body: Any, code: str
) -> None:
    refused = client.ask(method, sandbox + part, body)
    assert refused.error[1] == code
    assert client.ask("GET", f"{sandbox}/snapshots").json == {"snapshots": []}


def test_a_sandbox_from_a_snapshot_takes_no_options(client: Client, sandbox: str) -> None:
    snapshot = client.ask("POST", f"{sandbox}/snapshots", {}).json["id"]
    refused = client.ask("POST", "/v1/sandboxes", {"snapshot": snapshot, "max_processes": 9})
    assert refused.error[:2] == (400, "invalid_value")
    assert "leave out max_processes" in refused.error[2]


def test_a_snapshot_with_other_limits_is_not_restored(client: Client, sandbox: str) -> None:
    large = client.create(memory_limit_bytes=GIB + 4096)
    snapshot = client.ask("POST", f"{large}/snapshots", {}).json["id"]
    refused = client.ask("POST", f"{sandbox}/restore", {"snapshot": snapshot})
    assert refused.error[:2] == (400, "invalid_value")
    client.ask("DELETE", large)
    refused = client.ask("POST", "/v1/sandboxes", {"snapshot": snapshot})
    assert refused.error[:2] == (404, "snapshot_not_found")  # it ended with its sandbox


def test_copies_count_against_the_quota_and_stay_with_their_token(tmp_path: Path) -> None:
    quotas = {"max_sandboxes": 3, "max_memory_bytes": 8 * GIB}
    tokens = write_tokens(
        tmp_path / "tokens.toml",
        {"alice": {"token": ALICE, **quotas}, "bob": {"token": BOB, "trusted": True, **quotas}},
    )
    with serving("--tokens-file", str(tokens), "--max-snapshots", "2") as server:
        for name in (ALICE, BOB):
            client = Client(server.url, name)
            other = Client(server.url, BOB if name == ALICE else ALICE)
            limits = {"memory_limit_bytes": GIB, "fs_limit_bytes": GIB}
            sandbox = client.create(**limits)
            refused = client.ask("POST", f"{sandbox}/fork", {"count": 3})
            assert refused.error[:2] == (429, "quota_exceeded")
            assert len(client.ask("GET", "/v1/sandboxes").json["sandboxes"]) == 1
            twin = client.ask("POST", f"{sandbox}/fork", {"count": 1}).json["sandboxes"][0]
            kept = [client.ask("POST", f"{sandbox}/snapshots", {}).json["id"] for _ in range(2)]
            refused = client.ask("POST", f"{sandbox}/snapshots", {})
            assert refused.error[:2] == (429, "too_many_snapshots")
            assert "--max-snapshots" in refused.error[2]
            stolen = other.ask("POST", "/v1/sandboxes", {"snapshot": kept[0]})
            assert stolen.error[:2] == (404, "snapshot_not_found")
            assert other.ask("GET", f"{sandbox}/snapshots").error[:2] == (404, "sandbox_not_found")
            assert figure(client, "wasmsand_snapshots") == 2
            client.ask("DELETE", sandbox)
            client.ask("DELETE", f"/v1/sandboxes/{twin['id']}")
            assert figure(client, "wasmsand_snapshots") == 0
            assert figure(client, "wasmsand_sandboxes_reserved_bytes") == 0


def test_the_memory_of_snapshots_is_bounded(tmp_path: Path) -> None:
    reserved = 2 * GIB
    tokens = write_tokens(
        tmp_path / "tokens.toml",
        {"alice": {"token": ALICE, "max_memory_bytes": reserved + 300_000_000}},
    )
    with serving("--tokens-file", str(tokens)) as server:
        client = Client(server.url, ALICE)
        sandbox = client.create(memory_limit_bytes=GIB, fs_limit_bytes=GIB)
        python = client.ask("POST", f"{sandbox}/python", {}).json["id"]
        run(client, sandbox, python, "data = bytearray(100_000_000)")
        made = [client.ask("POST", f"{sandbox}/snapshots", {}) for _ in range(4)]
        assert [answer.status for answer in made] == [201, 201, 429, 429]
        assert "bytes for this snapshot" in made[-1].error[2]
        client.ask("DELETE", f"{sandbox}/snapshots/{made[0].json['id']}")
        assert client.ask("POST", f"{sandbox}/snapshots", {}).status == 201


def test_a_snapshot_is_downloaded_and_goes_on_elsewhere(
    client: Client, sandbox: str, python: str
) -> None:
    run(client, sandbox, python, "x = 41")
    client.ask("PATCH", f"{sandbox}/env", {"set": {"MODE": "kept"}})
    client.ask("POST", f"{sandbox}/snapshots", {"name": "all"})
    answer = client.ask("POST", f"{sandbox}/snapshots/all/save", {})
    assert answer.headers["content-type"] == "application/octet-stream"
    with Sandbox.load(io.BytesIO(answer.body)) as loaded:
        assert loaded.sessions[0].run("x + 1").value == 42  # type: ignore[union-attr]
        assert loaded.commands.run("echo $MODE").stdout == "kept\n"
    for body, code in (
        ({"sessions": [{"was": "x", "kind": "perl", "identity": "y"}]}, "invalid_value"),
        ({"sessions": [{"was": "x", "kind": "shell", "identity": ""}]}, "invalid_value"),
        ({"variables": {"A=B": "x"}}, "invalid_value"),
        ({"variables": {"A": 7}}, "invalid_value"),
    ):
        assert client.ask("POST", f"{sandbox}/snapshots/all/save", body).error[1] == code
    missing = client.ask("POST", f"{sandbox}/snapshots/none/save", {})
    assert missing.error[:2] == (404, "snapshot_not_found")


def test_a_saved_sandbox_that_is_too_large_is_refused() -> None:
    with serving("--max-upload-bytes", "100000") as server:
        client = Client(server.url)
        sandbox = client.create()
        client.ask("POST", f"{sandbox}/run", {"command": "head -c 1000000 /dev/urandom > a"})
        client.ask("POST", f"{sandbox}/snapshots", {"name": "all"})
        refused = client.ask("POST", f"{sandbox}/snapshots/all/save", {})
        assert refused.error[:2] == (413, "too_large")
        assert client.ask("POST", f"{sandbox}/run", {"command": "echo ok"}).json["stdout"] == "ok\n"
