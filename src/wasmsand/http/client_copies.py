"""`HttpCopies`: copies of a sandbox on a server.

A part of `HttpBackend`. Rules: a session of the SDK is a started command on the server; the client
captures it there before the server copies the sandbox. Restoring keeps the sandbox's id. A snapshot
is deleted on the server when nobody refers to it here. Without a store, it ends with its sandbox.
"""

from __future__ import annotations

import os
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import quote

from wasmsand.http.answers import object_of
from wasmsand.http.process import HttpProcess
from wasmsand.http.reaching import transport_to
from wasmsand.http.transport import Transport
from wasmsand.sdk.errors import SandboxError

if TYPE_CHECKING:
    from wasmsand.http.backend import HttpBackend
    from wasmsand.sdk.backend import BackendProcess
    from wasmsand.sdk.options import SandboxOptions
    from wasmsand.sdk.state import SandboxState

_SAVE_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class CapturedCommand:
    """A captured program, which the server keeps until a snapshot contains it."""

    id: str


class ServerSnapshot:
    """A snapshot on the server, until nobody refers to it."""

    def __init__(self, transport: Transport, made: dict[str, Any], backend: HttpCopies) -> None:
        """`made` is the server's description of it."""
        self.id = str(made["id"])
        self.size = int(made["size_bytes"])
        self.variables = dict(backend.variables)
        self.cwd = backend.cwd
        self.path = f"/v1/snapshots/{self.id}"  # it may outlive its sandbox
        finalizer = weakref.finalize(self, _delete_later, transport, self.path, os.getpid())
        finalizer.atexit = False


class HttpCopies:
    """Copies of a sandbox on a server."""

    variables: dict[str, str]
    _told: dict[str, str]
    """The variables that the server has."""
    cwd: str
    _transport: Transport
    _path: str
    _adopted: dict[str, tuple[str, int, int]]
    """Id, pid and last batch of commands that came with a snapshot or exist already, by their ids
    in the original."""
    is_found: bool

    def capture(self, process: BackendProcess) -> object:
        """See `Backend`."""
        assert isinstance(process, HttpProcess)
        self._transport.ask("POST", f"{process.path}/capture", value={})
        return CapturedCommand(process.id)

    def capture_at_fork(self, process: BackendProcess) -> Callable[[], object]:
        """See `Backend`."""
        assert isinstance(process, HttpProcess)
        path, identity = process.path, process.id
        self._transport.ask("POST", f"{path}/capture", value={"at_fork": True})

        def take() -> object:
            self._transport.ask("POST", f"{path}/captured")
            return CapturedCommand(identity)

        return take

    def take_state(self, captured: Sequence[object] = ()) -> object:
        """See `Backend`."""
        self._tell_variables()
        commands = [item.id for item in captured if isinstance(item, CapturedCommand)]
        # The SDK has refused what runs besides.
        wanted = {"commands": commands, "running": "drop"}
        made = self._transport.ask("POST", f"{self._path}/snapshots", value=wanted)
        return ServerSnapshot(self._transport, object_of(made), self)

    def open_state(self, state: object, options: SandboxOptions) -> HttpBackend:
        """See `Backend`."""
        assert isinstance(state, ServerSnapshot)
        transport = self._transport.another()
        try:
            made = transport.ask("POST", "/v1/sandboxes", value={"snapshot": state.id})
            return _copy(transport, made, state, options)
        except BaseException:
            transport.close()
            raise

    def restore_state(self, state: object, options: SandboxOptions) -> HttpBackend:
        """See `Backend`. The sandbox on the server remains; only this object is replaced."""
        assert isinstance(state, ServerSnapshot)
        wanted = {"snapshot": state.id}
        made = self._transport.ask("POST", f"{self._path}/restore", value=wanted)
        self._hand_over()
        return _copy(self._transport, made, state, options, is_found=self.is_found)

    def _hand_over(self) -> None:
        """Another object has the sandbox from now on."""
        raise NotImplementedError

    def _tell_variables(self) -> None:
        """Tell the server the variables that the user has changed."""
        raise NotImplementedError

    def adopt(self, captured: object, *, is_last: bool) -> HttpProcess:
        """See `Backend`."""
        assert isinstance(captured, CapturedCommand)
        identity, pid, batch = self._adopted[captured.id]
        path = f"{self._path}/commands/{identity}"
        return HttpProcess(self._transport, path, pid, is_kept=True, batch=batch)

    def adopt_later(self, commands: dict[str, tuple[str, int, int]]) -> None:
        """Commands that `adopt` will be called for."""
        self._adopted = commands

    def save_state(self, state: SandboxState, name: str | None, stream: IO[bytes]) -> None:
        """See `Backend`."""
        snapshot = state.machine
        assert isinstance(snapshot, ServerSnapshot)
        wanted = {
            "sessions": [
                {"was": saved.captured.id, "kind": saved.kind, "identity": saved.identity}
                for saved in state.sessions
                if isinstance(saved.captured, CapturedCommand)
            ],
            "variables": snapshot.variables,
            "cwd": snapshot.cwd,
            "timeout_ms": state.options.timeout_ms,
        }
        transport = self._transport.another()  # the sandbox may have been killed here
        try:
            stream.write(
                transport.ask("POST", f"{snapshot.path}/save", value=wanted, seconds=_SAVE_SECONDS)
            )
        finally:
            transport.close()

    def size_of(self, copied: object) -> int:
        """See `Backend`. The size of a state contains those of its programs."""
        return copied.size if isinstance(copied, ServerSnapshot) else 0


