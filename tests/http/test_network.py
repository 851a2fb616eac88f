"""The network of served sandboxes: a client can never allow more than its token."""

from __future__ import annotations

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.server import Client, ServerProcess, serving, write_tokens
from wasmsand.http.tokens import TokensRejected, read_token_file

WIDE, NARROW, NONE, TRUSTED = (f"a-token-that-is-{word}-enough" for word in "abcd")
SECRET = "the-secret-of-the-server"
FETCH = (
    'fetch() { exec 3<>"/dev/tcp/$1/80" && printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3 &&'
    " tail -n 1 <&3; }; "
)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_known = self.headers["Authorization"] == f"Bearer {SECRET}"
        body = b"with the secret\n" if is_known else b"a page\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[ServerProcess]:
    path = write_tokens(
        tmp_path_factory.mktemp("tokens") / "tokens.toml",
        {"narrow": {"token": NARROW, "network": ["only.test:80"]}, "none": {"token": NONE}},
    )
    for name, token, trusted in (("wide", WIDE, False), ("trusted", TRUSTED, True)):
        with path.open("a") as file:
            file.write(
                f"""
[[token]]
name = "{name}"
token = "{token}"
trusted = {str(trusted).lower()}
all_metrics = true
[token.network]
allow = ["*.test"]
deny = ["secret.test"]
connections = 50
[token.network.hosts]
"api.test" = "127.0.0.1:{port}"
"secret.test" = "127.0.0.1:{port}"
"key.test" = "127.0.0.1:{port}"
[token.network.secrets."key.test"]
Authorization = "Bearer {SECRET}"
"""
            )
    with serving("--tokens-file", str(path)) as server:
        yield server


@pytest.fixture(params=[WIDE, TRUSTED], ids=["process", "trusted"])
def client(server: ServerProcess, request: pytest.FixtureRequest) -> Client:
    return Client(server.url, request.param)


def test_a_client_allows_what_its_token_may(client: Client) -> None:
    sandbox = client.create(network=["api.test"])
    assert client.run(sandbox, FETCH + "fetch api.test").json["stdout"] == "a page\n"
    assert client.ask("GET", f"{sandbox}/network").json == {"allow": ["api.test"], "deny": []}
    refused = client.run(sandbox, FETCH + "fetch other.test").json
    assert refused["exit_code"] != 0
    events = client.ask("GET", f"{sandbox}/network/log").json["events"]
    assert ("lookup", "other.test", False) in {(e["kind"], e["host"], e["allowed"]) for e in events}
    client.ask("DELETE", sandbox)


def test_a_client_cannot_ask_for_more_than_its_token_may(client: Client, port: int) -> None:
    wanted: list[tuple[object, str]] = [
        (["*"], "network: '*' exceeds what may be allowed here: *.test"),
        (["example.com"], "network: 'example.com' exceeds what may be allowed here: *.test"),
        (["127.0.0.1"], "network: '127.0.0.1' exceeds what may be allowed here: *.test"),
        (["secret.test"], "network: 'secret.test' is denied here"),
        (
            {"allow": ["x.test"], "hosts": {"x.test": f"127.0.0.1:{port}"}},
            f"network: hosts: x.test may not be at 127.0.0.1:{port} here",
        ),
        (
            {"allow": ["x.test"], "hosts": {"x.test": "8.8.8.8"}},
            "network: hosts: x.test may not be at 8.8.8.8 here",
        ),
    ]
    for network, message in wanted:
        answer = client.ask("POST", "/v1/sandboxes", {"network": network})
        assert answer.error == (400, "invalid_value", message)
    for name in ("proxy", "ceiling", "ask", "on_event"):
        answer = client.ask("POST", "/v1/sandboxes", {"network": {name: None}})
        assert answer.error[:2] == (400, "invalid_value")
        assert name in answer.error[2]


def test_a_running_sandbox_cannot_get_more_than_its_token_may(client: Client) -> None:
    sandbox = client.create(network=[])
    allowed = client.ask("POST", f"{sandbox}/network/allow", {"rules": ["api.test", "*.test"]})
    assert allowed.json == {"allow": ["api.test", "*.test"], "deny": []}
    assert client.run(sandbox, FETCH + "fetch api.test").json["stdout"] == "a page\n"
    for rule in ("*", "example.com", "127.0.0.1", "secret.test"):
        answer = client.ask("POST", f"{sandbox}/network/allow", {"rules": [rule]})
        assert answer.error[:2] == (400, "invalid_value"), rule
    denied = client.run(sandbox, FETCH + "fetch secret.test").json
    assert "is denied by 'secret.test' (the ceiling of this sandbox)" in denied["stderr"]
    changed = client.ask("POST", f"{sandbox}/network/deny", {"rules": ["api.test"]})
    assert changed.json == {"allow": ["*.test"], "deny": ["api.test"]}
    assert client.run(sandbox, FETCH + "fetch api.test").json["exit_code"] != 0
    client.ask("DELETE", sandbox)


def test_a_sandbox_that_was_created_without_a_network_gets_none(client: Client) -> None:
    sandbox = client.create()
    answer = client.ask("POST", f"{sandbox}/network/allow", {"rules": ["api.test"]})
    assert answer.error[:2] == (400, "invalid_value")
    assert "the sandbox has no network" in answer.error[2]
    assert client.ask("GET", f"{sandbox}/network").json == {"allow": [], "deny": []}
    assert client.run(sandbox, FETCH + "fetch api.test").json["exit_code"] != 0
    client.ask("DELETE", sandbox)


