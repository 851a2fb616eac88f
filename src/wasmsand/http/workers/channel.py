"""Calls of a worker to the front process, one at a time, with descriptors.

Owns both ends: `Caller` in the worker, `Calls` in the front process. A message is a length and
msgpack; a descriptor comes with its first byte. Rules: both ends block, so they are used on
threads. An exception of the front process that has an HTTP form is raised again in the worker. A
call that a worker made before its death is either done when `Calls.end` returns, or never.
"""

from __future__ import annotations

import logging
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, Final

import msgspec

from wasmsand.http.failures import ApiFailure, failure_of
from wasmsand.sdk.errors import StoreError

_LENGTH: Final = struct.Struct("<I")
MESSAGE_MAX: Final = 256 << 20
"""The largest message: a record contains output that a client has not asked for."""

Handler = Callable[[str, dict[str, Any]], tuple[Any, int | None]]
"""Gets the name of a call and its values; returns a value and perhaps a descriptor, which the
caller of the handler closes."""


log = logging.getLogger("wasmsand.http")


class ChannelClosed(Exception):
    """The other process has ended."""


def send_message(channel: socket.socket, value: object, descriptor: int | None = None) -> None:
    """Send a message. Raises `OSError`."""
    payload = msgspec.msgpack.encode(value)
    data = _LENGTH.pack(len(payload)) + payload
    sent = 0 if descriptor is None else socket.send_fds(channel, [data], [descriptor])
    if sent < len(data):
        channel.sendall(memoryview(data)[sent:])


def receive_message(channel: socket.socket) -> tuple[Any, int | None]:
    """The next message. Raises `ChannelClosed`, `OSError`."""
    head, descriptors, _, _ = socket.recv_fds(channel, _LENGTH.size, 1)
    descriptor = descriptors[0] if descriptors else None
    try:
        head += _received(channel, _LENGTH.size - len(head)) if head else b""
        if len(head) < _LENGTH.size:
            raise ChannelClosed
        (length,) = _LENGTH.unpack(head)
        if length > MESSAGE_MAX:
            raise ChannelClosed
        return msgspec.msgpack.decode(_received(channel, length)), descriptor
    except BaseException:
        if descriptor is not None:
            os.close(descriptor)
        raise


def _received(channel: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = channel.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise ChannelClosed
        data += piece
    return bytes(data)


class Caller:
    """A worker's end. Used from any thread."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lock = threading.Lock()

    def call(self, name: str, **values: object) -> Any:
        """Call the front process. Raises what it raises, and `StoreError` if it has ended."""
        value, descriptor = self._exchange(name, values)
        if descriptor is not None:
            os.close(descriptor)
        return value

    def call_for_descriptor(self, name: str, **values: object) -> tuple[Any, int]:
        """The same, for an answer with a descriptor, which the caller closes."""
        value, descriptor = self._exchange(name, values)
        if descriptor is None:
            raise StoreError("the server's front process sent no file")
        return value, descriptor

    def _exchange(self, name: str, values: dict[str, object]) -> tuple[Any, int | None]:
        try:
            with self._lock:
                send_message(self._channel, [name, values])
                (kind, value), descriptor = receive_message(self._channel)
        except (ChannelClosed, OSError):
            raise StoreError("the server's front process has ended") from None
        if kind == "failure":
            raise ApiFailure(
                value["status"],
                value["code"],
                value["message"],
                retry_after=value["retry_after"],
            )
        if kind == "store":
            raise StoreError(value)
        return value, descriptor


class Calls:
    """The calls of one worker, which a thread of its own answers."""

    def __init__(self, channel: socket.socket, handle: Handler) -> None:
        """Owns `channel`."""
        self._channel = channel
        self._is_over = False
        self._thread = threading.Thread(
            target=lambda: answer_calls(channel, handle, lambda: self._is_over),
            name="wasmsand-worker",
            daemon=True,
        )
        self._thread.start()

    def end(self) -> None:
        """The worker has ended: answer no more of its calls. Returns when the one that is being
        answered is done."""
        self._is_over = True
        try:
            # Not only the worker may have the other end: it may have passed it on.
            self._channel.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed already
        self._thread.join()


def answer_calls(
    channel: socket.socket, handle: Handler, is_over: Callable[[], bool] = lambda: False
) -> None:
    """Answer the calls of a worker until it ends, or `is_over`. Run it on a thread."""
    with channel:
        while True:
            try:
                (name, values), stray = receive_message(channel)
                if stray is not None:
                    os.close(stray)
                if is_over():
                    return
                answer, descriptor = _answered(handle, str(name), dict(values))
                try:
                    send_message(channel, answer, descriptor)
                finally:
                    if descriptor is not None:
                        os.close(descriptor)
            except (ChannelClosed, OSError):
                return
            except Exception as error:  # the worker misbehaves: it gets no more answers
                log.error("bug in a call of a worker", exc_info=error)
                return


def _answered(
    handle: Handler, name: str, values: dict[str, Any]
) -> tuple[list[object], int | None]:
    try:
        value, descriptor = handle(name, values)
        return ["value", value], descriptor
    except StoreError as error:
        return ["store", str(error)], None
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        fields = {
            "status": failure.status,
            "code": failure.code,
            "message": failure.message,
            "retry_after": failure.retry_after,
        }
        return ["failure", fields], None
