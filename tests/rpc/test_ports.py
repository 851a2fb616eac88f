"""Servers in the sandbox, with JSON-RPC, and sockets passed to a confined process."""

from __future__ import annotations

import gc
import os
import resource
import socket
import threading
import urllib.request
from pathlib import Path

import pytest

from tests.rpc.peer import Peer, peer
from tests.waiting import wait_until
from wasmsand import PortError, Sandbox, SandboxClosedError, SandboxOptions
from wasmsand.rpc.backend import ProcessBackend
from wasmsand.rpc.descriptors import DescriptorReceiver, DescriptorSender

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


def test_a_server_in_the_sandbox_is_reached(server: Peer) -> None:
    assert server.call("ports.list") == {"ports": []}
    assert server.call("ports.wait", port=8000, timeoutMs=0) == {"listens": False}
    command = "echo hello > a; exec python3 -m http.server 8000 -b 127.0.0.1"
    pid = server.call("commands.start", command=command)["pid"]
    assert server.call("ports.wait", port=8000) == {"listens": True}
    found = {"port": 8000, "address": "127.0.0.1", "pid": pid}
    assert server.call("ports.list") == {"ports": [found]}
    url = server.call("ports.url", port=8000)["url"]
    with urllib.request.urlopen(f"{url}/a", timeout=30) as response:
        assert response.read() == b"hello\n"
    assert server.call("ports.close", port=8000) == {"closed": True}
    assert server.call("ports.close", port=8000) == {"closed": False}


def test_bad_ports_are_refused(server: Peer) -> None:
    for method in ("ports.wait", "ports.url", "ports.close"):
        error = server.error(method, port=0)
        assert (error["code"], error["message"]) == (
            -32602, "Invalid params: port must be from 1 to 65535, not 0",
        )  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = server.error("ports.url", port=8000, hostPort=taken.getsockname()[1])
    assert error["data"] == {"errno": "EADDRINUSE", "kind": "port", "port": 8000}


def test_only_the_parent_passes_sockets(server: Peer) -> None:
    for method, params in (("ports.receive", {}), ("ports.attach", {"port": 1, "socket": 1})):
        assert "only the process that started this one" in server.error(method, **params)["message"]


def test_a_confined_process_opens_no_port() -> None:
    with peer("--confine") as server:
        server.create()
        message = server.error("ports.url", port=8000)["message"]
        assert message == ("EIO: a confined process cannot open ports; start it without --confine")


def test_connections_of_a_confined_process_are_bounded_by_its_descriptors() -> None:
    """As many connections as the sandbox allows fit into the descriptors of its process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    backend = ProcessBackend(SandboxOptions())
    streams: list[socket.socket] = []
    try:
        with Sandbox.from_backend(backend) as sandbox:
            program = ECHO.replace("accept()", "accept(); keep.append(c); continue")
            sandbox.files.write("hold.py", "keep = []\n" + program.replace("100", "1000"))
            sandbox.commands.start("exec python3 hold.py")
            sandbox.ports.wait(7000)
            for _ in range(512):
                streams.append(backend.connect_port(7000, 10))
            with pytest.raises(PortError) as caught:
                backend.connect_port(7000, 10)
            assert caught.value.errno_name == "EMFILE"
            assert sandbox.commands.run("echo still").stdout == "still\n"
    finally:
        for stream in streams:
            stream.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_no_descriptor_stays_in_the_parent() -> None:
    def descriptors() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    def use() -> None:
        with Sandbox(isolation="process") as sandbox:
            sandbox.files.write("echo.py", ECHO)
            sandbox.commands.start("exec python3 echo.py")
            sandbox.ports.wait(7000)
            for _ in range(5):
                with sandbox.ports.connect(7000) as stream:
                    stream.write("x")
                    assert stream.read() == b"x"
            host, port = sandbox.ports.url(7000).removeprefix("http://").split(":")
            for _ in range(5):
                with socket.create_connection((host, int(port)), 30) as connection:
                    connection.sendall(b"x")
                    assert connection.recv(1) == b"x"

    use()
    before = descriptors()
    use()
    wait_until(lambda: descriptors() <= before)


def test_the_other_process_keeps_no_closed_connection() -> None:
    backend = ProcessBackend(SandboxOptions())
    with Sandbox.from_backend(backend) as sandbox:
        sandbox.files.write("echo.py", ECHO)
        sandbox.commands.start("exec python3 echo.py")
        sandbox.ports.wait(7000)

        def use() -> int:
            with sandbox.ports.connect(7000) as stream:
                stream.write("x")
                assert stream.read() == b"x"
            return len(list(Path(f"/proc/{backend.pid}/fd").iterdir()))

        before = use()
        wait_until(lambda: use() <= before + 1)
        for _ in range(20):
            use()
        wait_until(lambda: use() <= before + 1)


def test_a_killed_process_ends_its_connections() -> None:
    backend = ProcessBackend(SandboxOptions())
    with Sandbox.from_backend(backend) as sandbox:
        sandbox.files.write("echo.py", ECHO)
        sandbox.commands.start("exec python3 echo.py")
        sandbox.ports.wait(7000)
        url = sandbox.ports.url(7000)
        with sandbox.ports.connect(7000) as stream:
            stream.write("x")
            assert stream.read() == b"x"
            os.kill(backend.pid, 9)
            assert stream.read(timeout_ms=30_000) == b""
        with pytest.raises(SandboxClosedError):
            sandbox.ports.connect(7000)
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 30) as connection:
            assert connection.recv(1) == b""


def test_numbered_sockets_are_claimed_and_others_delivered() -> None:
    sender = DescriptorSender()
    receiver = DescriptorReceiver(os.dup(sender.descriptor))
    delivered: list[tuple[int, int, socket.socket]] = []
    receiver.start(lambda sandbox, port, passed: delivered.append((sandbox, port, passed)))
    pairs = [socket.socketpair() for _ in range(3)]
    numbers = [sender.send_numbered(8000 + n, pairs[n][1]) for n in range(2)]
    sender.send(7, 9000, pairs[2][1])
    claimed = [receiver.claim(number) for number in reversed(numbers)]
    wait_until(lambda: len(delivered) == 1)
    assert delivered[0][:2] == (7, 9000)
    for pair, passed in zip(pairs, [*reversed(claimed), delivered[0][2]], strict=True):
        assert passed is not None
        passed.sendall(b"here")
        assert pair[0].recv(4) == b"here"
        for each in (*pair, passed):
            each.close()
    sender.close()
    wait_until(lambda: not any(t.name == "wasmsand-descriptors" for t in threading.enumerate()))
    receiver.close()
