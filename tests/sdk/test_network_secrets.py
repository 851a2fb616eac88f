"""Secrets and rules on requests, as users of the SDK have them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.servers import Echo, echo_server
from wasmsand import Network, Sandbox, UnsupportedError
from wasmsand.machine.network import extra
from wasmsand.sdk.options import Isolation
from wasmsand.sdk.python_session import PythonSession

SECRET = "sk-0a3f-of-the-sdk"
BEARER = {"api.test": {"Authorization": f"Bearer {SECRET}"}}


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Echo]:
    """A server as api.test, which the host trusts."""
    authority = PrivateAuthority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", authority.ca_file)
    with echo_server(authority.context("api.test")) as running:
        yield running


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_a_secret_is_injected_where_the_sandbox_runs(echo: Echo, isolation: Isolation) -> None:
    network = Network(
        allow=["api.test"], hosts={"api.test": f"127.0.0.1:{echo.port}"}, secrets=BEARER
    )
    with Sandbox(network=network, isolation=isolation) as sandbox:
        result = sandbox.commands.run("curl -sS https://api.test/a; env; cat /proc/*/environ")
        events = sandbox.network.log()
        assert SECRET not in repr([sandbox, network, sandbox.env.all(), events])
    assert result.stdout.startswith("GET /a 0\n")
    assert "REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt\n" in result.stdout
    assert SECRET not in result.stdout + result.stderr
    assert [request[2]["authorization"] for request in echo.requests] == [[f"Bearer {SECRET}"]]
    (seen,) = [event for event in events if event.kind == "request"]
    assert (seen.method, seen.path, seen.status, seen.allowed) == ("GET", "/a", 200, True)


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_rules_on_requests_are_added_while_a_sandbox_runs(echo: Echo, isolation: Isolation) -> None:
    network = Network(hosts={"api.test": f"127.0.0.1:{echo.port}"})
    with Sandbox(network=network, isolation=isolation) as sandbox:
        assert sandbox.commands.run("curl -s https://api.test/a").exit_code == 6
        sandbox.network.allow("GET api.test/a")
        assert sandbox.commands.run("curl -s https://api.test/a").stdout == "GET /a 0\n"
        result = sandbox.commands.run("curl -s https://api.test/b")
    assert result.stdout == (
        "wasmsand: GET api.test:443/b is not allowed; "
        "to allow it, add 'GET api.test:443/b' to network.allow\n"
    )
    assert "network: request to api.test:443 refused: GET api.test:443/b is" in result.stderr
    assert [request[1] for request in echo.requests] == ["/a"]


def test_variables_of_the_user_win(echo: Echo) -> None:
    network = Network(allow=["GET api.test"])
    with Sandbox(network=network, env={"SSL_CERT_FILE": "/mine"}) as sandbox:
        assert sandbox.commands.run("echo $SSL_CERT_FILE").stdout == "/mine\n"
        assert sandbox.env.get("PIP_CERT") == "/etc/ssl/certs/ca-certificates.crt"


def test_a_missing_package_is_an_error_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extra, "_is_installed", lambda name: name != "cryptography")
    message = r"cryptography: pip install 'wasmsand\[network\]'"
    with pytest.raises(UnsupportedError, match=message):
        Sandbox(network=Network(allow=["api.test"], secrets=BEARER))
    with Sandbox(network=["api.test"]) as sandbox:
        with pytest.raises(UnsupportedError, match=message):
            sandbox.network.allow("GET other.test")
        assert sandbox.network.rules().allow == ("api.test",)


def test_a_file_system_without_room_for_the_certificates_is_an_error() -> None:
    with pytest.raises(UnsupportedError, match="raise fs_limit_bytes"):
        Sandbox(network=["GET api.test"], fs_limit_bytes=100_000)
    with Sandbox(network=[], fs_limit_bytes=100_000) as sandbox:
        with pytest.raises(UnsupportedError, match="raise fs_limit_bytes"):
            sandbox.network.allow("GET api.test")
        assert sandbox.network.rules().allow == ()


@pytest.mark.parametrize("network", ["None", "['api.test']"])
def test_the_optional_packages_are_imported_only_if_requests_are_seen(network: str) -> None:
    program = (
        "import sys; from wasmsand import Sandbox\n"
        f"with Sandbox(network={network}) as sandbox: sandbox.commands.run('true')\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('h11', 'cryptography')"
        " or name.startswith('wasmsand.machine.network.inspecting')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_fork_reaches_the_host_with_the_same_authority(echo: Echo) -> None:
    network = Network(
        allow=["api.test"], hosts={"api.test": f"127.0.0.1:{echo.port}"}, secrets=BEARER
    )
    tail = "curl -sS https://api.test/a; tail -n 12 /etc/ssl/certs/ca-certificates.crt"
    with Sandbox(network=network) as sandbox, sandbox.fork() as copy:
        outputs = [each.commands.run(tail).stdout for each in (sandbox, copy)]
    assert [output.partition("\n")[0] for output in outputs] == ["GET /a 0", "GET /a 0"]
    assert outputs[0] == outputs[1]
    assert [request[2]["authorization"] for request in echo.requests] == 2 * [[f"Bearer {SECRET}"]]


def test_a_copied_session_still_trusts_the_bridge(echo: Echo) -> None:
    """It has read the certificates before it was copied."""
    network = Network(
        allow=["api.test"], hosts={"api.test": f"127.0.0.1:{echo.port}"}, secrets=BEARER
    )
    ask = "print(urllib.request.urlopen('https://api.test/x', context=context).read())"
    with Sandbox(network=network) as sandbox:
        session = sandbox.python()
        session.run("import ssl, urllib.request; context = ssl.create_default_context()")
        assert session.run(ask).stdout == "b'GET /x 0\\n'\n"
        with sandbox.fork() as copy:
            (copied,) = copy.sessions
            assert isinstance(copied, PythonSession)
            assert copied.run(ask).stdout == "b'GET /x 0\\n'\n"
            assert SECRET not in copied.run("print(globals())").stdout
