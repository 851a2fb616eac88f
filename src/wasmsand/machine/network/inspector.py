"""What stands between a guest and a server if requests have to be seen.

Owns the protocol `Inspector`, which `streams.py` uses. Rules: this module imports nothing of the
implementation (`inspecting`), which needs optional packages.
"""

from __future__ import annotations

from typing import Protocol

from wasmsand.kernel.errno import Errno


class Inspector(Protocol):
    """What stands between guest and server if requests have to be seen (`inspecting`). It does no
    input or output: it is told what came from one side, and asked what to send to the other."""

    @property
    def wants_guest(self) -> bool:
        """Whether it can take more from the guest."""

    @property
    def wants_server(self) -> bool:
        """Whether it can take more from the server."""

    @property
    def has_more(self) -> bool:
        """Whether `go_on` can do something at once. Each call does a bounded amount of work."""

    @property
    def guest_done(self) -> bool:
        """Whether nothing more will be sent to the guest."""

    @property
    def server_done(self) -> bool:
        """Whether nothing more will be sent to the server."""

    @property
    def server_has_all(self) -> bool:
        """Whether nothing waits for the server."""

    @property
    def failure(self) -> Errno | None:
        """The error with which both sides are reset."""

    def guest_sent(self, data: bytes) -> None:
        """Data came from the guest."""

    def guest_ended(self) -> None:
        """The guest will send no more."""

    def server_sent(self, data: bytes) -> None:
        """Data came from the server."""

    def server_ended(self) -> None:
        """The server will send no more."""

    def go_on(self) -> None:
        """Something was taken, or there is more to do."""

    def abandon(self, reason: str) -> None:
        """Both sides are closed."""

    def for_guest(self) -> bytes:
        """Take what is to be sent to the guest."""

    def for_server(self) -> bytes:
        """Take what is to be sent to the server."""
