"""What hostile clients do to a server: the table `CLIENT_ATTACKS`.

Rules: each gets the server's address and a token that it may use, takes a few seconds at most, and
closes its connections; the server may refuse anything.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

Address = tuple[str, int]
_CONNECTIONS: Final = 1_100
_SECONDS: Final = 2.0
_TIMEOUT: Final = 5.0


def _connect(address: Address) -> socket.socket:
    return socket.create_connection(address, timeout=_TIMEOUT)


def _many(address: Address, beginning: bytes) -> None:
    """Open many connections that send a little and then nothing."""
    with ExitStack() as held:
        for _ in range(_CONNECTIONS):
            try:
                connection = held.enter_context(_connect(address))
                connection.sendall(beginning)
            except OSError:
                break
        time.sleep(_SECONDS)


def half_sent_headers(address: Address, token: str) -> None:
    """Send headers without an end, and without a token."""
    _many(address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ")


def silent_connections(address: Address, token: str) -> None:
    """Open connections that send nothing."""
    _many(address, b"")


def slow_bodies(address: Address, token: str) -> None:
    """Send only the first byte of bodies."""
    _many(
        address,
        b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %s\r\nContent-Length: 1000000\r\n\r\n{" % token.encode(),
    )


def large_headers(address: Address, token: str) -> None:
    """Send a header that does not end."""
    try:
        with _connect(address) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            for _ in range(2_000):
                connection.sendall(b"X-A: " + b"a" * 1_000 + b"\r\n")
    except OSError:
        pass


def endless_chunks(address: Address, token: str) -> None:
    """Send a chunked body that does not end."""
    head = (
        f"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    ending = time.monotonic() + _SECONDS
    try:
        with _connect(address) as connection:
            connection.sendall(head.encode())
            while time.monotonic() < ending:
                connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
    except OSError:
        pass


def wrong_tokens(address: Address, token: str) -> None:
    """Guess tokens."""
    ending = time.monotonic() + _SECONDS
    while time.monotonic() < ending:
        try:
            with _connect(address) as connection:
                connection.sendall(
                    b"GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer guess\r\n\r\n"
                )
                connection.recv(1000)
        except OSError:
            pass


def unread_answers(address: Address, token: str) -> None:
    """Request output and never read it."""
    body = json.dumps({"command": "yes", "timeout_ms": 1500}).encode()
    sandbox = _post(address, token, "/v1/sandboxes", b"{}")
    found = json.loads(sandbox or b"{}").get("id", "none")
    head = (
        f"POST /v1/sandboxes/{found}/run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        "Accept: text/event-stream\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with ExitStack() as held:
        for _ in range(4):
            try:
                connection = held.enter_context(_connect(address))
                connection.sendall(head.encode() + body)
            except OSError:
                break
        time.sleep(_SECONDS)
    _request(address, token, "DELETE", f"/v1/sandboxes/{found}")


def many_sandboxes(address: Address, token: str) -> None:
    """Create as many sandboxes as the token's quota allows."""
    made = []
    for _ in range(80):
        answer = json.loads(_post(address, token, "/v1/sandboxes", b"{}") or b"{}")
        if "id" not in answer:
            break
        made.append(answer["id"])
    for name in made:
        _request(address, token, "DELETE", f"/v1/sandboxes/{name}")


def deep_json(address: Address, token: str) -> None:
    """Send deeply nested JSON."""
    _post(address, token, "/v1/sandboxes", b'{"env":' + b"[" * 1_000_000)


def _post(address: Address, token: str, target: str, body: bytes) -> bytes:
    return _request(address, token, "POST", target, body)


def _request(address: Address, token: str, method: str, target: str, body: bytes = b"") -> bytes:
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    received = b""
    try:
        with _connect(address) as connection:
            connection.sendall(head.encode() + body)
            while piece := connection.recv(65536):
                received += piece
    except OSError:
        pass
    return received.partition(b"\r\n\r\n")[2]


CLIENT_ATTACKS: Final[dict[str, Callable[[Address, str], None]]] = {
    attack.__name__.replace("_", "-"): attack
    for attack in (
        half_sent_headers,
        silent_connections,
        slow_bodies,
        large_headers,
        endless_chunks,
        wrong_tokens,
        unread_answers,
        many_sandboxes,
        deep_json,
    )
}
