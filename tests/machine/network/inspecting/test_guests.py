"""Real programs in the sandbox reach inspected hosts, unmodified."""

from __future__ import annotations

import socket
import textwrap
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.machine.network.inspecting.guests import inspected, python
from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.servers import echo_server, raw_server
from tests.machine.network.servers import ENVIRONMENT, PATIENCE, run
from wasmsand.machine.command import CommandRequest
from wasmsand.machine.machine import Machine, MachineOptions
from wasmsand.machine.network import extra
from wasmsand.machine.network.events import NetworkEvent
from wasmsand.machine.network.extra import NetworkExtraMissing
from wasmsand.machine.network.guest_trust import BUNDLES, SYSTEM_BUNDLE
from wasmsand.machine.network.policy import Budget, policy_of
from wasmsand.machine.streamed import StreamedProcess

SECRET = "sk-2b7e-only-for-the-host"
BEARER = {"api.test": {"Authorization": f"Bearer {SECRET}"}}


def at(port: int) -> dict[str, str]:
    return {"api.test": f"127.0.0.1:{port}", "other.test": f"127.0.0.1:{port}"}


def test_python_uses_a_host_with_a_secret(private_authority: PrivateAuthority) -> None:
    program = """
        import urllib.request, http.client
        print(urllib.request.urlopen("https://api.test/one").read())
        c = http.client.HTTPSConnection("api.test")
        for path in ("/two", "/three"):
            c.request("POST", path, b"body")
            r = c.getresponse()
            print(r.status, r.read())
    """
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "api.test", hosts=at(echo.port), secrets=BEARER) as machine,
    ):
        assert python(machine, textwrap.dedent(program)) == (
            "b'GET /one 0\\n'\n200 b'POST /two 4\\n'\n200 b'POST /three 4\\n'\n"
        )
        events = machine.bridge.log.events()
    assert [request[2]["authorization"] for request in echo.requests] == 3 * [[f"Bearer {SECRET}"]]
    requests = [event for event in events if event.kind == "request"]
    assert [(e.method, e.path, e.status, e.allowed, e.host, e.port) for e in requests] == [
        ("GET", "/one", 200, True, "api.test", 443),
        ("POST", "/two", 200, True, "api.test", 443),
        ("POST", "/three", 200, True, "api.test", 443),
    ]
    assert requests[0].address == "127.0.0.1"


def test_requests_of_the_image_uses_it_too(private_authority: PrivateAuthority) -> None:
    program = "import requests; print(requests.get('https://api.test/x').text, end='')"
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(
            private_authority,
            "api.test",
            hosts=at(echo.port),
            secrets=BEARER,
            packages=("requests",),
        ) as machine,
    ):
        assert python(machine, program) == "GET /x 0\n"
    assert echo.requests[0][2]["authorization"] == [f"Bearer {SECRET}"]


def test_openssl_of_the_image_trusts_the_bridge(private_authority: PrivateAuthority) -> None:
    script = (
        "printf 'GET /o HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n' |"
        " openssl s_client -quiet -verify_return_error -verify_quiet -servername api.test"
        " -connect api.test:443 2>/dev/null | tail -n 1"
    )
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "api.test", hosts=at(echo.port), secrets=BEARER) as machine,
    ):
        assert run(machine, "bash", "-c", script) == ("GET /o 0\n", "")


def test_method_and_path_rules_hold_for_a_guest(private_authority: PrivateAuthority) -> None:
    program = """
        import urllib.request, urllib.error
        def ask(method, path):
            request = urllib.request.Request("https://api.test" + path, method=method)
            try: return urllib.request.urlopen(request).read()
            except urllib.error.HTTPError as error: return error.code, error.read().decode()
        print(ask("GET", "/v1/models"))
        print(ask("DELETE", "/v1/models"))
        print(ask("GET", "/admin"))
    """
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "GET api.test/v1/*", hosts=at(echo.port)) as machine,
    ):
        out, notices = run(machine, "python3", "-c", textwrap.dedent(program))
    delete = (
        "DELETE api.test:443/v1/models is not allowed; "
        "to allow it, add 'DELETE api.test:443/v1/models' to network.allow"
    )
    assert out.splitlines()[0] == "b'GET /v1/models 0\\n'"
    assert out.splitlines()[1] == repr((403, f"wasmsand: {delete}\n"))
    assert out.splitlines()[2].startswith("(403, ")
    assert f"network: request to api.test:443 refused: {delete}\n" in notices
    assert [request[1] for request in echo.requests] == ["/v1/models"]


