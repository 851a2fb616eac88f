"""What a sandbox of a JavaScript host may reach.

Owns `PageNetwork`, which stays when a sandbox gets another machine; `WebBridge`, the capability of
one machine; and `PageConnections`. Rules: as in `machine/network/bridge.py`. A page cannot look up
names, so a name that leads to a private address is not noticed there; Node asks
`PageConnections.may_use` about each address. Names below `localhost` are this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import PAGE_BODIES_MAX
from wasmsand.kernel.sockets.address import InetAddress
from wasmsand.kernel.sockets.outside import OutsideEnd
from wasmsand.machine.network.bridge import AnyBridge
from wasmsand.machine.network.guest_trust import trust
from wasmsand.machine.network.outgoing import OutgoingConnections, reason_of, secrets_of
from wasmsand.machine.network.policy import NetworkPolicy
from wasmsand.sdk.errors import UnsupportedError
from wasmsand.web.host import WebHost

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel
    from wasmsand.machine.lock import SandboxLock
    from wasmsand.machine.network.rules import Verdict
    from wasmsand.web.loop import Loop

_LOOPBACK: Final = "127.0.0.1"


class Receiver(Protocol):
    """Who gets what the host says about a request or a TLS connection."""

    def hear(self, event: str, text: str, data: bytes) -> None:
        """Something has happened."""


class PageNetwork:
    """What the sandbox may reach, the host's side, and the authority that programs trust."""

    def __init__(self, host: WebHost) -> None:
        self.host = host
        self.policy: NetworkPolicy | None = None
        self.certificate = b""
        """Of the sandbox's authority, in PEM."""
        self._receivers: dict[int, Receiver] = {}
        self._numbers = count(1)
        self._waiting: list[Callable[[], None]] = []

    def number_for(self, receiver: Receiver) -> int:
        """A number by which the host knows a request or a TLS connection."""
        number = next(self._numbers)
        self._receivers[number] = receiver
        return number

    def forget(self, number: int) -> None:
        """What the host still says about this number is not heard."""
        self._receivers.pop(number, None)

    def hear(self, number: int, event: str, text: str, data: bytes) -> None:
        """The host says something."""
        receiver = self._receivers.get(number)
        if receiver is not None:
            receiver.hear(event, text, data)

    def may_use(self, number: int, address: str) -> bool:
        """Whether the host may connect to an address for a request."""
        receiver = self._receivers.get(number)
        decide = getattr(receiver, "may_use", None)
        return decide is not None and bool(decide(address))

    def with_authority(self, act: Callable[[], None]) -> None:
        """Call `act` when there is an authority: now, or later."""
        if self.certificate:
            act()
            return
        self._waiting.append(act)
        if len(self._waiting) == 1:
            self.host.make_authority()

    def authority_made(self, certificate: bytes) -> None:
        """The host has made the authority."""
        self.certificate = certificate
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            act()


def require_possible(host: WebHost, policy: NetworkPolicy | None) -> None:
    """`UnsupportedError` if the host cannot do what a policy says."""
    while policy is not None:
        if policy.proxy is not None:
            raise UnsupportedError("a page and Node do not offer proxy of network")
        if policy.hosts and not host.finds_names():
            raise UnsupportedError("a page does not offer hosts of network; Node does")
        policy = policy.ceiling


class WebBridge(AnyBridge):
    """The bridge of one machine."""

    def __init__(self, lock: SandboxLock, kernel: Kernel, loop: Loop, network: PageNetwork) -> None:
        super().__init__(lock, kernel)
        self.loop = loop
        self.network = network
        self._connections: PageConnections | None = None

    def use_policy(self) -> None:
        """Go on with the policy of the network. `KernelError` if there is no room for the
        authority's certificate."""
        policy = self.network.policy
        if policy is not None and self.network.certificate:
            trust(self.kernel, self.lock, self.network.certificate)
        old, self._policy = self._policy, policy
        if self._connections is not None:
            self._connections.policy_changed(old)

    @property
    def outgoing(self) -> PageConnections:
        """The connections of the sandbox."""
        if self._connections is None:
            self._connections = PageConnections(self)
        return self._connections


class PageConnections(OutgoingConnections):
    """Connections of guests that end in this process."""

    def __init__(self, bridge: WebBridge) -> None:
        super().__init__(bridge)
        self._bridge: WebBridge = bridge
        self._body_bytes = 0

    def connect(self, destination: InetAddress, end: OutsideEnd) -> None:
        """See `Outside.connect_stream`."""
        bridge, port = self._bridge, destination.port
        host, name = self._meant(destination)
        verdict = self._decide(host, name, port)
        if name is not None and is_local(name) and verdict is not None and verdict.allowed:
            verdict = self.decide_address(name, port, _LOOPBACK)
        if verdict is None or not verdict.allowed:
            self._report_refusal("connection", host, port, reason_of(verdict))
            raise KernelError(Errno.ENETUNREACH, f"{host} is not allowed")
        self._spend_connection(host, port)
        # Imported here, because most sandboxes have no network.
        from wasmsand.web.network.stream import PageStream

        stream = PageStream(self, bridge, end, host, port)
        self._streams.add(stream)
        stream.begin()

    def place_of(self, name: str, port: int) -> str:
        """Where the policy leads a name: address and port, or an empty string. `KernelError` if
        that is not allowed."""
        policy = self._bridge.policy
        mapped = None if policy is None else policy.mapped(name, port)
        if mapped is None:
            return ""
        verdict = self.decide_address(name, mapped[1], mapped[0])
        if verdict is None or not verdict.allowed:
            raise KernelError(Errno.ENETUNREACH, reason_of(verdict))
        return f"{mapped[0]} {mapped[1]}"

    def decide_address(self, name: str, port: int, address: str) -> Verdict | None:
        """Whether an allowed name may lead to an address."""
        policy = self._bridge.policy
        return None if policy is None else policy.decide_address(address, port, name=name)

    def policy_changed(self, old: NetworkPolicy | None) -> None:
        """See `OutgoingConnections`. Requests are decided one by one anyway."""
        policy = self._bridge.policy
        for stream in tuple(self._streams):
            verdict = None if policy is None else policy.decide_name(stream.host, stream.port)
            if verdict is None or not verdict.allowed:
                stream.refuse(Errno.ECONNRESET, "it is no longer allowed")
            elif secrets_of(policy) != secrets_of(old):
                stream.refuse(Errno.ECONNRESET, "the rules for its requests have changed")

    # Bodies of requests, which wait here until they are complete.

    def keep_body(self, size: int) -> bool:
        """Count bytes of a body; whether there is room for them."""
        if self._body_bytes + size > PAGE_BODIES_MAX:
            return False
        self._body_bytes += size
        return True

    def drop_body(self, size: int) -> None:
        """A body has been sent, or is given up."""
        self._body_bytes -= size


def is_local(name: str) -> bool:
    """Whether a browser takes a name for this machine."""
    return name == "localhost" or name.endswith(".localhost")
