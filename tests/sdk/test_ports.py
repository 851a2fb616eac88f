"""`sandbox.ports`: servers in the sandbox, reached by their user."""

from __future__ import annotations

import asyncio
import pickle
import socket
import threading
import time
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.sdk import backends
from tests.sdk.backends import MakeSandbox
from wasmsand import (
    AsyncSandbox,
    PortError,
    PortInfo,
    PortTimeoutError,
    Sandbox,
    SandboxClosedError,
)
from wasmsand.sdk.local import LocalBackend

ECHO = """
import socket, threading
def serve(c):
    while data := c.recv(65536): c.sendall(data)
    c.close()
l = socket.create_server(("127.0.0.1", 7000), backlog=100)
while True:
    c, _ = l.accept()
    threading.Thread(target=serve, args=(c,)).start()
"""
PATIENCE_MS = 30_000


def fetch(url: str) -> bytes:
    """The body at a URL. A server's URL needs its token."""
    request = urllib.request.Request(url)
    if "/v1/sandboxes/" in url:
        request.add_header("Authorization", f"Bearer {backends.server()[1]}")
    with urllib.request.urlopen(request, timeout=PATIENCE_MS / 1000) as response:
        body: bytes = response.read()
        return body


def read_all(stream: Any) -> bytes:
    got = b""
    while data := stream.read(timeout_ms=PATIENCE_MS):
        got += data
    return got


def test_a_web_server_in_the_sandbox_is_reached(sandbox: Sandbox) -> None:
    sandbox.files.write("site/a.txt", "hello\n")
    sandbox.files.write("site/large", bytes(5_000_000))
    sandbox.commands.start("cd site; exec python3 -m http.server 8000")
    sandbox.ports.wait(8000)
    url = sandbox.ports.url(8000)
    assert fetch(f"{url}/a.txt") == b"hello\n"
    assert fetch(f"{url}/large") == bytes(5_000_000)
    assert b"a.txt" in fetch(url)
    assert sandbox.ports.url(8000) == url


def test_nc_is_reached_through_a_stream(sandbox: Sandbox) -> None:
    handle = sandbox.commands.start("nc -l -p 7001", stdin="from inside\n")
    sandbox.ports.wait(7001)
    with sandbox.ports.connect(7001) as stream:
        assert stream.port == 7001
        stream.write("from outside\n")
        stream.finish()
        assert read_all(stream) == b"from inside\n"
    assert handle.wait().stdout == "from outside\n"


def test_much_data_goes_both_ways(sandbox: Sandbox) -> None:
    sandbox.files.write("echo.py", ECHO)
    sandbox.commands.start("exec python3 echo.py")
    sandbox.ports.wait(7000)
    data = bytes(range(256)) * 10_000
    with sandbox.ports.connect(7000) as stream:

        def send() -> None:
            stream.write(data)
            stream.finish()

        sender = threading.Thread(target=send)
        sender.start()
        assert read_all(stream) == data
        sender.join()


def test_several_streams_are_open_at_once(sandbox: Sandbox) -> None:
    sandbox.files.write("echo.py", ECHO)
    sandbox.commands.start("exec python3 echo.py")
    sandbox.ports.wait(7000)
    streams = [sandbox.ports.connect(7000) for _ in range(10)]
    for number, stream in enumerate(streams):
        stream.write(f"{number}")
    assert [stream.read(1) for stream in streams] == [b"%d" % n for n in range(10)]
    for stream in streams:
        stream.close()


def test_servers_are_listed(sandbox: Sandbox) -> None:
    assert sandbox.ports.list() == []
    first = sandbox.commands.start("exec nc -l -p 7002")
    sandbox.files.write("echo.py", ECHO.replace("7000", "7001"))
    second = sandbox.commands.start("exec python3 echo.py")
    sandbox.ports.wait(7001)
    sandbox.ports.wait(7002)
    found = sandbox.ports.list()
    assert [item.port for item in found] == [7001, 7002]
    assert found[0] == PortInfo(port=7001, address="127.0.0.1", pid=second.pid)
    assert found[1].pid == first.pid
    assert found[1].address in ("0.0.0.0", "::")


def test_a_port_without_a_server_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(PortError) as caught:
        sandbox.ports.connect(7000)
    assert (caught.value.errno_name, caught.value.port) == ("ECONNREFUSED", 7000)
    assert str(caught.value) == "ECONNREFUSED: nothing listens on port 7000"


