"""What every kind of bridge decides and counts about outgoing connections.

Owns `OutgoingConnections`: the answers of the nameserver, what an address means, the budget, and
reports. Rules: it has no input and output of its own; `connecting.py` connects by sockets of the
host, `wasmsand.web` by requests of a page. Everything here needs the sandbox's lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET, AF_INET6, InetAddress
from wasmsand.machine.network import dns, names
from wasmsand.machine.network.events import EventKind, NetworkEvent
from wasmsand.machine.network.policy import Budget, NetworkPolicy

if TYPE_CHECKING:
    from wasmsand.kernel.sockets.outside import OutsideEnd
    from wasmsand.machine.lock import SandboxLock
    from wasmsand.machine.network.bridge import AnyBridge
    from wasmsand.machine.network.inspecting.order import RequestSeen
    from wasmsand.machine.network.rules import Verdict

Answer = Callable[[bytes], None]
_USUAL_BUDGET: Final = Budget()


class GuestStream(Protocol):
    """A connection of a guest to the outside."""

    host: str
    port: int
    job: int | None
    began: float
    """When it began, in seconds since 1970."""
    address: str
    """Of the other end, if it is known."""
    sent: int
    received: int
    was_refused: bool
    is_inspected: bool
    """Whether its requests are seen."""

    def refuse(self, error: Errno, reason: str) -> None:
        """End it."""


class OutgoingConnections:
    """The connections of one sandbox to the outside."""

    def __init__(self, bridge: AnyBridge) -> None:
        self._bridge = bridge
        self._streams: set[GuestStream] = set()
        """Guarded by the sandbox's lock."""
        self._made = 0
        self._requests = 0
        self._sent = self._received = 0

    def connect(self, destination: InetAddress, end: OutsideEnd) -> None:
        """See `Outside.connect_stream`."""
        raise NotImplementedError

    def policy_changed(self, old: NetworkPolicy | None) -> None:
        """Reset the connections that are no longer allowed, or not in this way. Takes the lock."""
        raise NotImplementedError

    # Look-ups.

    def answer(self, message: bytes, send: Answer) -> None:
        """Answer a DNS message of the guest. `send` is called with the sandbox's lock held."""
        try:
            question = dns.parse(message)
        except dns.BadQuestion:
            return  # a program that sends nonsense gets no answer
        if question.kind == dns.PTR:
            send(self._reverse(question))
            return
        name = question.name
        if not name.isascii() or not name.isprintable():  # it would be part of notices
            send(dns.answer(question, dns.NO_SUCH_NAME))
            return
        policy = self._bridge.policy
        verdict = None if policy is None else policy.decide_name(name, None)
        if verdict is None or not verdict.allowed:
            if self._may_ask(name, None):
                send(self._found(question))  # the user is asked when the guest connects
                return
            self._report_refusal("lookup", name, 0, reason_of(verdict))
            send(dns.answer(question, dns.NO_SUCH_NAME))
            return
        assert policy is not None
        self._look_up(policy, question, send)

    def _may_ask(self, name: str, port: int | None) -> bool:
        """Whether the user's code can allow a host."""
        return False

    def _look_up(self, policy: NetworkPolicy, question: dns.Question, send: Answer) -> None:
        """Answer a question about an allowed name. Here, every allowed name exists."""
        send(self._found(question))

    def _found(self, question: dns.Question) -> bytes:
        """The answer for a name that exists."""
        if question.kind != dns.A:
            return dns.answer(question, dns.NO_ERROR)
        address = self._bridge.names.address_of(question.name)
        if address is None:
            return dns.answer(question, dns.SERVER_FAILURE)
        return dns.answer(question, dns.NO_ERROR, (address,))

    def _reverse(self, question: dns.Question) -> bytes:
        address = dns.address_in_reverse_name(question.name)
        name = None if address is None else self._bridge.names.name_of(address)
        if name is None:
            return dns.answer(question, dns.NO_SUCH_NAME)
        return dns.answer(question, dns.NO_ERROR, (dns.encode_name(name),))

    # Connections.

    def _meant(self, destination: InetAddress) -> tuple[str, str | None]:
        """What a guest means by an address: the host, and its name if the address stands for
        one."""
        if destination.family == AF_INET and names.is_reserved(destination.host):
            name = self._bridge.names.name_of(destination.host)
            if name is None:
                error = Errno.ECONNREFUSED if destination.host == names.NAMESERVER else None
                raise KernelError(error or Errno.EHOSTUNREACH, "no name has this address")
            return name, name
        import socket

        family = socket.AF_INET6 if destination.family == AF_INET6 else socket.AF_INET
        return socket.inet_ntop(family, destination.host), None

    def _decide(self, host: str, name: str | None, port: int) -> Verdict | None:
        """Whether a guest may connect to what `_meant` says; None if it has no network."""
        policy = self._bridge.policy
        if policy is None:
            return None
        if name is not None:
            return policy.decide_name(name, port)
        return policy.decide_address(host, port, name=None)

    def drop_datagram(self, destination: InetAddress) -> None:
        """A guest has sent a datagram to something else than the resolver."""
        host, _ = self._meant(destination)
        self._report_refusal("connection", host, destination.port, "UDP reaches only the resolver")

    # The budget.

    @property
    def _budget(self) -> Budget:
        """The policy's; the usual one if there is only somebody to ask."""
        policy = self._bridge.policy
        return _USUAL_BUDGET if policy is None else policy.budget

    def _spend_connection(self, host: str, port: int) -> None:
        """ENOBUFS if the sandbox may not make another connection."""
        budget = self._budget
        if len(self._streams) >= budget.connections_at_once:
            most = budget.connections_at_once
            problem = f"{most} connections are open; raise connections_at_once"
        elif self._made >= budget.connections:
            problem = f"{budget.connections} connections were made; raise connections"
        else:
            self._made += 1
            return
        self._report_refusal("connection", host, port, problem)
        raise KernelError(Errno.ENOBUFS, problem)

    def spend(self, stream: GuestStream, *, sent: int = 0, received: int = 0) -> None:
        """Bytes were moved. On the thread that moves them, without the lock."""
        self._sent += sent
        self._received += received
        budget = self._budget
        if self._sent > budget.bytes_out:
            stream.refuse(Errno.ECONNRESET, f"{budget.bytes_out} bytes were sent; raise bytes_out")
        elif self._received > budget.bytes_in:
            stream.refuse(
                Errno.ECONNRESET, f"{budget.bytes_in} bytes were received; raise bytes_in"
            )

    def admit_request(self) -> str:
        """Count a request that is seen: why it may not be made, or an empty string."""
        policy = self._bridge.policy
        most = 0 if policy is None else policy.budget.requests
        if self._requests >= most:
            return f"{most} requests were made; raise requests"
        self._requests += 1
        return ""

    # Reports.

    @property
    def lock(self) -> SandboxLock:
        """The sandbox's lock."""
        return self._bridge.lock

    def ended(self, stream: GuestStream, reason: str) -> None:
        """A connection is over. Takes the lock."""
        with self.lock:
            self._streams.discard(stream)
            if stream.was_refused:
                self._bridge.refused("connection", stream.host, stream.port, reason, stream.job)
        self._bridge.log.add(
            NetworkEvent(
                "connection",
                not stream.was_refused,
                stream.host,
                stream.port,
                stream.began,
                reason,
                stream.address,
                stream.sent,
                stream.received,
                (time.time() - stream.began) * 1e3,
            )
        )

    def see_request(self, stream: GuestStream, seen: RequestSeen) -> None:
        """A request has ended, or was refused. Takes the lock."""
        bridge = self._bridge
        if not seen.allowed:
            with bridge.lock:
                bridge.refused("request", stream.host, stream.port, seen.reason, stream.job)
        bridge.log.add(
            NetworkEvent(
                "request",
                seen.allowed,
                stream.host,
                stream.port,
                time.time() - seen.duration_ms / 1e3,
                seen.reason,
                stream.address,
                seen.sent,
                seen.received,
                seen.duration_ms,
                seen.method,
                seen.path,
                seen.status,
            )
        )

    def _report_refusal(self, kind: EventKind, host: str, port: int, reason: str) -> None:
        bridge = self._bridge
        bridge.refused(kind, host, port, reason, bridge.kernel.current_job)
        bridge.log.add(NetworkEvent(kind, False, host, port, time.time(), reason))


def reason_of(verdict: Verdict | None) -> str:
    """Why something is refused."""
    return "the sandbox has no network (option network)" if verdict is None else verdict.reason


def secrets_of(policy: NetworkPolicy | None) -> list[object]:
    """The tables of secrets of a policy and its ceilings, to compare."""
    found: list[object] = []
    while policy is not None:
        found += [policy.secrets, policy.placeholders]
        policy = policy.ceiling
    return found
