"""Both directions of a connection to a server in a sandbox, and a guest that closes it first."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import h11
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from wasmsand.http.proxying import ProxiedExchange, request_for
from wasmsand.http.relaying import GuestStream, until_all_end_or_one_fails

pytestmark = pytest.mark.no_userland
ANSWER = b"HTTP/1.1 413 Too Large\r\nContent-Length: 100000\r\n\r\n" + bytes(100_000)


async def _fail() -> None:
    raise ConnectionResetError


async def _wait(ended: list[str]) -> None:
    try:
        await asyncio.sleep(1000)
    finally:
        ended.append("cancelled")


def test_two_failures_at_once_are_both_seen() -> None:
    reported: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: reported.append(what))
        await until_all_end_or_one_fails(_fail(), _fail())

    asyncio.run(main())
    assert reported == []


def test_a_failure_cancels_the_other_direction() -> None:
    ended: list[str] = []
    asyncio.run(until_all_end_or_one_fails(_fail(), _wait(ended)))
    assert ended == ["cancelled"]


def with_guest(work: Callable[[GuestStream, socket.socket], Awaitable[None]]) -> None:
    """Do `work` with a stream, and the guest's end of it."""

    async def main() -> None:
        mine, guests = socket.socketpair()
        stream = GuestStream(mine, 60.0)
        try:
            await work(stream, guests)
        finally:
            stream.close()
            guests.close()

    asyncio.run(main())


async def rest_of(stream: GuestStream) -> bytes:
    got = b""
    while data := await stream.read():
        got += data
    return got


def test_what_a_guest_sent_before_it_closed_can_be_read_after_a_failed_write() -> None:
    async def work(stream: GuestStream, guest: socket.socket) -> None:
        guest.sendall(ANSWER)
        guest.close()
        with pytest.raises(BrokenPipeError):
            await stream.write(b"more")
        assert await rest_of(stream) == ANSWER

    with_guest(work)


def test_a_write_waits_until_the_guest_reads() -> None:
    async def work(stream: GuestStream, guest: socket.socket) -> None:
        writing = asyncio.create_task(stream.write(bytes(3_000_000)))
        got = 0
        while got < 3_000_000:
            got += len(await asyncio.to_thread(guest.recv, 1 << 20))
        await writing
        stream.finish()
        assert await asyncio.to_thread(guest.recv, 1) == b""

    with_guest(work)


@pytest.mark.parametrize("closes_before", ["head", "body"])
def test_the_response_of_a_guest_that_does_not_read_the_request_is_passed_on(
    closes_before: str,
) -> None:
    async def work(stream: GuestStream, guest: socket.socket) -> None:
        headers = [(b"host", b"x"), (b"content-length", b"8")]
        request = request_for("POST", b"/", headers, port=80, prefix=b"", scheme="http")
        exchange = ProxiedExchange(stream, request)

        def answer() -> None:
            guest.sendall(ANSWER)
            guest.close()

        if closes_before == "head":
            answer()
        await exchange.begin()
        if closes_before == "body":
            assert guest.recv(65536).startswith(b"POST / ")
            answer()
        messages: list[Message] = [
            {"type": "http.request", "body": b"body", "more_body": True},
            {"type": "http.request", "body": b"body", "more_body": False},
            {"type": "http.disconnect"},
        ]
        received = iter(messages)

        async def receive() -> Message:
            return next(received)

        with pytest.raises(ClientDisconnect):  # it leaves after it has sent everything
            await exchange.follow_client(receive)
        response = await exchange.response()
        assert isinstance(response, h11.Response)
        assert response.status_code == 413
        sent: list[bytes] = []

        async def send(message: Message) -> None:
            sent.append(message.get("body", b""))

        await exchange.download(response, send)
        assert b"".join(sent) == bytes(100_000)

    with_guest(work)