def test_waiting_for_a_server_ends_in_time(sandbox: Sandbox) -> None:
    sandbox.commands.start("exec nc -l -p 7001")
    sandbox.ports.wait(7001)
    with pytest.raises(PortTimeoutError) as caught:
        sandbox.ports.wait(7000, timeout_ms=200)
    assert isinstance(caught.value, TimeoutError)
    assert str(caught.value) == (
        "ETIMEDOUT: no program listens on port 7000 after 200 ms; programs listen on 7001"
    )
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.port, again.errno_name) == (str(caught.value), 7000, "ETIMEDOUT")


def test_waiting_ends_when_a_server_starts(sandbox: Sandbox) -> None:
    sandbox.commands.start("sleep 0.5; exec nc -l -p 7000")
    began = time.monotonic()
    sandbox.ports.wait(7000, timeout_ms=None)
    assert time.monotonic() - began >= 0.3


def test_a_stream_without_data_times_out(sandbox: Sandbox) -> None:
    sandbox.files.write("echo.py", ECHO)
    sandbox.commands.start("exec python3 echo.py")
    sandbox.ports.wait(7000)
    with sandbox.ports.connect(7000) as stream:
        with pytest.raises(PortTimeoutError, match="the server on port 7000 sent nothing in time"):
            stream.read(timeout_ms=100)
        stream.write("x", timeout_ms=PATIENCE_MS)
        assert stream.read(timeout_ms=PATIENCE_MS) == b"x"
    with pytest.raises(PortError, match="EBADF: the stream was closed"):
        stream.read()
    stream.close()


def test_a_stream_ends_with_its_server(sandbox: Sandbox) -> None:
    sandbox.files.write("echo.py", ECHO)
    server = sandbox.commands.start("exec python3 echo.py")
    sandbox.ports.wait(7000)
    with sandbox.ports.connect(7000) as stream:
        stream.write("x")
        assert stream.read() == b"x"
        server.kill()
        assert stream.read(timeout_ms=PATIENCE_MS) == b""


@pytest.mark.parametrize("port", [0, -1, 65_536, True, "8000", 80.0, None])
def test_a_port_that_is_none_is_an_error(sandbox: Sandbox, port: Any) -> None:
    for method in ("url", "connect", "wait", "close"):
        with pytest.raises((ValueError, TypeError), match=r"^port must be"):
            getattr(sandbox.ports, method)(port)
    if port is not None and port != 0:
        with pytest.raises((ValueError, TypeError), match=r"^host_port must be"):
            sandbox.ports.url(8000, host_port=port)