def test_a_placeholder_in_the_environment_is_replaced_on_the_way(
    private_authority: PrivateAuthority,
) -> None:
    token = "{{API_TOKEN}}"
    program = """
        import urllib.request
        token = "{{API_TOKEN}}"
        for host in ("api.test", "other.test"):
            request = urllib.request.Request(f"https://{host}/", headers={"X-Token": token})
            print(urllib.request.urlopen(request).read())
    """
    with (
        echo_server(private_authority.context("api.test", "other.test")) as echo,
        inspected(
            private_authority,
            "api.test",
            "GET other.test",
            hosts=at(echo.port),
            placeholders={"api.test": {token: SECRET}},
        ) as machine,
    ):
        assert python(machine, textwrap.dedent(program)) == 2 * "b'GET / 0\\n'\n"
    assert [request[2]["x-token"] for request in echo.requests] == [[SECRET], [token]]


def test_other_hosts_are_not_inspected(private_authority: PrivateAuthority) -> None:
    """TLS is end to end: the guest sees the real certificate."""
    program = """
        import ssl, socket
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for host in ("api.test", "other.test"):
            s = context.wrap_socket(socket.create_connection((host, 443)), server_hostname=host)
            context.load_default_certs()
            print(ssl.DER_cert_to_PEM_cert(s.getpeercert(True)) == open("/real.pem").read())
    """
    with (
        echo_server(private_authority.context("other.test", "api.test")) as echo,
        inspected(
            private_authority, "api.test", "other.test", hosts=at(echo.port), secrets=BEARER
        ) as machine,
    ):
        text = Path(private_authority.directory / "other.test-False.pem").read_text()
        real = text[: text.index("-----BEGIN PRIVATE")].encode()
        machine.files.write("/real.pem", real)
        assert python(machine, textwrap.dedent(program)) == "False\nTrue\n"


def test_rules_can_begin_and_change_while_a_sandbox_runs(
    private_authority: PrivateAuthority,
) -> None:
    program = """
        import urllib.request, urllib.error
        try: print(urllib.request.urlopen("https://api.test/x").read())
        except urllib.error.URLError as error: print(error.reason)
    """
    with echo_server(private_authority.context("api.test")) as echo:
        machine = Machine(MachineOptions(network=policy_of(hosts=at(echo.port))))
        text = textwrap.dedent(program)
        assert "Name does not resolve" in python(machine, text).splitlines()[0]
        before = machine.files.read(SYSTEM_BUNDLE)
        policy = machine.bridge.policy
        assert policy is not None
        machine.bridge.policy = policy.allowing("GET api.test/x")
        machine.bridge.inspection.verify_with(private_authority.ca_file)
        assert machine.files.read(SYSTEM_BUNDLE).startswith(before)
        assert python(machine, text) == "b'GET /x 0\\n'\n"
        machine.bridge.policy = policy.allowing("PUT api.test/x")
        assert python(machine, text).splitlines()[0] == "Forbidden"
        machine.close()


