"""What `sandbox.ports` cannot do yet; docs/limitations.md has the same IDs."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request

import pytest

from tests.sdk import backends
from wasmsand import Sandbox
from wasmsand.sdk.ports import PortStream


@pytest.mark.xfail(
    reason="L110: a browser, which sends no token, cannot open a port of a server's sandbox",
    raises=urllib.error.HTTPError,
    strict=True,
)
def test_a_browser_opens_the_url_of_a_servers_sandbox() -> None:
    url, token = backends.server()
    with Sandbox.connect(url, token=token) as sandbox:
        sandbox.commands.start("exec python3 -m http.server 8000")
        sandbox.ports.wait(8000)
        with urllib.request.urlopen(sandbox.ports.url(8000), timeout=30) as response:
            assert response.status == 200


@pytest.mark.xfail(reason="L111: only TCP ports are reached", raises=AssertionError, strict=True)
def test_a_udp_server_is_listed() -> None:
    with Sandbox() as sandbox:
        sandbox.commands.start("exec nc -u -l -p 7000")
        assert sandbox.commands.run("sleep 0.3; grep -c : /proc/self/status").exit_code == 0
        assert [found.port for found in sandbox.ports.list()] == [7000]


@pytest.mark.xfail(
    reason="L112: one direction of a stream over https cannot be closed alone", strict=True
)
def test_a_stream_over_https_is_half_closed() -> None:
    one, two = socket.socketpair()
    secure = ssl.create_default_context().wrap_socket(
        one, server_hostname="server", do_handshake_on_connect=False
    )
    with two, PortStream(secure, 8000) as stream:
        stream.finish()
