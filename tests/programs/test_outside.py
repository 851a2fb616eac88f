"""Real programs that connect to something of the host."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.abi.host_peers import AnsweringHost, Conversation
from wasmsand import Sandbox
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.options import SandboxOptions


def answer(conversation: Conversation) -> None:
    """Answer one request: with its first line, then with as many bytes as it asks for."""
    request = b""
    while not request.endswith(b"\r\n\r\n"):
        more = conversation.read()
        if not more:
            return
        request += more
    first = request.split(b"\r\n", 1)[0]
    size = int(first.split()[1].strip(b"/") or 0)
    conversation.write(b"HTTP/1.0 200 OK\r\nX-Request: " + first + b"\r\n\r\n" + b"x" * size)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    backend = LocalBackend(SandboxOptions())
    machine = backend._machine
    host = AnsweringHost(machine.lock, answer)
    machine.kernel.network.outside = host
    with Sandbox.from_backend(backend) as sandbox:
        yield sandbox
        for thread in host.threads:
            thread.join(20)
        assert machine.kernel.network.sockets == 0


def test_bash_talks_to_something_of_the_host(sandbox: Sandbox) -> None:
    script = r"""
exec 3<>/dev/tcp/93.184.216.34/80
printf 'GET / HTTP/1.0\r\n\r\n' >&3
cat <&3
exec 3>&-
"""
    result = sandbox.commands.run(script)
    assert (result.stdout, result.stderr, result.exit_code) == (
        "HTTP/1.0 200 OK\r\nX-Request: GET / HTTP/1.0\r\n\r\n", "", 0,
    )  # fmt: skip


def test_a_refused_address_is_an_error_of_the_program(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("exec 3<>/dev/tcp/169.254.169.254/80")
    assert "Permission denied" in result.stderr
    assert result.exit_code == 1


PYTHON = """
import selectors, socket
s = socket.socket()
s.setblocking(False)
print(s.connect_ex(("93.184.216.34", 443)) in (0, 115))
selector = selectors.DefaultSelector()
selector.register(s, selectors.EVENT_WRITE)
assert selector.select(10)
print(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.getpeername())
s.setblocking(True)
s.sendall(b"GET /1000000 HTTP/1.0\\r\\n\\r\\n")
got = b""
while data := s.recv(65536):
    got += data
print(len(got.split(b"\\r\\n\\r\\n", 1)[1]))
"""


def test_python_gets_more_than_the_host_can_hold_back(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/client.py", PYTHON)
    result = sandbox.commands.run("python3 /tmp/client.py")
    assert (result.stdout, result.stderr) == ("True\n0 ('93.184.216.34', 443)\n1000000\n", "")


def test_a_client_that_is_killed_ends_the_conversation(sandbox: Sandbox) -> None:
    sandbox.commands.run(
        "(exec 3<>/dev/tcp/93.184.216.34/80; exec sleep 100) & sleep 0.2; kill -9 $!"
    )
