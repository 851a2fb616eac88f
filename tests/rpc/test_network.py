"""The network in JSON-RPC: `create`, changes, the log, and notifications."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rpc.peer import peer

FETCH = (
    'fetch() { exec 3<>"/dev/tcp/$1/80" && printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3 &&'
    " tail -n 1 <&3; }; "
)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a page\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize("options", [(), ("--confine", "--network")], ids=["plain", "confined"])
def test_a_network_is_created_changed_and_logged(options: tuple[str, ...], port: int) -> None:
    with peer(*options) as server:
        server.create(
            network={
                "allow": ["api.test"],
                "hosts": {"api.test": f"127.0.0.1:{port}"},
                "connectionsAtOnce": 3,
                "ceiling": {"allow": ["*.test", "127.0.0.1"], "bytesIn": 1000},
            }
        )
        assert server.call("network.rules") == {"allow": ["api.test"], "deny": []}
        assert server.call("run", command=FETCH + "fetch api.test")["stdout"] == "a page\n"
        assert server.call("network.deny", rules=["api.test"]) == {"ok": True}
        assert server.call("network.rules") == {"allow": [], "deny": ["api.test"]}
        assert server.call("run", command=FETCH + "fetch api.test")["exitCode"] != 0
        error = server.error("network.allow", rules=["example.com"])
        assert error["code"] == -32602
        assert (
            "'example.com' exceeds what may be allowed here: *.test, 127.0.0.1" in error["message"]
        )
        (event,) = [e for e in server.call("network.log")["events"] if e["kind"] == "lookup"][:1]
        assert (event["host"], event["allowed"], event["durationMs"]) == ("api.test", False, 0.0)


def test_a_confined_process_without_the_flag_reaches_nothing(port: int) -> None:
    with peer("--confine") as server:
        network = {"allow": ["api.test"], "hosts": {"api.test": f"127.0.0.1:{port}"}}
        server.create(network=network)
        assert server.call("run", command=FETCH + "fetch api.test")["exitCode"] != 0


def test_events_are_sent_as_notifications() -> None:
    with peer() as server:
        server.create(network=["api.test"], networkEvents=True)
        request = {"jsonrpc": "2.0", "id": "r", "method": "run"}
        params = {"command": "exec 3<>/dev/tcp/other.test/80"}
        server.send(json.dumps({**request, "params": params}))
        seen: list[Any] = []
        while not any("result" in message for message in seen) or len(seen) < 2:
            seen.append(server.receive())
        notice = next(message for message in seen if "method" in message)
        assert notice["method"] == "network.event"
        assert notice["params"]["host"] == "other.test"
        assert notice["params"]["allowed"] is False


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("api.test", "network: network must be a Network, a list of rules"),
        (5, "network: network must be a Network, a list of rules"),
        ([5], "network[0] must be a str"),
        (["https://a.test"], "leave out the scheme"),
        ({"alow": []}, "network.alow is unknown (known: allow, deny, hosts"),
        ({"bytes_in": 5}, "network.bytes_in is unknown"),
        ({"bytesIn": "5"}, "bytes_in must be an int"),
        ({"bytesIn": 0}, "bytes_in must be positive"),
        ({"hosts": []}, "hosts is a dict"),
        ({"hosts": {"a.test": "b.test"}}, "write an IP address"),
        ({"secrets": {"a.test": {"K": 5}}}, "secrets of 'a.test' are strings"),
        ({"ceiling": {"ceiling": {"ceiling": {"ceiling": {"ceiling": {}}}}}}, "at most 4 ceilings"),
        ({"allow": ["a.test"], "ceiling": []}, "exceeds what may be allowed here: nothing"),
    ],
)
def test_a_malformed_network_is_an_invalid_parameter(network: Any, message: str) -> None:
    with peer() as server:
        error = server.error("create", wasmDir=None, network=network)
        assert error["code"] == -32602
        assert message in error["message"]
