"""The outgoing connections of one sandbox.

Owns `Outgoing`: the decisions about look-ups and connections, and the budget. Rules: as in
`bridge.py`, which delegates to this module once a guest uses the network.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET, AF_INET6, InetAddress
from wasmsand.kernel.sockets.outside import OutsideEnd
from wasmsand.machine.network import dns, names
from wasmsand.machine.network.asking import Place, Questions, TooManyQuestions
from wasmsand.machine.network.events import EventKind, NetworkEvent
from wasmsand.machine.network.moving import Inspector, MovingStream
from wasmsand.machine.network.policy import Budget, NetworkPolicy
from wasmsand.machine.network.poller import poller
from wasmsand.machine.network.proxy import ProxyAddress, Tunnel
from wasmsand.machine.network.resolving import Addresses, HostAddresses, TooManyLookups
from wasmsand.machine.network.rules import Rule
from wasmsand.machine.network.streams import OutsideStream

if TYPE_CHECKING:
    from wasmsand.machine.lock import SandboxLock
    from wasmsand.machine.network.bridge import Bridge
    from wasmsand.machine.network.rules import Verdict

Answer = Callable[[bytes], None]
_USUAL_BUDGET: Final = Budget()


class Outgoing:
    """The connections of one sandbox to the outside."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._addresses = HostAddresses()
        self._streams: set[OutsideStream] = set()
        """Guarded by the sandbox's lock."""
        self._made = 0
        self._sent = self._received = 0
        self._questions = Questions()

    def resolve_with(
        self, resolve: Callable[[str], Addresses], fresh_seconds: float = 10.0
    ) -> None:
        """Use another name service than the host's."""
        self._addresses = HostAddresses(resolve, fresh_seconds)

    # Look-ups.

    def answer(self, message: bytes, send: Answer) -> None:
        """Answer a DNS message of the guest. `send` is called with the sandbox's lock held. Needs
        the lock."""
        try:
            question = dns.parse(message)
        except dns.BadQuestion:
            return  # a program that sends nonsense gets no answer
        if question.kind == dns.PTR:
            send(self._reverse(question))
            return
        name = question.name
        if not name.isprintable():  # it would be part of notices to the user
            send(dns.answer(question, dns.NO_SUCH_NAME))
            return
        bridge = self._bridge
        policy = bridge.policy
        verdict = None if policy is None else policy.decide_name(name, None)
        if verdict is None or not verdict.allowed:
            if self._may_ask(name, None):
                send(self._found(question))  # the user is asked when the guest connects
                return
            self._report_refusal("lookup", name, 0, _reason(verdict))
            send(dns.answer(question, dns.NO_SUCH_NAME))
            return
        assert policy is not None
        if policy.mapped(name, 0) is not None or _proxy_of(policy, name) is not None:
            send(self._found(question))
            return
        try:
            known = self._addresses.find(name, partial(self._answer_later, question, send))
        except TooManyLookups:
            send(dns.answer(question, dns.SERVER_FAILURE))
            return
        if known is not None:
            send(self._found(question) if known else dns.answer(question, dns.NO_SUCH_NAME))

    def _answer_later(self, question: dns.Question, send: Answer, found: Addresses) -> None:
        with self._bridge.lock:
            send(self._found(question) if found else dns.answer(question, dns.NO_SUCH_NAME))

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

    def connect(self, destination: InetAddress, end: OutsideEnd) -> None:
        """See `Outside.connect_stream`. Needs the lock."""
        bridge = self._bridge
        policy, port = bridge.policy, destination.port
        host, name = self._meant(destination)
        if policy is None:
            verdict = None
        elif name is not None:
            verdict = policy.decide_name(name, port)
        else:
            verdict = policy.decide_address(host, port, name=None)
        allowed = verdict is not None and verdict.allowed
        if not allowed and (name is None or not self._may_ask(name, port)):
            self._report_refusal("connection", host, port, _reason(verdict))
            raise KernelError(Errno.ENETUNREACH, f"{host} is not allowed")
        self._spend_connection(host, port)
        stream = OutsideStream(self, poller(), end, host, port, bridge.kernel.current_job)
        self._streams.add(stream)
        if name is None:
            inspected = verdict is not None and verdict.inspected
            stream.connect([(host, port)], self._inspector(stream, [host]) if inspected else None)
        elif not allowed:
            self._ask(stream, name)
        else:
            self._look_up_and_connect(stream, name)

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

    def drop_datagram(self, destination: InetAddress) -> None:
        """A guest has sent a datagram to something else than the resolver. Needs the lock."""
        host, _ = self._meant(destination)
        self._report_refusal("connection", host, destination.port, "UDP reaches only the resolver")

    def _may_ask(self, name: str, port: int | None) -> bool:
        """Whether the user's code can allow a host: no rule denies it, and no ceiling."""
        if self._bridge.ask is None:
            return False
        return self._after_a_yes(name, port).decide_name(name, port).allowed

    def _after_a_yes(self, name: str, port: int | None) -> NetworkPolicy:
        """The policy with a host that the user's code has allowed. Deny rules still win."""
        policy = self._bridge.policy or NetworkPolicy()
        return replace(policy, allow=(*policy.allow, Rule(name, port)))

    def _policy_for(self, place: Place) -> NetworkPolicy | None:
        """The policy, with a place that the user's code has allowed."""
        if self._questions.answer_to(place):
            return self._after_a_yes(place[0], None)
        return self._bridge.policy

    def _ask(self, stream: OutsideStream, name: str) -> None:
        """Ask the user's code about a host, and go on when it has answered."""
        place = (name, stream.port)
        ask = self._bridge.ask
        known = self._questions.answer_to(place)
        if known is not None or ask is None:
            self._answered(stream, name, known is True)
            return
        try:
            self._questions.put(ask, place, partial(self._answered, stream, name))
        except TooManyQuestions:
            stream.refuse(Errno.ENOBUFS, "too many questions at once")

    def _answered(self, stream: OutsideStream, name: str, allowed: bool) -> None:
        if allowed:
            self._look_up_and_connect(stream, name)
        else:
            stream.refuse(Errno.ENETUNREACH, "the user's code did not allow it")

    def _look_up_and_connect(self, stream: OutsideStream, name: str) -> None:
        """Find the addresses of an allowed name. On any thread, with or without the lock."""
        policy = self._bridge.policy
        port = stream.port
        try:
            proxy = None if policy is None else _proxy_of(policy, name)
            mapped = None if policy is None else policy.mapped(name, port)
            if mapped is not None:
                self._connect_to(stream, name, mapped[1], (mapped[0],))
                return
            if proxy is not None:
                # The proxy looks up the name, so only its own address is known here.
                tunnel = Tunnel(proxy, name, port)
                go_on = partial(self._connect_through, stream, proxy, tunnel)
                wanted = proxy.host
            else:
                go_on = partial(self._connect_to, stream, name, port)
                wanted = name
            known = self._addresses.find(wanted, go_on)
            if known is not None:
                go_on(known)
        except TooManyLookups:
            stream.refuse(Errno.ENOBUFS, "too many look-ups at once")

    def _connect_to(self, stream: OutsideStream, name: str, port: int, found: Addresses) -> None:
        """Connect to those of the addresses that are allowed."""
        policy = self._policy_for((name, stream.port))
        if not found:
            stream.refuse(Errno.EHOSTUNREACH, "the name has no address")
            return
        allowed, reason = [], ""
        for address in found:
            verdict = None if policy is None else policy.decide_address(address, port, name=name)
            if verdict is not None and verdict.allowed:
                allowed.append((address, port))
            else:
                reason = _reason(verdict)
        if allowed:
            addresses = [address for address, _ in allowed]
            stream.connect(allowed, self._inspector_by_name(stream, addresses))
        else:
            stream.refuse(Errno.ENETUNREACH, reason)

    def _connect_through(
        self, stream: OutsideStream, proxy: ProxyAddress, tunnel: Tunnel, found: Addresses
    ) -> None:
        if not found:
            stream.refuse(Errno.EHOSTUNREACH, "the proxy has no address")
            return
        candidates = [(address, proxy.port) for address in found]
        stream.connect(candidates, self._inspector_by_name(stream, []), tunnel)

    # Requests.

    def _inspector_by_name(self, stream: OutsideStream, addresses: list[str]) -> Inspector | None:
        """What sees the requests to a name, if they have to be seen."""
        policy = self._policy_for((stream.host, stream.port))
        if policy is None or not policy.decide_name(stream.host, stream.port).inspected:
            return None
        return self._inspector(stream, addresses)

    def _inspector(self, stream: OutsideStream, addresses: list[str]) -> Inspector:
        stream.is_inspected = True
        current_policy = partial(self._policy_for, (stream.host, stream.port))
        return self._bridge.inspection.inspector_for(stream, current_policy, addresses)

    # The budget.

    @property
    def _budget(self) -> Budget:
        """The policy's; the usual one if there is only somebody to ask."""
        policy = self._bridge.policy
        return _USUAL_BUDGET if policy is None else policy.budget

    def _spend_connection(self, host: str, port: int) -> None:
        """ENOBUFS if the sandbox may not make another connection. Needs the lock."""
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

    def spend(self, stream: MovingStream, *, sent: int = 0, received: int = 0) -> None:
        """Bytes were moved. On the poller's thread."""
        self._sent += sent
        self._received += received
        budget = self._budget
        if self._sent > budget.bytes_out:
            stream.refuse(Errno.ECONNRESET, f"{budget.bytes_out} bytes were sent; raise bytes_out")
        elif self._received > budget.bytes_in:
            stream.refuse(
                Errno.ECONNRESET, f"{budget.bytes_in} bytes were received; raise bytes_in"
            )

    # Changes and reports.

    @property
    def lock(self) -> SandboxLock:
        """The sandbox's lock."""
        return self._bridge.lock

    def policy_changed(self, old: NetworkPolicy | None) -> None:
        """Reset the connections that are no longer allowed, or not in this way."""
        with self.lock:
            streams = list(self._streams)
        for stream in streams:
            policy = self._policy_for((stream.host, stream.port))
            verdict = None if policy is None else policy.decide_name(stream.host, stream.port)
            if verdict is None or not verdict.allowed:
                stream.refuse(Errno.ECONNRESET, "it is no longer allowed")
            elif verdict.inspected != stream.is_inspected or (
                stream.is_inspected and _secrets_of(policy) != _secrets_of(old)
            ):
                stream.refuse(Errno.ECONNRESET, "the rules for its requests have changed")

    def ended(self, stream: MovingStream, reason: str) -> None:
        """A connection is over. On the poller's thread, without the lock."""
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

    def _report_refusal(self, kind: EventKind, host: str, port: int, reason: str) -> None:
        """Needs the lock."""
        bridge = self._bridge
        bridge.refused(kind, host, port, reason, bridge.kernel.current_job)
        bridge.log.add(NetworkEvent(kind, False, host, port, time.time(), reason))


def _reason(verdict: Verdict | None) -> str:
    return "the sandbox has no network (option network)" if verdict is None else verdict.reason


def _proxy_of(policy: NetworkPolicy, name: str) -> ProxyAddress | None:
    """The proxy for connections to a name."""
    if policy.proxy is None:
        return None
    if policy.proxy == "environment":
        return ProxyAddress.of_environment(name)
    return ProxyAddress.of_url(policy.proxy)


def _secrets_of(policy: NetworkPolicy | None) -> list[object]:
    """The tables of secrets of a policy and its ceilings, to compare."""
    found: list[object] = []
    while policy is not None:
        found += [policy.secrets, policy.placeholders]
        policy = policy.ceiling
    return found
