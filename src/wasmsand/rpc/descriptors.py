"""Sockets that a process passes to the process of its sandbox.

A confined process cannot open sockets. Its parent passes it connected ones, over a Unix socket
beside the pipes. Owns both ends: `DescriptorSender` in the parent, `DescriptorReceiver` in the
process of the sandbox. Rules: only the parent sends. A message names the sandbox and its port; a
number other than 0 means that a request (`ports.attach`) claims the socket by this number. Sockets
that nobody claims are bounded. Where the system cannot pass descriptors, there is no Unix socket,
and ports are unsupported.
"""

from __future__ import annotations

import array
import itertools
import os
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Final

_MESSAGE: Final = struct.Struct("<QHI")
"""Number, port and sandbox."""
_UNCLAIMED_MAX: Final = 64
_CLAIM_SECONDS: Final = 10.0
_SEND_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.01


Deliver = Callable[[int, int, socket.socket], None]
"""Gets the sandbox, its port, and a connection."""


def can_pass_descriptors() -> bool:
    """Whether this system can pass sockets to another process."""
    return os.name == "posix" and hasattr(socket.socket, "sendmsg")


class DescriptorSender:
    """The parent's end."""

    def __init__(self) -> None:
        self._mine, self._others = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._numbers = itertools.count(1)
        self._mine.setblocking(False)

    @property
    def descriptor(self) -> int:
        """The other end, which the process of the sandbox must inherit."""
        return self._others.fileno()

    def inherited(self) -> None:
        """The process has started: only that process keeps the other end."""
        self._others.close()

    def send(self, sandbox: int, port: int, passed: socket.socket) -> None:
        """Pass a connection for a port, without waiting. Raises `OSError`. The caller closes
        `passed`, because the other process has a copy."""
        self._send(0, port, passed, sandbox)

    def send_numbered(self, port: int, passed: socket.socket) -> int:
        """The same, for a request that claims the connection by the returned number; waits."""
        number = next(self._numbers)
        until = time.monotonic() + _SEND_SECONDS
        while True:
            try:
                self._send(number, port, passed)
                return number
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise
                time.sleep(_PAUSE_SECONDS)

    def _send(self, number: int, port: int, passed: socket.socket, sandbox: int = 0) -> None:
        rights = array.array("i", [passed.fileno()])
        message = _MESSAGE.pack(number, port, sandbox)
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        # A stream socket takes a message this short as a whole, or not at all.
        self._mine.sendmsg([message], control)

    def close(self) -> None:
        """Close both ends; idempotent."""
        self._mine.close()
        self._others.close()


class DescriptorReceiver:
    """The end in the process of the sandbox."""

    def __init__(self, descriptor: int) -> None:
        self._source = socket.socket(fileno=descriptor)
        self._changed = threading.Condition()
        # Guarded by the condition:
        self._unclaimed: dict[int, socket.socket] = {}
        self._started = False

    def start(self, deliver: Deliver) -> None:
        """Receive from now on, on a thread; idempotent. `deliver` takes connections that no request
        claims."""
        with self._changed:
            if self._started:
                return
            self._started = True
        threading.Thread(
            target=self._serve, args=(deliver,), name="wasmsand-descriptors", daemon=True
        ).start()

    def claim(self, number: int) -> socket.socket | None:
        """The connection with this number; None if it does not arrive."""
        with self._changed:
            self._changed.wait_for(lambda: number in self._unclaimed, _CLAIM_SECONDS)
            return self._unclaimed.pop(number, None)

    def close(self) -> None:
        """Receive no more. Only tests need it: the process of a sandbox receives until it ends."""
        self._source.close()

    def _serve(self, deliver: Deliver) -> None:
        while (found := self._next()) is not None:
            number, port, sandbox, passed = found
            if number == 0:
                deliver(sandbox, port, passed)
                continue
            with self._changed:
                self._unclaimed[number] = passed
                while len(self._unclaimed) > _UNCLAIMED_MAX:
                    self._unclaimed.pop(next(iter(self._unclaimed))).close()
                self._changed.notify_all()

    def _next(self) -> tuple[int, int, int, socket.socket] | None:
        """The next message that has a socket; None at the end."""
        space = socket.CMSG_LEN(array.array("i").itemsize)
        while True:
            data, passed = b"", None
            while len(data) < _MESSAGE.size:
                try:
                    piece, controls, _, _ = self._source.recvmsg(_MESSAGE.size - len(data), space)
                except OSError:
                    return None
                if not piece:
                    return None
                data += piece
                for level, kind, content in controls:
                    if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                        (descriptor,) = array.array("i", content)
                        passed = socket.socket(fileno=descriptor)
            number, port, sandbox = _MESSAGE.unpack(data)
            if passed is not None:  # none: this process has no free descriptor
                return number, port, sandbox, passed
