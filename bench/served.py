"""A server for benchmarks, a client that costs little, and what processes use.

Owns `served`, `ServerUnderFaults`, `Driver` and `family`. Rules: the server is `wasmsand serve` in
processes of its own. The client is one thread with prepared requests, because its CPU time is taken
from the same cores.
"""

from __future__ import annotations

import http.client
import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


class Unanswered(Exception):
    """A request failed, or the server."""


@contextmanager
def served(*options: str) -> Iterator[tuple[str, int]]:
    """A running server: its URL and its process. `Unanswered` if it complains at its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "wasmsand", "serve", "--port", "0", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        if "serving " not in line:
            raise Unanswered(f"the server did not start: {line}{process.stderr.read()}")
        yield line.rpartition("serving ")[2].strip(), process.pid
    finally:
        process.terminate()
        _, complaints = process.communicate()
    if complaints or process.returncode:
        raise Unanswered(f"the server ended with {process.returncode}: {complaints}")


class ServerUnderFaults:
    """A running server that may complain: its workers are killed, and its disk is full."""

    def __init__(self, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "wasmsand", "serve", "--port", "0", *options],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        if "serving " not in line:
            raise Unanswered(f"the server did not start: {line}{self._process.stderr.read()}")
        self.url = line.rpartition("serving ")[2].strip()
        self.pid = self._process.pid
        self.complaints: deque[str] = deque(maxlen=1000)
        """The last lines that the server has printed."""
        self._reader = threading.Thread(target=self._read_complaints, daemon=True)
        self._reader.start()

    def _read_complaints(self) -> None:
        assert self._process.stderr is not None
        self.complaints.extend(self._process.stderr)

    def __enter__(self) -> ServerUnderFaults:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def workers(self) -> list[int]:
        """The pids of the workers, the oldest first."""
        found: list[int] = []
        for task in os.listdir(_PROC / str(self.pid) / "task"):
            children = (_PROC / str(self.pid) / "task" / task / "children").read_text()
            found += map(int, children.split())
        return sorted(found, key=_started)

    def wait_until_empty(self, seconds: float) -> None:
        """Wait until no sandbox is left. Raises `Unanswered`."""
        driver, until = Driver(self.url), time.monotonic() + seconds
        while True:
            answers: list[bytes] = []
            driver.drive([driver.request("GET", "/v1/sandboxes")], count=1, answers=answers)
            if not json.loads(answers[0])["sandboxes"]:
                return
            said = b""
            for each in json.loads(answers[0])["sandboxes"]:
                # Its client was refused when it killed the sandbox.
                parts = urlsplit(self.url)
                connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
                connection.request("DELETE", f"/v1/sandboxes/{each['id']}")
                said = connection.getresponse().read()
                connection.close()
            if time.monotonic() > until:
                raise Unanswered(f"sandboxes are left: {answers[0][:300]!r}: {said[:300]!r}")
            time.sleep(0.2)


def _started(pid: int) -> tuple[int, int]:
    """When a process was started, for sorting."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return int(fields[19]), pid
    except OSError:
        return 1 << 62, pid  # it has ended


@dataclass(frozen=True)
class Use:
    """What a process has used."""

    cpu_seconds: float
    anonymous_bytes: int
    """Memory that it shares with nobody."""


def family(pid: int) -> dict[int, Use]:
    """What a process and its descendants have used; the process is the first."""
    found: dict[int, Use] = {}
    waiting = [pid]
    while waiting:
        each = waiting.pop(0)
        try:
            fields = (_PROC / str(each) / "stat").read_text().rpartition(")")[2].split()
            status = (_PROC / str(each) / "status").read_text()
            for task in os.listdir(_PROC / str(each) / "task"):
                children = (_PROC / str(each) / "task" / task / "children").read_text()
                waiting += map(int, children.split())
        except OSError:
            continue  # it has ended
        held = 0
        for line in status.splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                held += int(line.split()[1]) * 1024
        found[each] = Use((int(fields[11]) + int(fields[12])) / _TICKS, held)
    return found


@dataclass
class _Exchange:
    connection: socket.socket
    request: bytes
    began: float = 0.0
    received: bytearray = field(default_factory=bytearray)
    wanted: int = -1


class Driver:
    """Sends requests over kept connections, one at a time on each."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 0)

    def request(self, method: str, target: str, value: object = None) -> bytes:
        """The bytes of a request."""
        body = b"" if value is None else json.dumps(value).encode()
        head = (
            f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def wait_for_workers(self, count: int) -> None:
        """Wait until all workers serve, so that sandboxes are spread over them."""
        metrics = self.request("GET", "/metrics")
        while count > 1:
            answers: list[bytes] = []
            self.drive([metrics], count=1, answers=answers)
            if b"\nwasmsand_workers %d\n" % count in answers[0].replace(b".0\n", b"\n"):
                return
            time.sleep(0.2)

    def create(self, count: int, at_once: int = 4) -> list[str]:
        """New sandboxes: their paths."""
        create = self.request("POST", "/v1/sandboxes", {})
        answers: list[bytes] = []
        self.drive([create] * at_once, count=count, answers=answers)
        return [f"/v1/sandboxes/{json.loads(each)['id']}" for each in answers]

    def drive(
        self,
        requests: Sequence[bytes],
        *,
        seconds: float | None = None,
        count: int | None = None,
        answers: list[bytes] | None = None,
    ) -> list[float]:
        """Repeat each request on a connection of its own, for some seconds or until `count` are
        answered. Returns the time of each. Raises `Unanswered`."""
        times: list[float] = []
        until = None if seconds is None else time.perf_counter() + seconds
        left = count if count is not None else -1
        running = 0
        with selectors.DefaultSelector() as selector:
            opened: list[socket.socket] = []
            try:
                for request in requests:
                    if left == 0:
                        break
                    left -= 1
                    connection = socket.create_connection(self._address, timeout=600)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    opened.append(connection)
                    exchange = _Exchange(connection, request)
                    selector.register(connection, selectors.EVENT_READ, exchange)
                    self._send(exchange)
                    running += 1
                while running:
                    for key, _ in selector.select(600):
                        exchange = key.data
                        body = self._receive(exchange)
                        if body is None:
                            continue
                        now = time.perf_counter()
                        times.append(now - exchange.began)
                        if answers is not None:
                            answers.append(body)
                        if left != 0 and (until is None or now < until):
                            left -= 1
                            self._send(exchange)
                        else:
                            running -= 1
            finally:
                for connection in opened:
                    connection.close()
        return times

    @staticmethod
    def _send(exchange: _Exchange) -> None:
        exchange.received.clear()
        exchange.wanted = -1
        exchange.began = time.perf_counter()
        exchange.connection.sendall(exchange.request)

    @staticmethod
    def _receive(exchange: _Exchange) -> bytes | None:
        data = exchange.connection.recv(1 << 16)
        if not data:
            raise Unanswered("the server closed the connection")
        exchange.received += data
        end = exchange.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        if exchange.wanted < 0:
            head = bytes(exchange.received[:end]).lower()
            if not head.startswith((b"http/1.1 200", b"http/1.1 201")):
                raise Unanswered(bytes(exchange.received[:2000]).decode("latin-1"))
            length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
            exchange.wanted = end + 4 + int(length)
        if len(exchange.received) < exchange.wanted:
            return None
        return bytes(exchange.received[end + 4 :])


def percentile(times: Sequence[float], share: float) -> float:
    """The time that `share` of the requests did not exceed, in milliseconds."""
    ordered = sorted(times)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
