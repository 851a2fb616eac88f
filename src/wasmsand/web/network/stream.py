"""One connection of a guest, which ends in the kernel's worker.

Owns `PageStream`. Rules: nothing here waits: the guest's acts and the host's news call `_wake`, and
the loop then calls `_step`. The first byte of the guest decides: 0x16 begins TLS, anything else is
HTTP without TLS; the host's request uses the same scheme. At most about 128 KiB wait on each side.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.outside import OutsideEnd
from wasmsand.machine.bug_log import log_bug
from wasmsand.machine.network.addresses import AddressKind, kind_of, parse_address
from wasmsand.machine.network.inspecting.exchange import ROOM
from wasmsand.machine.network.inspecting.order import RequestOrder, RequestSeen
from wasmsand.machine.network.inspecting.transports import Plain, Transport
from wasmsand.machine.network.rules import Verdict
from wasmsand.web.network.bridge import PageConnections, Receiver, WebBridge, is_local
from wasmsand.web.network.conversation import PageConversation
from wasmsand.web.network.tls import PageTls

if TYPE_CHECKING:
    from wasmsand.web.network.conversation import Requests

_TLS_HANDSHAKE: Final = 0x16
_NO_NETWORK: Final = Verdict(False, reason="the sandbox has no network")


class PageStream:
    """A guest's connection to a host."""

    def __init__(
        self, connections: PageConnections, bridge: WebBridge, end: OutsideEnd, host: str, port: int
    ) -> None:
        self.host = host
        self.port = port
        self.job = bridge.kernel.current_job
        self.began = time.time()
        self.address = ""
        self.sent = self.received = 0
        self.was_refused = False
        self.is_inspected = True
        self._connections = connections
        self._bridge = bridge
        self._network = bridge.network
        self._end = end
        self._guest: Transport = Plain()
        self._tls: PageTls | None = None
        self._conversation: PageConversation | None = None
        self._guest_ended = False
        self._refusal: tuple[Errno, str] | None = None
        self._is_woken = False
        self._is_over = False

    def begin(self) -> None:
        """Accept the connection: the host is asked when the guest has sent a request."""
        self._end.changed.add(self._wake)
        self._end.establish()

    def refuse(self, error: Errno, reason: str) -> None:
        """See `GuestStream`."""
        if self._refusal is None:
            self._refusal = (error, reason)
            self._wake()

    def _wake(self) -> None:
        if not self._is_woken and not self._is_over:
            self._is_woken = True
            self._bridge.loop.soon(self._step)

    def _step(self) -> None:
        self._is_woken = False
        if self._is_over:
            return
        if self._refusal is not None:
            self.was_refused = True
            self._finish(self._refusal[1], self._refusal[0])
        elif self._end.is_gone:
            self._finish("the guest has closed it")
        else:
            try:
                self._move()
            except KernelError as error:  # the sandbox has no memory for what it would get
                self._finish(str(error), error.errno)
            except Exception:
                log_bug("host bug in a connection to %s", self.host)
                self._finish("a bug of the host; see its log", Errno.EIO)

    def _move(self) -> None:
        had_no_room = self._take()
        conversation = self._conversation
        if conversation is not None:
            conversation.advance()
        moved = self._give() or (had_no_room and self._guest.unread < ROOM)
        if self._guest.finished and not self._guest.queued:
            self._end.finish()
        if conversation is None:
            if self._guest_ended:
                self._finish("the guest has closed it")
        elif conversation.is_over and not self._guest.queued:
            if self._guest.problem and not self._guest.is_ready:
                self._see_request(RequestSeen(False, "", "", 0, self._guest.problem))
            cut_off = conversation.was_cut_off
            self._finish(conversation.problem, Errno.ECONNRESET if cut_off else None)
        elif moved or conversation.has_more:
            self._wake()

    def _take(self) -> bool:
        """Take what the guest has written; whether there was no room for more."""
        end = self._end
        while self._guest.unread < ROOM and (data := end.take(ROOM)):
            self.sent += len(data)
            self._connections.spend(self, sent=len(data))
            if self._conversation is None:
                self._begin_conversation(is_tls=data[0] == _TLS_HANDSHAKE)
            self._guest.receive(data)
        if end.at_end and not self._guest_ended:
            self._guest_ended = True
            self._guest.receive_end()
        return self._guest.unread >= ROOM

    def _give(self) -> bool:
        """Give the guest what is for it, as far as there is room."""
        given = False
        while (room := self._end.room) and (data := self._guest.take(min(room, ROOM))):
            self._end.give(data)
            given = True
        return given

    def _begin_conversation(self, *, is_tls: bool) -> None:
        if is_tls:
            self._guest = self._tls = PageTls(self._network, self.host, self._wake)
        requests: Requests = self
        self._conversation = PageConversation(self._order(), self._guest, requests, secure=is_tls)

    def _finish(self, reason: str, error: Errno | None = None) -> None:
        self._is_over = True
        self._end.changed.remove(self._wake)
        if self._conversation is not None:
            self._conversation.abandon(reason)
        if self._tls is not None:
            self._tls.close()
        if error is None:
            self._end.close()
        else:
            self._end.fail(error)
        self._connections.ended(self, reason)

    # Requests.

    def _order(self) -> RequestOrder:
        bridge, host, port = self._bridge, self.host, self.port
        policy = bridge.policy

        def decide(method: str, path: str) -> Verdict:
            now = bridge.policy
            return _NO_NETWORK if now is None else now.decide_request(host, port, method, path)

        address = parse_address(host)
        loopback = address is not None and kind_of(address) is AddressKind.LOOPBACK
        return RequestOrder(
            host=host,
            port=port,
            decide=decide,
            headers={} if policy is None else policy.headers_for(host, port),
            placeholders={} if policy is None else policy.placeholders_for(host, port),
            secrets_in_clear=loopback or is_local(host),
            admit=self._connections.admit_request,
            on_request=self._see_request,
        )

    def _see_request(self, seen: RequestSeen) -> None:
        self._connections.see_request(self, seen)

    # `Requests`.

    def start(self, receiver: Receiver, method: str, url: str, headers: str, body: bytes) -> int:
        """See `Requests`."""
        place = self._connections.place_of(self.host, self.port)
        number = self._network.number_for(receiver)
        self._network.host.fetch_start(number, method, url, headers, body, place)
        return number

    def more(self, number: int) -> None:
        """See `Requests`."""
        self._network.host.fetch_more(number)

    def stop(self, number: int) -> None:
        """See `Requests`."""
        self._network.forget(number)
        self._network.host.fetch_stop(number)

    def came(self, count: int) -> None:
        """See `Requests`."""
        self.received += count
        self._connections.spend(self, received=count)
        self._wake()

    def keep_body(self, size: int) -> bool:
        """See `Requests`."""
        return self._connections.keep_body(size)

    def drop_body(self, size: int) -> None:
        """See `Requests`."""
        self._connections.drop_body(size)

    def may_use(self, address: str) -> bool:
        """See `Requests`."""
        self.address = address
        if parse_address(self.host) is not None:
            return True  # decided when the guest connected
        verdict = self._connections.decide_address(self.host, self.port, address)
        return verdict is not None and verdict.allowed
