"""One process that several sandboxes share: a sandbox and its copies.

Owns `SharedProcess`, which counts the users of a connection, and `SandboxAddress`, which addresses
one of its sandboxes. Rules: the process ends with its last user. Users are sandboxes and snapshots;
a snapshot is in the memory of the process.
"""

from __future__ import annotations

import os
import threading
from _thread import start_new_thread

from wasmsand.rpc.client import ANSWER_SECONDS, PendingCall, RpcConnection
from wasmsand.rpc.descriptors import DescriptorSender
from wasmsand.rpc.params import Params
from wasmsand.rpc.protocol import RpcError
from wasmsand.sdk.errors import SandboxError

FIRST = 1
"""The number of the sandbox that a process begins with."""


class SharedProcess:
    """A connection and its users."""

    def __init__(self, connection: RpcConnection) -> None:
        self.connection = connection
        # Reentrant: garbage collection may call `leave` while this thread holds it.
        self._lock = threading.RLock()
        self._users = 0  # guarded by the lock

    def join(self) -> None:
        """Add a user, who must `leave`."""
        with self._lock:
            self._users += 1

    def leave(self, method: str, params: dict[str, object], *, wait: bool = True) -> None:
        """Remove a user. The last one ends the process. For others, `method` with `params` frees
        what the user had in the process; with `wait`, return after that."""
        with self._lock:
            self._users -= 1
            is_last = not self._users
        if is_last:
            self.connection.close(wait=wait)
        elif wait:
            try:
                self.connection.call(method, params)
            except (RpcError, SandboxError):
                pass  # the process has ended, and everything in it
        else:
            # Garbage collection may run in a thread that writes to the pipe.
            try:
                start_new_thread(_notify, (self.connection, method, params))
            except RuntimeError:
                pass  # the interpreter ends, and the process with it


def _notify(connection: RpcConnection, method: str, params: dict[str, object]) -> None:
    connection.notify(method, **params)


def leave_later(process: SharedProcess, method: str, params: dict[str, object], owner: int) -> None:
    """`SharedProcess.leave` for finalizers. Does nothing in a forked process."""
    if os.getpid() == owner:
        process.leave(method, params, wait=False)


class SandboxAddress:
    """One sandbox of a connection: its requests carry the sandbox's number."""

    def __init__(self, connection: RpcConnection, number: int = FIRST) -> None:
        self._connection = connection
        self.number = number

    @property
    def pid(self) -> int:
        """The pid of the process."""
        return self._connection.pid

    @property
    def descriptors(self) -> DescriptorSender | None:
        """Passes sockets to the process."""
        return self._connection.descriptors

    def begin(self, method: str, params: dict[str, object], seconds: float | None) -> PendingCall:
        """See `RpcConnection`."""
        return self._connection.begin(method, self._addressed(params), seconds)

    def call(
        self, method: str, params: dict[str, object], seconds: float | None = ANSWER_SECONDS
    ) -> Params:
        """See `RpcConnection`."""
        return self._connection.call(method, self._addressed(params), seconds)

    def notify(self, method: str, **params: object) -> None:
        """See `RpcConnection`."""
        self._connection.notify(method, **self._addressed(params))

    def _addressed(self, params: dict[str, object]) -> dict[str, object]:
        return params if self.number == FIRST else {**params, "sandbox": self.number}
