"""`SandboxLife`: the id of a sandbox, its store, and its life on a server.

A part of `Sandbox`. Owns pausing and resuming, the end of a sandbox on a server, and the list of a
server's sandboxes. Rules: a sandbox on a server that was found by its id is not killed at the end
of a `with` block; everything that only a server has raises `UnsupportedError` elsewhere.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import TYPE_CHECKING

from wasmsand.sdk import arguments
from wasmsand.sdk.errors import StateError, UnsupportedError
from wasmsand.sdk.opening import end_on_server, list_on_server
from wasmsand.sdk.results import SandboxInfo
from wasmsand.sdk.served_backend import ServedBackend
from wasmsand.sdk.state import Running, checked_running

if TYPE_CHECKING:
    from wasmsand.sdk.attachment import Attachment
    from wasmsand.sdk.keeping import Keeper


class SandboxLife:
    """The life of a sandbox in a store or on a server."""

    _attachment: Attachment
    _keeper: Keeper | None
    _id: str

    @property
    def id(self) -> str:
        """The id of the sandbox. `Sandbox.connect(url, id=...)` finds a sandbox on a server by
        it."""
        return self._id

    @property
    def name(self) -> str | None:
        """The name in its store, if the sandbox was opened with `open`."""
        return None if self._keeper is None else self._keeper.name

    @staticmethod
    def list(
        url: str,
        *,
        token: str | None = None,
        metadata: Mapping[str, str] | None = None,
        state: str | None = None,
    ) -> builtins.list[SandboxInfo]:
        """The sandboxes of `token` on the server at `url`, oldest first: all, or those that have
        `metadata`, or those in a `state` (`"running"`, `"paused"`).

        Example:
            for info in Sandbox.list("http://127.0.0.1:8750", metadata={"user": "alice"}):
                Sandbox.connect("http://127.0.0.1:8750", id=info.id)
        """
        wanted = arguments.metadata("metadata", metadata or {})
        return list_on_server(arguments.text("url", url), token, wanted, state)

    @staticmethod
    def kill_by_id(url: str, id: str, *, token: str | None = None) -> bool:
        """Kill a sandbox of the server at `url`, paused or not. Returns False if it has none with
        this id.

        Example:
            Sandbox.kill_by_id("http://127.0.0.1:8750", "sbx-5a0ed1a2...")
        """
        return end_on_server(arguments.text("url", url), token, arguments.text("id", id))

    def info(self) -> SandboxInfo:
        """What the sandbox is: its id, state and metadata, and when it ends.

        Example:
            sandbox.info().state
        """
        backend = self._attachment.backend_as_it_is
        if isinstance(backend, ServedBackend):
            return backend.info()
        return SandboxInfo(id=self._id, state="paused" if self.paused else "running")

    def set_timeout(self, seconds: float) -> None:
        """Let a sandbox on a server end in `seconds` from now, even in use; later calls replace
        earlier ones. It is then killed, and removed from the server's store. The server's own
        limits of age and idleness still apply.

        Example:
            sandbox.set_timeout(3600)
        """
        limit = arguments.seconds("seconds", seconds)
        self._on_server("set_timeout").set_timeout(limit)

    def flush(self) -> None:
        """Write a sandbox that was opened with `open` to its store now.

        Example:
            sandbox.flush()

        Raises `StateError` if a session runs a request, `StoreError` if the store cannot be
        written.
        """
        self._kept_by().save()

    def pause(self, *, running: Running = "refuse") -> None:
        """Write a sandbox to its store, and free its memory: one that was opened with `open`, or
        one on a server that has a store. Its next use resumes it, with its sessions.

        Example:
            sandbox.pause()
            sandbox.sessions[0].run("x")

        What runs is refused (`StateError`) or, with `running="drop"`, ended.
        """
        checked = checked_running(running)
        backend = self._attachment.backend_as_it_is
        if isinstance(backend, ServedBackend):
            backend.pause(checked)
        else:
            self._kept_by().pause(drops=checked == "drop")

    def resume(self) -> None:
        """Resume a paused sandbox now; otherwise, its next use does.

        Example:
            sandbox.resume()
        """
        backend = self._attachment.backend
        if isinstance(backend, ServedBackend):
            backend.resume()

    @property
    def paused(self) -> bool:
        """Whether the sandbox is paused: its next use resumes it. For a sandbox on a server, `info`
        tells."""
        return self._attachment.paused

    def _kept_by(self) -> Keeper:
        if self._attachment.closed:
            self._attachment.check_open()
        if self._keeper is None:
            raise StateError("the sandbox is in no store; open it with Sandbox.open(name)")
        return self._keeper

    def disconnect(self) -> None:
        """Leave a sandbox on a server as it is: it goes on there, and this object ends.
        `Sandbox.connect(url, id=...)` finds it again.

        Example:
            id = sandbox.id
            sandbox.disconnect()
        """
        self._on_server("disconnect").keep_alive()
        self._attachment.close()

    def _on_server(self, operation: str) -> ServedBackend:
        backend = self._attachment.backend
        if not isinstance(backend, ServedBackend):
            raise UnsupportedError(f"{operation} is for sandboxes on a server (Sandbox.connect)")
        return backend

    def kill(self, *, discard: bool = False) -> None:
        """End every process and delete every file. Calling it again does nothing.

        Example:
            sandbox.kill()

        A sandbox that was opened with `open` is written to its store first, unless `discard`. If
        that fails, `kill` raises `StoreError`, and the sandbox stays. A sandbox on a server is also
        removed from the server's store.
        """
        if not isinstance(discard, bool):
            raise TypeError(f"discard must be a bool, not {type(discard).__name__}")
        if self._keeper is not None:
            self._keeper.end(discards=discard)
        else:
            self._attachment.close()

    def close(self) -> None:
        """What happens at the end of a `with` block: `kill`, or `disconnect` for a sandbox on a
        server that was found by its id.

        Example:
            sandbox.close()
        """
        backend = None if self._attachment.closed else self._attachment.backend_as_it_is
        if isinstance(backend, ServedBackend) and backend.is_found:
            self.disconnect()
        else:
            self.kill()