def test_a_copy_is_under_the_same_ceiling(client: Client) -> None:
    sandbox = client.create(network=["api.test"])
    answer = client.ask("POST", f"{sandbox}/fork", {})
    assert answer.status == 201, answer
    copies = [f"/v1/sandboxes/{item['id']}" for item in answer.json["sandboxes"]]
    for copy in copies:
        assert client.run(copy, FETCH + "fetch api.test").json["stdout"] == "a page\n"
        for rule in ("*", "127.0.0.1", "secret.test"):
            refused = client.ask("POST", f"{copy}/network/allow", {"rules": [rule]})
            assert refused.error[:2] == (400, "invalid_value"), rule
    for path in (sandbox, *copies):
        client.ask("DELETE", path)


def test_a_budget_is_at_most_that_of_the_token(client: Client) -> None:
    sandbox = client.create(network={"allow": ["api.test"], "connections": 1000})
    script = FETCH + "for i in {1..51}; do fetch api.test; done"
    result = client.run(sandbox, script).json
    assert result["stdout"] == "a page\n" * 50
    assert "50 connections were made" in result["stderr"]
    client.ask("DELETE", sandbox)


def test_tokens_without_a_list_allow_nothing(server: ServerProcess) -> None:
    nobody = Client(server.url, NONE)
    answer = nobody.ask("POST", "/v1/sandboxes", {"network": ["api.test"]})
    assert answer.error[2] == "network: 'api.test' exceeds what may be allowed here: nothing"
    narrow = Client(server.url, NARROW)
    sandbox = narrow.create(network=["only.test:80"])
    answer = narrow.ask("POST", f"{sandbox}/network/allow", {"rules": ["only.test"]})
    assert answer.error[2] == (
        "network: 'only.test' exceeds what may be allowed here: only.test:80"
    )
    narrow.ask("DELETE", sandbox)


def test_a_secret_of_the_token_is_used_and_not_shown(client: Client) -> None:
    sandbox = client.create(network=["key.test", "api.test"])
    script = FETCH.replace("HTTP/1.0", "HTTP/1.1\\r\\nHost: $1\\r\\nConnection: close")
    result = client.run(sandbox, script + "fetch key.test; fetch api.test; env").json
    assert result["stdout"].startswith("with the secret\na page\n"), result
    assert SECRET not in str(result)
    assert SECRET not in str(client.ask("GET", f"{sandbox}/network/log").json)
    stolen = {"network": {"allow": ["key.test"], "hosts": {"key.test": "127.0.0.1:1"}}}
    assert client.ask("POST", "/v1/sandboxes", stolen).error[:2] == (400, "invalid_value")
    client.ask("DELETE", sandbox)


def test_no_answer_contains_a_secret_of_the_server(client: Client) -> None:
    sandbox = client.create(network=["api.test"])
    for target in ("", "/network", "/network/log", "/usage", "/env"):
        assert SECRET.encode() not in client.ask("GET", sandbox + target).body
    assert SECRET.encode() not in client.ask("GET", "/metrics").body
    everything = client.run(sandbox, "env; cat /etc/resolv.conf /proc/*/environ").json
    assert SECRET not in str(everything)
    client.ask("DELETE", sandbox)


def test_the_network_is_in_the_metrics(client: Client) -> None:
    name = "wide" if client.token == WIDE else "trusted"
    wanted = f'wasmsand_network_events_total{{kind="connection",outcome="allowed",token="{name}"}}'

    def count() -> float:
        lines = client.ask("GET", "/metrics").body.decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))

    before = count()
    sandbox = client.create(network=["api.test"])
    client.run(sandbox, FETCH + "fetch api.test")
    end = time.monotonic() + 30
    while count() != before + 1:
        assert time.monotonic() < end
        time.sleep(0.05)
    text = client.ask("GET", "/metrics").body.decode()
    assert f'wasmsand_network_bytes_total{{direction="received",token="{name}"}}' in text
    client.ask("DELETE", sandbox)


@pytest.mark.no_userland
@pytest.mark.parametrize(
    ("network", "message"),
    [
        ('["https://api.test"]', "leave out the scheme"),
        ('{allow = ["a..b"]}', "a part between two dots is empty"),
        ("{alow = []}", "unknown field 'alow'"),
        ("5", "network"),
    ],
)
def test_a_malformed_network_of_a_token_is_refused(
    tmp_path: Path, network: str, message: str
) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(f'[[token]]\nname = "x"\ntoken = "{WIDE}"\nnetwork = {network}\n')
    with pytest.raises(TokensRejected, match=message) as raised:
        read_token_file(path)
    assert WIDE not in str(raised.value)


@pytest.mark.no_userland
def test_a_token_shows_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(
        f'[[token]]\nname = "x"\ntoken = "{WIDE}"\n'
        f'network.secrets."a.test" = {{ Key = "{SECRET}" }}\n'
    )
    (token,) = read_token_file(path)
    assert token.network is not None
    assert token.network.secrets == {"a.test": {"Key": SECRET}}
    assert SECRET not in repr(token)
    assert SECRET not in repr(token.network)
