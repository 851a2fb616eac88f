"""The outgoing connections of one sandbox, by sockets of the host.

Owns `HostConnections`: look-ups, questions to the user, and connecting. Rules: as in `bridge.py`,
which delegates to this module once a guest uses the network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import InetAddress
from wasmsand.kernel.sockets.outside import OutsideEnd
from wasmsand.machine.network import dns
from wasmsand.machine.network.asking import Place, Questions, TooManyQuestions
from wasmsand.machine.network.moving import Inspector
from wasmsand.machine.network.outgoing import Answer, OutgoingConnections, reason_of, secrets_of
from wasmsand.machine.network.policy import NetworkPolicy
from wasmsand.machine.network.poller import poller
from wasmsand.machine.network.proxy import ProxyAddress, Tunnel
from wasmsand.machine.network.resolving import Addresses, HostAddresses, TooManyLookups
from wasmsand.machine.network.rules import Rule
from wasmsand.machine.network.streams import OutsideStream

if TYPE_CHECKING:
    from wasmsand.machine.network.bridge import Bridge


class HostConnections(OutgoingConnections):
    """The connections of one sandbox to the outside."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._bridge: Bridge = bridge
        self._addresses = HostAddresses()
        self._questions = Questions()

    def resolve_with(
        self, resolve: Callable[[str], Addresses], fresh_seconds: float = 10.0
    ) -> None:
        """Use another name service than the host's."""
        self._addresses = HostAddresses(resolve, fresh_seconds)

    # Look-ups.

    def _look_up(self, policy: NetworkPolicy, question: dns.Question, send: Answer) -> None:
        """See `OutgoingConnections`."""
        name = question.name
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

    # Connections.

    def connect(self, destination: InetAddress, end: OutsideEnd) -> None:
        """See `Outside.connect_stream`. Needs the lock."""
        bridge = self._bridge
        port = destination.port
        host, name = self._meant(destination)
        verdict = self._decide(host, name, port)
        allowed = verdict is not None and verdict.allowed
        if not allowed and (name is None or not self._may_ask(name, port)):
            self._report_refusal("connection", host, port, reason_of(verdict))
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
                reason = reason_of(verdict)
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

    # Changes.

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
                stream.is_inspected and secrets_of(policy) != secrets_of(old)
            ):
                stream.refuse(Errno.ECONNRESET, "the rules for its requests have changed")


def _proxy_of(policy: NetworkPolicy, name: str) -> ProxyAddress | None:
    """The proxy for connections to a name."""
    if policy.proxy is None:
        return None
    if policy.proxy == "environment":
        return ProxyAddress.of_environment(name)
    return ProxyAddress.of_url(policy.proxy)
