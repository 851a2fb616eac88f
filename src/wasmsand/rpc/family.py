"""The sandboxes of one client: the first one and its copies, and their snapshots.

Owns the numbers of sandboxes, and the names of snapshots. Rules: the first sandbox has number 1,
and a request without a number is for it. Copies get the next numbers; a number is never used again.
A snapshot belongs to the client, not to a sandbox. Both are bounded. All sandboxes share the
process: a confined process may use the memory of the sandboxes that it has now, and never more than
`_MEMORY_SHARES` of them need.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wasmsand.confinement import Barriers, limit_memory
from wasmsand.rpc.descriptors import DescriptorReceiver
from wasmsand.rpc.protocol import RequestId, RpcError
from wasmsand.rpc.session import RpcSession, sandbox_error
from wasmsand.sdk.backend import Cancellation
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.state import Snapshot

FIRST: Final = 1
SANDBOXES_MAX: Final = 64
SNAPSHOTS_MAX: Final = 256
_MEMORY_SHARES: Final = 16


@dataclass(frozen=True, slots=True)
class KeptSnapshot:
    """A snapshot of a client."""

    snapshot: Snapshot
    numbers: Mapping[str, int]
    """The numbers of its shells and interpreters, by their identity."""


class Family:
    """The sandboxes of one client, in one process."""

    def __init__(
        self,
        notify: Callable[[str, dict[str, object]], None],
        barriers: Barriers | None = None,
        descriptors: DescriptorReceiver | None = None,
    ) -> None:
        """`notify` sends a notification to the client; `barriers` confine this process;
        `descriptors` receives sockets from the client."""
        self._notify = notify
        self.barriers = barriers or Barriers()
        self.descriptors = descriptors
        self.ended = False
        """Whether the client has called `kill` for all sandboxes."""
        self.cancellations: dict[RequestId, Cancellation] = {}
        """The cancellations of waiting requests, by request id."""
        self.after_response: list[Callable[[], None]] = []
        """Functions to call when the response to the current request has been sent."""
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._snapshots: dict[str, KeptSnapshot] = {}
        self._last = FIRST
        self.first = RpcSession(self, FIRST, notify)
        self._sessions = {FIRST: self.first}

    def find(self, number: int) -> RpcSession:
        """The sandbox with this number. Raises `RpcError`."""
        with self._lock:
            session = self._sessions.get(number)
        if session is None:
            raise sandbox_error("ENODEV", f"no sandbox {number}: it was killed, or never existed")
        return session

    def add(self, make: Callable[[], Sandbox]) -> RpcSession:
        """A copy, as a sandbox with a number of its own. Raises `RpcError`."""
        with self._lock:
            if self.ended:
                raise sandbox_error("ENODEV", "the sandbox was killed")
            if len(self._sessions) >= SANDBOXES_MAX:
                raise sandbox_error(
                    "EMFILE", f"there are {SANDBOXES_MAX} sandboxes already; kill one"
                )
            self._last += 1
            number = self._last

            def notify(method: str, params: dict[str, object]) -> None:
                self._notify(method, {"sandbox": number, **params})

            session = self._sessions[number] = RpcSession(self, number, notify)
        try:
            sandbox = make()
            self.allow_memory(sandbox.options)
            session.use(sandbox)
        except BaseException:
            self.forget(number)
            raise
        return session

    def forget(self, number: int) -> None:
        """A copy has ended. The first sandbox keeps its number."""
        with self._lock:
            if number != FIRST:
                self._sessions.pop(number, None)

    def allow_memory(self, options: SandboxOptions) -> None:
        """Limit the memory of a confined process to what its sandboxes, alike, can need."""
        if self.barriers.names:
            with self._lock:
                count = len(self._sessions)
            limit_memory(
                guests=options.memory_limit_bytes,
                files=options.fs_limit_bytes,
                output=options.max_output_bytes,
                processes=options.max_processes,
                sandboxes=min(count, _MEMORY_SHARES),
                most_sandboxes=_MEMORY_SHARES,
            )

    def keep(self, kept: KeptSnapshot) -> None:
        """Keep a snapshot. Raises `RpcError`."""
        with self._lock:
            if len(self._snapshots) >= SNAPSHOTS_MAX:
                raise sandbox_error(
                    "EMFILE", f"there are {SNAPSHOTS_MAX} snapshots already; delete one"
                )
            self._snapshots[kept.snapshot.id] = kept

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first."""
        with self._lock:
            return [kept.snapshot for kept in self._snapshots.values()]

    def snapshot(self, name: str) -> KeptSnapshot:
        """The newest snapshot with this name or ID. Raises `RpcError`."""
        with self._lock:
            for kept in reversed(self._snapshots.values()):
                if name in (kept.snapshot.id, kept.snapshot.name):
                    return kept
        raise sandbox_error("ENOENT", f"no snapshot has the name {name[:80]!r}", kind="state")

    def delete(self, name: str) -> None:
        """Forget a snapshot. Raises `RpcError`."""
        kept = self.snapshot(name)
        with self._lock:
            self._snapshots.pop(kept.snapshot.id, None)

    def deliver(self, number: int, port: int, passed: socket.socket) -> None:
        """A connection for a port of a sandbox, which its user has opened."""
        with self._lock:
            session = self._sessions.get(number)
        try:
            backend = None if session is None else session.backend
        except RpcError:
            backend = None  # the sandbox was killed
        if isinstance(backend, LocalBackend):
            backend.attach_port_soon(port, passed)
        else:
            passed.close()

    def end(self) -> None:
        """Destroy all sandboxes and snapshots. Requests that wait for them end."""
        with self._lock:
            self.ended = True
            sessions = list(self._sessions.values())
            self._snapshots.clear()
        for session in sessions:
            session.end()
