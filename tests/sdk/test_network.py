"""What a sandbox reaches on the network: by rules, by name, and within its budget.

The servers are on loopback, and `hosts` leads names to them.
"""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.machine.network.servers import server
from tests.sdk.backends import MakeSandbox
from wasmsand import Network, NetworkEvent, Sandbox, UnsupportedError
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.options import Isolation, SandboxOptions

PATIENCE = 30.0
FETCH = """\
fetch() {
  exec 3<>"/dev/tcp/$1/${2:-80}" && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && tail -n 1 <&3
}
"""


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"a page\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a web server on loopback."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def refusals(sandbox: Sandbox) -> list[tuple[str, str, int]]:
    """What was refused, each once, in order."""
    found = [(event.kind, event.host, event.port) for event in sandbox.network.log()
             if not event.allowed]  # fmt: skip
    return list(dict.fromkeys(found))


def test_nothing_is_reachable_by_default(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(FETCH + "fetch api.test; fetch 192.0.2.1; fetch 8.8.8.8")
    assert result.stdout == ""
    assert "api.test: Name does not resolve" in result.stderr
    for address in ("192.0.2.1", "8.8.8.8"):
        assert f"/dev/tcp/{address}/80: Network is unreachable" in result.stderr
    assert "refused: the sandbox has no network (option network)" in result.stderr
    assert sandbox.network.rules().allow == ()


def test_a_sandbox_without_a_network_imports_nothing_of_it() -> None:
    program = """
import sys
from wasmsand import Sandbox
with Sandbox() as sandbox:
    sandbox.commands.run("true")
part = "wasmsand.machine.network."
parts = {part + name for name in ("policy", "rules", "connecting", "poller", "inspection")}
names = {"socket", "ssl", "idna", "h11", "cryptography", "wasmsand.sdk.network"} | parts
print(*sorted(names & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("\n", "")


def test_a_rule_makes_a_name_reachable_and_nothing_else(
    make_sandbox: MakeSandbox, port: int
) -> None:
    network = Network(
        allow=["api.test:80", "*.sub.test"],
        hosts={
            "api.test": f"127.0.0.1:{port}",
            "a.sub.test": f"127.0.0.1:{port}",
            "sub.test": f"127.0.0.1:{port}",
        },
    )
    sandbox = make_sandbox(network=network)
    run = sandbox.commands.run
    assert run(FETCH + "fetch api.test 80; fetch API.TEST. 80").stdout == "a page\n" * 2
    assert run(FETCH + "fetch a.sub.test 1234").stdout == "a page\n"
    result = run(FETCH + f"fetch api.test 81; fetch sub.test 80; fetch 127.0.0.1 {port}")
    assert result.stdout == ""
    assert "to allow it, add 'api.test:81' to network.allow" in result.stderr
    assert "to allow it, add 'sub.test' to network.allow" in result.stderr
    assert refusals(sandbox) == [("connection", "api.test", 81), ("lookup", "sub.test", 0)]


def test_a_list_of_rules_is_a_network(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(network=["API.test:443", "*.wikipedia.test"])
    assert sandbox.network.rules().allow == ("api.test:443", "*.wikipedia.test")
    assert sandbox.network.rules().deny == ()


def test_rules_change_while_the_sandbox_runs(make_sandbox: MakeSandbox, port: int) -> None:
    sandbox = make_sandbox(network=Network(hosts={"api.test": f"127.0.0.1:{port}"}))
    script = FETCH + "fetch api.test"
    assert sandbox.commands.run(script).exit_code != 0
    sandbox.network.allow("api.test")
    assert sandbox.commands.run(script).stdout == "a page\n"
    sandbox.network.deny("api.test")
    assert sandbox.commands.run(script).exit_code != 0
    assert sandbox.network.rules().allow == ()
    assert sandbox.network.rules().deny == ("api.test",)
    sandbox.allow_network(["api.test"])
    assert sandbox.commands.run(script).stdout == "a page\n"
    sandbox.network.deny("*.test")
    result = sandbox.commands.run(script)
    assert result.exit_code != 0
    assert "is denied by '*.test'" in result.stderr


def test_a_deny_rule_resets_open_connections(make_sandbox: MakeSandbox) -> None:
    with _silent_server() as port:
        hosts = {"slow.test": f"127.0.0.1:{port}"}
        sandbox = make_sandbox(network=Network(allow=["slow.test"], hosts=hosts))
        command = sandbox.commands.start(
            "exec 3<>/dev/tcp/slow.test/80; echo connected; cat <&3; echo over"
        )
        assert next(iter(command)).text == "connected\n"
        sandbox.network.deny("slow.test")
        result = command.wait()
        assert result.stdout.endswith("over\n")
        assert "Connection reset by peer" in result.stderr


@contextmanager
def _silent_server() -> Iterator[int]:
    """A server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_the_log_shows_connections_and_their_bytes(make_sandbox: MakeSandbox, port: int) -> None:
    hosts = {"api.test": f"127.0.0.1:{port}"}
    sandbox = make_sandbox(network=Network(allow=["api.test"], hosts=hosts))
    sandbox.commands.run(FETCH + "fetch api.test")
    until(lambda: any(event.kind == "connection" for event in sandbox.network.log()))
    (event,) = [event for event in sandbox.network.log() if event.kind == "connection"]
    assert isinstance(event, NetworkEvent)
    assert (event.allowed, event.host, event.port, event.address) == (
        True, "api.test", 80, "127.0.0.1"
    )  # fmt: skip
    assert event.sent == len("GET / HTTP/1.0\r\n\r\n")
    assert event.received > len("a page\n")
    assert event.reason == ""
    assert abs(event.time - time.time()) < PATIENCE


def test_a_budget_ends(make_sandbox: MakeSandbox, port: int) -> None:
    hosts = {"api.test": f"127.0.0.1:{port}"}
    sandbox = make_sandbox(network=Network(allow=["api.test"], hosts=hosts, connections=2))
    script = FETCH + "for i in 1 2 3; do fetch api.test; done"
    result = sandbox.commands.run(script)
    assert result.stdout == "a page\n" * 2
    assert "2 connections were made; raise connections" in result.stderr


def test_a_copy_has_the_network_as_it_is_and_changes_only_its_own(
    make_sandbox: MakeSandbox, port: int
) -> None:
    sandbox = make_sandbox(network=Network(hosts={"api.test": f"127.0.0.1:{port}"}))
    sandbox.network.allow("api.test")
    copy = sandbox.fork()
    try:
        assert copy.network.rules().allow == ("api.test",)
        assert copy.commands.run(FETCH + "fetch api.test").stdout == "a page\n"
        copy.network.deny("api.test")
        assert copy.commands.run(FETCH + "fetch api.test").exit_code != 0
        assert sandbox.commands.run(FETCH + "fetch api.test").stdout == "a page\n"
        assert sandbox.network.rules().deny == ()
    finally:
        copy.kill()


BAD: list[tuple[Any, type[Exception], str]] = [
    ("api.test", TypeError, "network must be a Network, a list of rules"),
    (5, TypeError, "network must be a Network, a list of rules"),
    ([5], TypeError, r"network\[0\] must be a str, not int"),
    (["https://api.test/"], ValueError, "leave out the scheme: 'api.test/'"),
    (["api.*.test"], ValueError, r"'\*' stands only at the start"),
    (["api.test:0"], ValueError, "a port is 1 to 65535"),
    (["api.test:65536"], ValueError, "a port is 1 to 65535"),
    (["2130706433"], ValueError, "write the address as 127.0.0.1"),
    (["10.0.0.1/8"], ValueError, "the network of this length is 10.0.0.0/8"),
    (["\u2488.test"], ValueError, "in no host name"),
]


@pytest.mark.parametrize(("value", "kind", "message"), BAD, ids=[str(row[0]) for row in BAD])
@pytest.mark.no_userland
def test_a_malformed_network_is_explained(value: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        SandboxOptions(network=value)


@pytest.mark.no_userland
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"allow": "api.test"}, "allow must be a list of rules"),
        ({"connections": 0}, "connections must be positive"),
        ({"bytes_in": "1"}, "bytes_in must be an int"),
        ({"ask": 5}, "ask must be callable"),
        ({"ceiling": ["a.test"]}, "ceiling must be a Network"),
        ({"hosts": {"api.test": "localhost"}}, "write an IP address"),
        ({"secrets": {"api.test": "key"}}, "secrets of 'api.test' is a dict"),
        ({"proxy": "socks5://proxy"}, "proxy is None"),
        ({"allow": ["b.test"], "ceiling": Network(allow=["a.test"])}, "exceeds what may be"),
    ],
)  # fmt: skip
def test_a_malformed_field_of_a_network_is_explained(fields: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Network(**fields)


def test_a_malformed_rule_changes_nothing(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(network=["api.test"])
    with pytest.raises(ValueError, match="leave out the scheme") as raised:
        sandbox.network.allow("good.test", "https://bad.test")
    assert '"*.example.com:443"' in str(raised.value)
    with pytest.raises(TypeError, match="must be a list of rules"):
        sandbox.allow_network("good.test")
    assert sandbox.network.rules().allow == ("api.test",)


def test_a_ceiling_cannot_be_exceeded(port: int) -> None:
    ceiling = Network(
        allow=["*.test"], deny=["secret.test"], hosts={"api.test": f"127.0.0.1:{port}"}
    )
    with Sandbox(network=Network(ceiling=ceiling)) as sandbox:
        sandbox.network.allow("api.test")
        for rule in ("other.org", "*", "127.0.0.1", "secret.test"):
            with pytest.raises(ValueError, match=r"exceeds what may be|is denied here"):
                sandbox.network.allow(rule)
        assert sandbox.network.rules().allow == ("api.test",)
        assert sandbox.commands.run(FETCH + "fetch api.test").stdout == "a page\n"
        sandbox.network.allow("*.test")
        result = sandbox.commands.run(FETCH + "fetch secret.test")
        assert "is denied by 'secret.test' (the ceiling of this sandbox)" in result.stderr


@pytest.mark.not_by("http", reason="L100")
def test_events_are_reported_as_they_happen(make_sandbox: MakeSandbox, port: int) -> None:
    seen: list[NetworkEvent] = []
    hosts = {"api.test": f"127.0.0.1:{port}"}
    sandbox = make_sandbox(network=Network(allow=["api.test"], hosts=hosts, on_event=seen.append))
    sandbox.commands.run(FETCH + "fetch api.test; fetch other.test")
    wanted = {("connection", "api.test", True), ("lookup", "other.test", False)}
    until(lambda: wanted <= {(event.kind, event.host, event.allowed) for event in seen})
    until(lambda: len(sandbox.network.log()) == len(seen))
    assert set(sandbox.network.log()) == set(seen)


@pytest.mark.not_by("http", reason="L100")
@pytest.mark.not_by("process", reason="L100")
def test_the_user_is_asked_about_other_hosts(make_sandbox: MakeSandbox, port: int) -> None:
    asked: list[tuple[str, int]] = []

    def ask(host: str, port: int) -> bool:
        asked.append((host, port))
        return host == "yes.test"

    hosts = dict.fromkeys(("yes.test", "no.test", "never.test"), f"127.0.0.1:{port}")
    sandbox = make_sandbox(network=Network(deny=["never.test"], hosts=hosts, ask=ask))
    run = sandbox.commands.run
    assert run(FETCH + "fetch yes.test; fetch yes.test").stdout == "a page\n" * 2
    assert run(FETCH + "fetch no.test").stdout == ""
    assert run(FETCH + "fetch never.test").stdout == ""
    assert asked == [("yes.test", 80), ("no.test", 80)]


def test_callbacks_that_a_separate_process_cannot_call_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="ask"):
        Sandbox(network=Network(ask=lambda host, port: True), isolation="process")


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_the_proxy_of_the_environment_is_used(
    isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        asked.append(connection.recv(4096).split(b"\r\n")[0])
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        connection.recv(4096)
        connection.sendall(b"through the proxy\n")

    with server(serve) as proxy_port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy_port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        network = Network(allow=["far.test"], proxy="environment")
        with Sandbox(network=network, isolation=isolation) as sandbox:
            result = sandbox.commands.run(FETCH + "fetch far.test")
            assert result.stdout == "through the proxy\n", result.stderr
        assert asked == [b"CONNECT far.test:80 HTTP/1.1"]


def test_a_process_without_a_network_gets_none_later() -> None:
    with Sandbox(isolation="process") as sandbox:
        with pytest.raises(UnsupportedError, match=r"create the sandbox with network=\[\]"):
            sandbox.network.allow("api.test")
        assert sandbox.network.rules().allow == ()


def test_a_guest_cannot_flood_its_host_with_events() -> None:
    """They come from another process, which sends them slowly after a burst."""
    seen: list[NetworkEvent] = []
    look_up = "import socket\nfor n in range(1500):\n try: socket.gethostbyname(f'{n}.test')\n"
    network = Network(on_event=seen.append)
    with Sandbox(network=network, isolation="process") as sandbox:
        began = time.monotonic()
        sandbox.commands.run(["python3", "-c", look_up + " except OSError: pass"])
        events, seconds = len(seen), time.monotonic() - began
        until(lambda: len(seen) > 200)
    assert events <= 200 + 200 * (seconds + 1)


def test_a_confined_process_with_a_network_still_has_its_barriers() -> None:
    from wasmsand.confinement import landlock
    from wasmsand.rpc.backend import ProcessBackend

    backend = ProcessBackend(SandboxOptions(network=Network()))
    try:
        assert "seccomp" in backend.barriers
        assert ("landlock: files" in backend.barriers) == (landlock.version() > 0)
        assert "landlock: TCP" not in backend.barriers
    finally:
        backend.close()


def test_a_state_at_rest_keeps_the_network_as_it_is(port: int) -> None:
    network = Network(hosts={"api.test": f"127.0.0.1:{port}"}, secrets={"x.test": {"K": "s3cret"}})
    options = SandboxOptions(network=network)
    backend = LocalBackend(options)
    backend.allow_network(("api.test",))
    state = backend.state()
    backend.close()
    assert "s3cret" not in repr(state.options)
    assert "s3cret" not in repr(options)
    with Sandbox.from_backend(LocalBackend(options, state)) as sandbox:
        assert sandbox.network.rules().allow == ("api.test",)
        assert sandbox.commands.run(FETCH + "fetch api.test").stdout == "a page\n"