class SandboxCopies:
    """The requests that copy one sandbox of a server, for clients that do not use its sessions."""

    def __init__(self, url: str, token: str | None, identity: str) -> None:
        self._transport = transport_to(url, token, identity)
        self._path = f"/v1/sandboxes/{quote(identity, safe='')}"

    def snapshots(self) -> list[dict[str, Any]]:
        """All snapshots, as the server describes them."""
        return list(self._ask("GET", f"{self._path}/snapshots")["snapshots"])

    def snapshot(self, name: str | None, running: str) -> dict[str, Any]:
        """Take a snapshot."""
        wanted = {"name": name, "running": running}
        return self._ask("POST", f"{self._path}/snapshots", wanted)

    def delete(self, snapshot: str) -> None:
        """Delete a snapshot, by name or id."""
        self._ask("DELETE", f"{self._path}/snapshots/{quote(snapshot, safe='')}")

    def restore(self, snapshot: str) -> None:
        """Restore the sandbox."""
        self._ask("POST", f"{self._path}/restore", {"snapshot": snapshot})

    def fork(self, count: int, running: str) -> list[dict[str, Any]]:
        """Copy the sandbox."""
        wanted = {"count": count, "running": running}
        return list(self._ask("POST", f"{self._path}/fork", wanted)["sandboxes"])

    def open(self, snapshot: str) -> dict[str, Any]:
        """Create a sandbox from a snapshot."""
        return self._ask("POST", "/v1/sandboxes", {"snapshot": snapshot})

    def _ask(self, method: str, path: str, value: object = None) -> dict[str, Any]:
        return object_of(self._transport.ask(method, path, value=value))

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()


def _copy(
    transport: Transport,
    answer: bytes,
    state: ServerSnapshot,
    options: SandboxOptions,
    *,
    is_found: bool = False,
) -> HttpBackend:
    """The backend of the sandbox that `answer` describes."""
    from wasmsand.http.backend import HttpBackend

    made = object_of(answer)
    longest = float(made["max_command_seconds"])
    backend = HttpBackend(transport, str(made["id"]), longest, options, is_found=is_found)
    backend.variables, backend._told = dict(state.variables), dict(state.variables)
    backend.cwd = state.cwd
    backend._adopted = {item["was"]: (item["id"], item["pid"], 0) for item in made["commands"]}
    return backend


def _delete_later(transport: Transport, path: str, owner: int) -> None:
    """Delete a snapshot that is no longer referenced, on a thread: garbage collection must not wait
    for the network. In a forked process, do nothing: the snapshot belongs to the parent."""
    if os.getpid() != owner:
        return

    def ask() -> None:
        own = transport.another()  # the sandbox may have been killed here
        try:
            own.ask("DELETE", path)
        except SandboxError:
            pass  # the sandbox has ended, and the snapshot with it
        own.close()

    start_new_thread(ask, ())
