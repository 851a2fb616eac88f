"""The network beside the native one: `python -m bench.network`.

Measures a large download, small requests, many connections at once, many sandboxes at once, and
the memory over many requests. Rules: the server is a native process on loopback, the same for both
sides; the native side is the curl of this machine and the Python that runs this command; both sides
alternate, and the table shows medians. `--requests` is the number of requests over which memory is
watched; with `--inspected` the bridge sees each request.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.queues import Queue
from pathlib import Path

from rich.console import Console
from rich.table import Table

from wasmsand import Network, Sandbox

GIGABYTE = 1_000_000_000
NAME = "server.test"
_REQUEST = b"GET /%d HTTP/1.1\r\nHost: server.test\r\n\r\n"
_CLIENT = """
import socket, statistics, sys, time
host, port, count, keep = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "keep"
times, stream = [], None
for _ in range(count):
    began = time.perf_counter()
    if stream is None:
        stream = socket.create_connection((host, port))
    stream.sendall(b"GET /2 HTTP/1.1\\r\\nHost: server.test\\r\\n\\r\\n")
    assert stream.recv(4096).endswith(b"xx")
    if not keep:
        stream.close(); stream = None
    times.append(time.perf_counter() - began)
print(statistics.median(times) * 1e3)
"""
_MANY = """
import socket, sys, time
count, began = int(sys.argv[1]), time.perf_counter()
streams = [socket.create_connection(("server.test", 80)) for _ in range(count)]
for stream in streams: stream.sendall(b"GET /2 HTTP/1.1\\r\\nHost: server.test\\r\\n\\r\\n")
assert all(stream.recv(4096).endswith(b"xx") for stream in streams)
print(time.perf_counter() - began)
"""


def _serve(connection: socket.socket) -> None:
    """Answer requests for a number of bytes, until the client ends."""
    piece = b"x" * (1 << 18)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        while True:
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                data = connection.recv(65536)
                if not data:
                    return
                request += data
            count = int(request.split(b" ", 2)[1][1:])
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % count
            if count <= len(piece):
                connection.sendall(head + piece[:count])
                continue
            connection.sendall(head)
            while count:
                count -= connection.send(piece[:count])


def _server(ports: Queue[int]) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    ports.put(listener.getsockname()[1])
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection,), daemon=True).start()


@contextmanager
def server() -> Iterator[int]:
    """A server in a process of its own; its port."""
    ports: Queue[int] = multiprocessing.Queue()
    process = multiprocessing.Process(target=_server, args=(ports,), daemon=True)
    process.start()
    try:
        yield ports.get()
    finally:
        process.kill()
        process.join()


Reach = Callable[..., Sandbox]
"""Makes a sandbox with a budget that reaches the server."""


def reaching(port: int, rule: str, **budget: int) -> Sandbox:
    """A sandbox that reaches the server."""
    network = Network(allow=[rule], hosts={NAME: f"127.0.0.1:{port}"}, **budget)  # type: ignore[arg-type]
    return Sandbox(network=network, timeout_ms=600_000, max_open_files=4096)


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _run(sandbox: Sandbox, command: str) -> str:
    result = sandbox.commands.run(command)
    if result.exit_code:
        raise RuntimeError(f"{command[:60]}: {result.stderr}")
    return result.stdout


def _python(sandbox: Sandbox, program: str, *words: object) -> float:
    sandbox.files.write("/tmp/client.py", program)
    return float(_run(sandbox, f"python3 /tmp/client.py {' '.join(map(str, words))}"))


def downloads(sandbox: Sandbox, port: int, rounds: int) -> tuple[float, float]:
    """Seconds for a gigabyte with curl: native, and in the sandbox."""
    native = ["curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{port}/{GIGABYTE}"]
    inside = f"curl -s -o /dev/null http://{NAME}/{GIGABYTE}"
    pairs = [
        (
            _seconds(lambda: subprocess.run(native, check=True)),
            _seconds(lambda: _run(sandbox, inside)),
        )
        for _ in range(rounds)
    ]
    return statistics.median(pair[0] for pair in pairs), statistics.median(
        pair[1] for pair in pairs
    )


def small_requests(sandbox: Sandbox, port: int, keep: bool) -> tuple[float, float]:
    """Milliseconds of a small request with Python: native, and in the sandbox."""
    how = "keep" if keep else "close"
    command = [sys.executable, "-c", _CLIENT, "127.0.0.1", str(port), "300", how]
    native = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return native, _python(sandbox, _CLIENT, NAME, 80, 300, how)


def many_connections(reach: Reach, count: int) -> float:
    """Seconds for `count` connections at once through one sandbox."""
    with reach(connections_at_once=count) as sandbox:
        return _python(sandbox, _MANY, count)


def many_sandboxes(reach: Reach, count: int, each: int) -> float:
    """Seconds for `count` sandboxes with `each` connections at once."""
    with ExitStack() as open_ones:
        sandboxes = [open_ones.enter_context(reach()) for _ in range(count)]
        threads = [
            threading.Thread(target=_python, args=(sandbox, _MANY, each)) for sandbox in sandboxes
        ]

        def all_at_once() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return _seconds(all_at_once)


def memory_over(reach: Reach, requests: int, console: Console) -> tuple[int, int]:
    """Resident megabytes of this process after a tenth of the requests, and after all."""
    with reach(connections=requests + 10, requests=requests + 10) as sandbox:
        step = max(1, requests // 10)
        seen = []
        for number in range(10):
            _python(sandbox, _CLIENT, NAME, 80, step, "close")
            seen.append(_resident())
            console.print(f"{(number + 1) * step} requests: {seen[-1]} MB")
        return seen[0], seen[-1]


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 // 1_000_000


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds of downloads")
    parser.add_argument(
        "--requests", type=int, default=100_000, help="requests to watch memory over"
    )
    parser.add_argument("--inspected", action="store_true", help="with a rule on requests")
    options = parser.parse_args(argv)
    console = Console()
    table = Table("what", "native", "sandbox", "ratio")
    rule = f"GET {NAME}" if options.inspected else NAME
    with server() as port, reaching(port, rule) as sandbox:
        reach = partial(reaching, port, rule)
        _run(sandbox, f"curl -s -o /dev/null http://{NAME}/2")
        if shutil.which("curl"):
            native, inside = downloads(sandbox, port, options.rounds)
            table.add_row(
                "curl, 1 GB",
                f"{native:.2f} s",
                f"{inside:.2f} s",
                f"{native / inside:.2f}x the speed",
            )
        for keep, name in ((False, "a request, new connection"), (True, "a request, kept alive")):
            native, inside = small_requests(sandbox, port, keep)
            ratio = f"{inside / native:.1f}x, +{inside - native:.2f} ms"
            table.add_row(name, f"{native:.3f} ms", f"{inside:.3f} ms", ratio)
        table.add_row("1,000 connections at once", "", f"{many_connections(reach, 1000):.2f} s", "")
        table.add_row("100 sandboxes, 20 each", "", f"{many_sandboxes(reach, 100, 20):.2f} s", "")
        if options.requests:
            first, last = memory_over(reach, options.requests, console)
            table.add_row(
                f"memory over {options.requests} requests", "", f"{first} to {last} MB", ""
            )
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