def test_a_connection_that_becomes_inspected_is_reset(private_authority: PrivateAuthority) -> None:
    program = """
        import http.client, ssl
        context = ssl._create_unverified_context()
        c = http.client.HTTPSConnection("api.test", context=context)
        c.request("GET", "/first"); print(c.getresponse().read(), flush=True)
        input()
        try:
            c.request("GET", "/second"); print(c.getresponse().read())
        except ConnectionError as error: print(type(error).__name__)
    """
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "api.test", hosts=at(echo.port)) as machine,
    ):
        machine.files.write("/p.py", textwrap.dedent(program).encode())
        request = CommandRequest(("python3", "/p.py"), environ=ENVIRONMENT, cwd="/", stdin=None)
        process = machine.start(request)
        assert _output(process, b"\n") == b"b'GET /first 0\\n'\n"
        policy = machine.bridge.policy
        assert policy is not None
        machine.bridge.policy = policy.denying("GET api.test/second")
        process.write(b"\n")
        assert b"ConnectionResetError" in _output(process, b"Error\n")
        process.wait(PATIENCE)
    assert [request[1] for request in echo.requests] == ["/first"]


def _output(process: StreamedProcess, until: bytes) -> bytes:
    found = b""
    while until not in found:
        pieces = process.read(PATIENCE)
        assert pieces, found
        found += b"".join(piece.data for piece in pieces)
    return found


def test_the_budget_of_requests_holds(private_authority: PrivateAuthority) -> None:
    program = """
        import http.client
        c = http.client.HTTPSConnection("api.test")
        for _ in range(3):
            c.request("GET", "/"); r = c.getresponse(); print(r.status, r.read())
    """
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(
            private_authority, "GET api.test", hosts=at(echo.port), budget=Budget(requests=2)
        ) as machine,
    ):
        out, notices = run(machine, "python3", "-c", textwrap.dedent(program))
    assert out.splitlines()[2] == r"403 b'wasmsand: 2 requests were made; raise requests\n'"
    assert "2 requests were made; raise requests" in notices
    assert len(echo.requests) == 2


def test_a_large_refused_upload_gets_its_answer(private_authority: PrivateAuthority) -> None:
    program = """
        import http.client
        c = http.client.HTTPSConnection("api.test")
        c.request("PUT", "/", b"x" * 5_000_000); r = c.getresponse(); print(r.status)
    """
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "GET api.test", hosts=at(echo.port)) as machine,
    ):
        out, _ = run(machine, "python3", "-c", textwrap.dedent(program))
    assert out == "403\n"
    assert echo.requests == []


def test_large_bodies_pass_through_the_bridge(private_authority: PrivateAuthority) -> None:
    size = 20_000_000
    program = f"""
        import http.client
        c = http.client.HTTPSConnection("api.test")
        c.request("GET", "/large/{size}"); print(len(c.getresponse().read()))
        c.request("POST", "/", b"x" * {size}); print(c.getresponse().read())
    """
    with (
        echo_server(private_authority.context("api.test")) as echo,
        inspected(private_authority, "GET,POST api.test", hosts=at(echo.port)) as machine,
    ):
        assert python(machine, textwrap.dedent(program)) == f"{size}\nb'POST / {size}\\n'\n"


def test_every_bundle_has_one_authority_which_copies_share(
    private_authority: PrivateAuthority,
) -> None:
    """Copied programs have read the bundle already. A saved sandbox comes without the keys."""
    with inspected(private_authority, "GET api.test") as machine:
        state = machine.state()
        certificate = _authority_in_all_bundles(machine)
    copy = Machine.from_state(state)
    assert _authority_in_all_bundles(copy) == certificate
    copy.close()
    loaded = Machine.from_state(replace(state, authority=None))
    assert _authority_in_all_bundles(loaded) != certificate
    assert certificate not in loaded.files.read(SYSTEM_BUNDLE)
    loaded.close()


def _authority_in_all_bundles(machine: Machine) -> bytes:
    certificate = machine.bridge.inspection.authority.certificate
    contents = [machine.files.read(path) for path in BUNDLES]
    assert [content.count(certificate) for content in contents] == [1, 1, 1]
    return certificate