def test_a_killed_sandbox_has_no_ports(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox()
    sandbox.files.write("echo.py", ECHO)
    sandbox.commands.start("exec python3 echo.py")
    sandbox.ports.wait(7000)
    stream = sandbox.ports.connect(7000)
    stream.write("x")
    assert stream.read() == b"x"
    sandbox.kill()
    with pytest.raises(SandboxClosedError):
        sandbox.ports.connect(7000)
    with pytest.raises(SandboxClosedError):
        sandbox.ports.url(7000)
    try:
        ended = stream.read(timeout_ms=PATIENCE_MS).decode()
    except PortError as error:
        ended = error.errno_name
    assert ended in ("", "ECONNRESET")
    stream.close()


def test_a_wait_ends_with_the_sandbox(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox()
    threading.Timer(0.5, sandbox.kill).start()
    with pytest.raises(SandboxClosedError):
        sandbox.ports.wait(7000, timeout_ms=PATIENCE_MS)


@pytest.fixture(params=["none", "process"])
def here(request: pytest.FixtureRequest) -> Any:
    """A sandbox on this machine, whose ports are ports of this machine."""
    with Sandbox(isolation=request.param) as sandbox:
        yield sandbox


def test_the_port_of_this_machine_closes(here: Sandbox) -> None:
    here.files.write("echo.py", ECHO)
    here.commands.start("exec python3 echo.py")
    here.ports.wait(7000)
    parts = urlsplit(here.ports.url(7000))
    assert (parts.hostname, parts.scheme) == ("127.0.0.1", "http")
    assert parts.port is not None
    with socket.create_connection(("127.0.0.1", parts.port), 30) as connection:
        connection.sendall(b"x")
        assert connection.recv(1) == b"x"
        assert here.ports.close(7000) is True
        assert here.ports.close(7000) is False
        _expect_refusal(parts.port)


def test_the_port_of_this_machine_closes_with_the_sandbox() -> None:
    for isolation in ("none", "process"):
        sandbox = Sandbox(isolation=isolation)
        port = urlsplit(sandbox.ports.url(7000)).port
        assert port is not None
        sandbox.kill()
        _expect_refusal(port)
        sandbox = Sandbox(isolation=isolation)
        port = urlsplit(sandbox.ports.url(7000)).port
        assert port is not None
        del sandbox  # without a kill
        _expect_refusal(port)


def _expect_refusal(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 30).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            pass  # accepted, and reset at once
        time.sleep(0.01)
    raise AssertionError("the port is still open")


def test_the_port_of_this_machine_can_be_chosen(here: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        with pytest.raises(PortError, match="choose another host_port") as caught:
            here.ports.url(7000, host_port=number)
        assert caught.value.errno_name == "EADDRINUSE"
    assert here.ports.url(7000, host_port=number) == f"http://127.0.0.1:{number}"


def test_many_clients_of_a_port(here: Sandbox) -> None:
    here.files.write("echo.py", ECHO)
    here.commands.start("exec python3 echo.py")
    here.ports.wait(7000)
    port = urlsplit(here.ports.url(7000)).port
    assert port is not None
    connections = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(30)]
    for number, connection in enumerate(connections):
        connection.sendall(b"%02d" % number)
    assert [connection.recv(2) for connection in connections] == [b"%02d" % n for n in range(30)]
    for connection in connections:
        connection.close()


def test_a_servers_sandbox_can_have_ports_of_this_machine() -> None:
    url, token = backends.server()
    with Sandbox.connect(url, token=token) as sandbox:
        assert sandbox.ports.url(7000).startswith(f"{url}/v1/sandboxes/")
        assert sandbox.ports.close(7000) is False
        sandbox.files.write("echo.py", ECHO)
        sandbox.commands.start("exec python3 echo.py")
        sandbox.ports.wait(7000)
        port = urlsplit(sandbox.ports.url(7000, host_port=0)).port
        assert port is not None
        data = bytes(range(256)) * 4000
        with socket.create_connection(("127.0.0.1", port), 30) as connection:

            def send() -> None:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)

            sender = threading.Thread(target=send)
            sender.start()
            got = b""
            while piece := connection.recv(65536):
                got += piece
            sender.join()
            assert got == data
        connections = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(20)]
        for number, connection in enumerate(connections):
            connection.sendall(b"%02d" % number)
        assert [found.recv(2) for found in connections] == [b"%02d" % n for n in range(20)]
        for connection in connections[:10]:
            connection.close()
        assert sandbox.ports.close(7000) is True
        _expect_refusal(port)
    for connection in connections[10:]:  # they end with the sandbox
        with connection:
            try:
                assert connection.recv(1) == b""
            except ConnectionResetError:
                pass


def test_a_port_of_this_machine_for_nobody_closes_the_connection() -> None:
    url, token = backends.server()
    with Sandbox.connect(url, token=token) as sandbox:
        port = urlsplit(sandbox.ports.url(7000, host_port=0)).port
        assert port is not None
        with socket.create_connection(("127.0.0.1", port), 30) as connection:
            assert connection.recv(1) == b""


def test_a_cancelled_task_stops_waiting() -> None:
    async def work() -> None:
        async with AsyncSandbox() as sandbox:
            waited: list[float] = []
            wait_port = LocalBackend.wait_port

            def counted(self: LocalBackend, port: int, timeout_seconds: float | None) -> bool:
                waited.append(time.monotonic())
                return wait_port(self, port, timeout_seconds)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(LocalBackend, "wait_port", counted)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(sandbox.ports.wait(7000, timeout_ms=None), 0.3)
                count = len(waited)
                await asyncio.sleep(2.5)
                assert len(waited) == count == 1

    asyncio.run(work())


def test_asynchronous_streams() -> None:
    async def work() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.files.write("echo.py", ECHO)
            await sandbox.commands.start("exec python3 echo.py")
            await sandbox.ports.wait(7000)
            async with await sandbox.ports.connect(7000) as stream:
                reading = asyncio.create_task(stream.read())
                await asyncio.sleep(0.1)
                assert not reading.done()  # and the event loop goes on
                await stream.write("x")
                assert await reading == b"x"
                await stream.finish()
                assert await stream.read() == b""

    asyncio.run(work())
