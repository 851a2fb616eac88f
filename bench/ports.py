"""Servers in the sandbox, reached by their user: `python -m bench.ports`.

The same two Python programs serve natively, in a sandbox of this process, in one of a separate
process, and on a server (`ports.connect` through `wasmsand serve`). Prints the median time of an
exchange of one byte, the time of a new connection with one exchange, and the speed of a download.
Rules: every answer is checked; the native side runs the Python of this process.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from wasmsand import Sandbox
from wasmsand.http.serve import running_server
from wasmsand.http.settings import Settings

Connect = Callable[[int], socket.socket]
ECHO: Final = """
import socket, threading
def serve(c):
    while data := c.recv(65536): c.sendall(data)
    c.close()
l = socket.create_server(("127.0.0.1", 7000), backlog=100)
while True:
    c, _ = l.accept()
    threading.Thread(target=serve, args=(c,)).start()
"""
DOWNLOAD: Final = """
import socket
l = socket.create_server(("127.0.0.1", 7001))
data = bytes(1 << 18)
while True:
    c, _ = l.accept()
    for _ in range(SIZE): c.sendall(data)
    c.close()
"""
_PIECE: Final = 1 << 18


def _exchange(connection: socket.socket) -> None:
    connection.sendall(b"x")
    assert connection.recv(1) == b"x"


def measure(connect: Connect, pieces: int, count: int) -> tuple[float, float, float]:
    """Microseconds of an exchange, microseconds of a connection, megabytes per second."""
    times = []
    with connect(7000) as connection:
        if connection.family == socket.AF_INET:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            began = time.perf_counter()
            _exchange(connection)
            times.append(time.perf_counter() - began)
    began = time.perf_counter()
    for _ in range(count // 10):
        with connect(7000) as connection:
            _exchange(connection)
    each = (time.perf_counter() - began) / (count // 10)
    began, got = time.perf_counter(), 0
    with connect(7001) as connection:
        while data := connection.recv(1 << 20):
            got += len(data)
    assert got == pieces * _PIECE, got
    return statistics.median(times) * 1e6, each * 1e6, got / 1e6 / (time.perf_counter() - began)


@contextmanager
def native(pieces: int) -> Iterator[Connect]:
    """The servers outside of a sandbox."""
    programs = [ECHO, DOWNLOAD.replace("SIZE", str(pieces))]
    started = [subprocess.Popen([sys.executable, "-c", program]) for program in programs]

    def connect(port: int) -> socket.socket:
        for _ in range(100):
            try:
                return socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                time.sleep(0.05)
        raise AssertionError("the native server does not listen")

    try:
        connect(7000).close()
        yield connect
    finally:
        for process in started:
            process.kill()
            process.wait()


def _serve(sandbox: Sandbox, pieces: int) -> None:
    for name, program in (("echo", ECHO), ("download", DOWNLOAD)):
        sandbox.files.write(f"{name}.py", program.replace("SIZE", str(pieces)))
        sandbox.commands.start(["python3", f"{name}.py"], timeout_ms=None)
    sandbox.ports.wait(7000)
    sandbox.ports.wait(7001)


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=256, help="size of the download")
    parser.add_argument("--count", type=int, default=2000, help="number of exchanges")
    arguments = parser.parse_args()
    pieces = max(1, arguments.megabytes * 1_000_000 // _PIECE)
    table = Table("servers", "one byte, us", "new connection, us", "download, MB/s")

    def row(name: str, connect: Connect) -> None:
        exchange, each, speed = measure(connect, pieces, arguments.count)
        table.add_row(name, f"{exchange:.0f}", f"{each:.0f}", f"{speed:.0f}")

    with native(pieces) as connect:
        row("native", connect)
    for isolation in ("none", "process"):
        with Sandbox(isolation=isolation) as sandbox:
            _serve(sandbox, pieces)

            def forwarded(port: int, sandbox: Sandbox = sandbox) -> socket.socket:
                parts = urlsplit(sandbox.ports.url(port))
                return socket.create_connection((parts.hostname or "", parts.port or 0))

            row(f'ports.url, isolation="{isolation}"', forwarded)
    with (
        running_server(Settings(port=0)) as url,
        Sandbox.connect(url) as sandbox,
    ):
        _serve(sandbox, pieces)

        def tunnelled(port: int, sandbox: Sandbox = sandbox) -> socket.socket:
            connection = sandbox.ports.connect(port)._connection
            connection.setblocking(True)
            return connection

        row("ports.connect, server in this process", tunnelled)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