def test_without_inspected_hosts_nothing_is_changed() -> None:
    machine = Machine(MachineOptions(network=policy_of(allow=["api.test"])))
    plain = Machine()
    assert machine.files.read(SYSTEM_BUNDLE) == plain.files.read(SYSTEM_BUNDLE)
    machine.close()
    plain.close()


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extra, "_is_installed", lambda name: name != "h11")
    with pytest.raises(NetworkExtraMissing, match=r"h11: pip install 'wasmsand\[network\]'"):
        Machine(MachineOptions(network=policy_of(allow=["GET api.test"])))
    machine = Machine(MachineOptions(network=policy_of(allow=["api.test"])))
    with pytest.raises(NetworkExtraMissing):
        machine.bridge.policy = policy_of(allow=["api.test"], secrets=BEARER)
    assert machine.bridge.policy == policy_of(allow=["api.test"])
    machine.close()


def test_a_request_is_delivered_although_its_sender_leaves(
    private_authority: PrivateAuthority,
) -> None:
    program = """
        import socket
        s = socket.create_connection(("api.test", 80))  # by TLS it would leave tickets unread
        s.sendall(b"POST /left HTTP/1.1\\r\\nHost: api.test\\r\\nContent-Length: 2\\r\\n\\r\\nok")
        s.close()
    """
    with (
        echo_server() as echo,
        inspected(private_authority, "POST api.test", hosts=at(echo.port)) as machine,
    ):
        assert python(machine, textwrap.dedent(program)) == ""
        end = time.monotonic() + PATIENCE
        while not _requests(machine) or not echo.requests:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert [(event.path, event.sent) for event in _requests(machine)] == [("/left", 2)]
    assert [request[1:4:2] for request in echo.requests] == [("/left", b"ok")]


def test_a_response_without_end_is_not_read_for_nobody(private_authority: PrivateAuthority) -> None:
    ended = threading.Event()

    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                connection.sendall(b"x" * 65536)
        except OSError:
            ended.set()

    program = """
        import urllib.request
        print(urllib.request.urlopen("https://api.test/endless").read(5))
    """
    with (
        raw_server(handle, private_authority.context("api.test")) as port,
        inspected(private_authority, "GET api.test", hosts=at(port)) as machine,
    ):
        assert python(machine, textwrap.dedent(program)) == "b'xxxxx'\n"
        assert ended.wait(PATIENCE / 3)
        (event,) = _requests(machine)
    assert (event.path, event.status, event.allowed) == ("/endless", 200, True)
    # It depends on whether the guest has read everything that was there.
    assert event.reason in ("the guest reset it", "the guest has closed the connection")


def _requests(machine: Machine) -> list[NetworkEvent]:
    return [event for event in machine.bridge.log.events() if event.kind == "request"]


def test_a_proxy_carries_an_inspected_connection_and_does_not_see_the_secret(
    private_authority: PrivateAuthority,
) -> None:
    carried = bytearray()

    def carry(source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                carried.extend(data)
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)

    def proxy(connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        carried.extend(head)
        with socket.create_connection(("127.0.0.1", echo.port)) as to:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=carry, args=(to, connection), daemon=True)
            back.start()
            carry(connection, to)
            back.join()

    program = "import urllib.request; print(urllib.request.urlopen('https://api.test/p').read())"
    clear = "import urllib.request; urllib.request.urlopen('http://api.test/p')"
    with (
        echo_server(private_authority.context("api.test")) as echo,
        raw_server(proxy) as port,
        inspected(
            private_authority, "api.test", secrets=BEARER, proxy=f"http://127.0.0.1:{port}"
        ) as machine,
    ):
        assert python(machine, program) == "b'GET /p 0\\n'\n"
        # The proxy is on this machine, but the host is not known to be.
        assert "HTTP Error 403" in python(machine, clear)
    assert carried.startswith(b"CONNECT api.test:443 HTTP/1.1\r\n")
    assert SECRET.encode() not in carried
    assert echo.requests[0][2]["authorization"] == [f"Bearer {SECRET}"]
