"""One inspected connection.

Owns `Inspector`, which joins a guest and a real host. Rules: no input or output of its own, no
waiting, no threads. The first byte of the guest decides: 0x16 begins TLS, anything else is HTTP
without TLS; the bridge speaks the same to the host. At most about 128 KiB wait on each side, if the
caller reads a side only while `wants_...` is true, 64 KiB at a time.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.errno import Errno
from wasmsand.machine.network.inspecting.conversation import Conversation
from wasmsand.machine.network.inspecting.exchange import ROOM
from wasmsand.machine.network.inspecting.order import InspectionOrder, RequestSeen
from wasmsand.machine.network.inspecting.tls import Tls
from wasmsand.machine.network.inspecting.transports import Plain, Transport

_TLS_HANDSHAKE: Final = 0x16


class Inspector:
    """Sees the requests of one connection. The caller passes in what both sides send, takes what is
    for them, and calls `go_on` when it has taken something. When both sides are done and neither is
    wanted, or when `failure` is set, the caller closes both."""

    def __init__(self, order: InspectionOrder) -> None:
        self._order = order
        self._guest: Transport = Plain()
        self._server: Transport = Plain()
        self._conversation: Conversation | None = None
        self._is_over = False

    # What the two sides send.

    def guest_sent(self, data: bytes) -> None:
        """The guest has sent `data`."""
        if self._is_over or not data:
            return
        if self._conversation is None:
            self._begin(is_tls=data[0] == _TLS_HANDSHAKE)
        self._guest.receive(data)
        self._advance()

    def guest_ended(self) -> None:
        """The guest will send no more."""
        self._guest.receive_end()
        self._advance()

    def server_sent(self, data: bytes) -> None:
        """The host has sent `data`."""
        if self._is_over or not data:
            return
        if self._conversation is None:
            self._refuse("the server spoke first: this is not HTTP")
            return
        self._server.receive(data)
        self._advance()

    def server_ended(self) -> None:
        """The host will send no more."""
        self._server.receive_end()
        self._advance()

    def go_on(self) -> None:
        """Go on after something was taken, or while `has_more`."""
        self._advance()

    def abandon(self, reason: str) -> None:
        """The caller has closed both sides: report a request that has not ended."""
        self._is_over = True
        if self._conversation is not None:
            self._conversation.abandon(reason)

    # What the two sides get.

    def for_guest(self, most: int = -1) -> bytes:
        """Take what is to be sent to the guest: all, or up to `most` bytes."""
        return self._guest.take(most)

    def for_server(self, most: int = -1) -> bytes:
        """Take what is to be sent to the host."""
        return self._server.take(most)

    # State.

    @property
    def wants_guest(self) -> bool:
        """Whether to read more from the guest."""
        return not self._is_over and not self._guest.at_end and self._guest.unread < ROOM

    @property
    def wants_server(self) -> bool:
        """Whether to read more from the host."""
        conversation = self._conversation
        if self._is_over or self._server.at_end:
            return False
        if conversation is not None and conversation.ignores_server:
            return False
        return self._server.unread < ROOM

    @property
    def has_more(self) -> bool:
        """Whether `go_on` can do something at once. Each call does a bounded amount of work."""
        conversation = self._conversation
        return not self._is_over and conversation is not None and conversation.has_more

    @property
    def guest_done(self) -> bool:
        """Whether the guest has got everything and gets no more."""
        return self._guest.finished and not self._guest.queued

    @property
    def server_done(self) -> bool:
        """Whether the host has got everything and gets no more."""
        return self._server.finished and not self._server.queued

    @property
    def server_has_all(self) -> bool:
        """Whether nothing waits for the host."""
        return not self._server.queued

    @property
    def failure(self) -> Errno | None:
        """Set if both sides must be reset, after everything for the guest was taken."""
        conversation = self._conversation
        if conversation is None or not conversation.was_cut_off or self._guest.queued:
            return None
        return Errno.ECONNRESET

    # Inside.

    def _begin(self, *, is_tls: bool) -> None:
        order = self._order
        if is_tls:
            self._guest = Tls(order.authority.context_for(order.host))
            self._server = Tls(order.server_context, order.host)
        self._conversation = Conversation(order, self._guest, self._server, secure=is_tls)

    def _advance(self) -> None:
        if self._is_over:
            return
        conversation = self._conversation
        if conversation is None:
            if self._guest.at_end or self._server.at_end:
                self._end()
            return
        conversation.advance()
        if conversation.is_over:
            self._is_over = True
            if self._guest.problem and not self._guest.is_ready:
                self._refuse(_of_the_guests_handshake(self._guest.problem, self._order.host))

    def _refuse(self, reason: str) -> None:
        """End a connection on which no request can be answered."""
        self._end()
        self._order.on_request(RequestSeen(False, "", "", 0, reason))

    def _end(self) -> None:
        self._is_over = True
        self._guest.finish()
        self._server.finish()


def _of_the_guests_handshake(problem: str, host: str) -> str:
    """What a failed handshake means to the user."""
    if "CALLBACK_FAILED" in problem:
        return f"the guest asked by TLS (SNI) for another host than {host}"
    if "UNKNOWN_CA" in problem or "CERTIFICATE" in problem:
        return f"the guest does not trust the sandbox's authority: {problem.removeprefix('TLS: ')}"
    return f"the guest's TLS handshake failed: {problem}"
