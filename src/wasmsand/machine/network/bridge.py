"""The bridge between one sandbox and the network of its host.

Owns `AnyBridge`, the capability `Outside` of a machine's kernel, and `Bridge`, the one that uses
sockets of the host. Rules: what the policy does not allow is refused, and by default it allows
nothing. A name is decided when it is looked up and again at each connection; the address that is
really connected to is decided too, after the look-up, so an answer that changes meanwhile gains
nothing. Nothing here waits with the sandbox's lock held: look-ups and questions to the user run on
worker threads, bytes move on the poller's thread, and both are started when they are first needed.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET, InetAddress
from wasmsand.kernel.sockets.outside import DatagramSender, OutsideEnd
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.network import names
from wasmsand.machine.network.events import EventLog

if TYPE_CHECKING:
    from wasmsand.kernel.kernel import Kernel
    from wasmsand.machine.network.asking import Ask
    from wasmsand.machine.network.connecting import HostConnections
    from wasmsand.machine.network.inspecting.authority import Authority
    from wasmsand.machine.network.inspection import Inspection
    from wasmsand.machine.network.outgoing import OutgoingConnections
    from wasmsand.machine.network.policy import NetworkPolicy

_GUEST_IPV6: Final = b"\xfd" + bytes(14) + b"\x02"
"""fd00::2, the sandbox's own address on IPv6 connections to the outside."""


class AnyBridge:
    """What one sandbox may reach, and what it did there. It costs little until it is used."""

    def __init__(self, lock: SandboxLock, kernel: Kernel) -> None:
        """It allows nothing until it gets a policy."""
        self.lock = lock
        self.kernel = kernel
        self.names = names.NameTable()
        self.log = EventLog()
        self._policy: NetworkPolicy | None = None
        kernel.network.outside = self

    @property
    def policy(self) -> NetworkPolicy | None:
        """What the sandbox may reach; None if it reaches nothing."""
        return self._policy

    @property
    def is_closed_to_all(self) -> bool:
        """Whether nothing can be allowed."""
        return self._policy is None or not self._policy.allow

    @property
    def outgoing(self) -> OutgoingConnections:
        """The connections of the sandbox."""
        raise NotImplementedError

    # `Outside`.

    def source(self, destination: InetAddress) -> bytes:
        """See `Outside`."""
        if destination.family == AF_INET and names.is_reserved(destination.host):
            return names.GUEST
        if self.is_closed_to_all:
            self._tell_unreachable(destination)
            raise KernelError(Errno.ENETUNREACH, "the sandbox has no network")
        return names.GUEST if destination.family == AF_INET else _GUEST_IPV6

    def connect_stream(self, destination: InetAddress, end: OutsideEnd) -> None:
        """See `Outside`."""
        self.outgoing.connect(destination, end)

    def send_datagram(self, destination: InetAddress, data: bytes, sender: DatagramSender) -> None:
        """See `Outside`."""
        if destination.host == names.NAMESERVER and destination.port == names.NAMESERVER_PORT:
            self.outgoing.answer(data, partial(sender.be_answered, source=destination))
        else:
            self.outgoing.drop_datagram(destination)

    # Reports.

    def _tell_unreachable(self, destination: InetAddress) -> None:
        """Tell the user of the command why an address cannot be reached. An address for
        documentation only asks whether there is a network, as pip's registry does."""
        # Imported here, because most sandboxes do not use the network.
        from ipaddress import ip_address, ip_network

        address = ip_address(destination.host)
        if address not in ip_network("192.0.2.0/24"):
            why = "the sandbox has no network (option network)"
            job = self.kernel.current_job
            self.refused("connection", str(address), destination.port, why, job)

    def refused(self, kind: str, host: str, port: int, reason: str, job: int | None) -> None:
        """Something was refused: tell the user of the command. Needs the lock."""
        what = "look-up of" if kind == "lookup" else f"{kind} to"
        where = host if not port else f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.kernel.notice(job, f"network: {what} {where} refused: {reason}")


class Bridge(AnyBridge):
    """The bridge of a host that has sockets and threads."""

    def __init__(
        self,
        lock: SandboxLock,
        kernel: Kernel,
        policy: NetworkPolicy | None,
        authority: Authority | None = None,
    ) -> None:
        """`policy` None means: nothing is reached. `authority` is that of the sandbox that this one
        is a copy of: programs that were copied trust it. `InspectionImpossible` as for `policy`."""
        super().__init__(lock, kernel)
        self.ask: Ask | None = None
        """Called with a host and a port that no rule names: whether to allow the connection. It
        runs on a thread of the host and may take its time."""
        self._outgoing: HostConnections | None = None
        self._inspection: Inspection | None = None
        self._authority = authority
        self.policy = policy

    @property
    def policy(self) -> NetworkPolicy | None:
        """What the sandbox may reach; None if it reaches nothing."""
        return self._policy

    @policy.setter
    def policy(self, policy: NetworkPolicy | None) -> None:
        """Takes the lock. `InspectionImpossible` if requests have to be seen and cannot be."""
        if policy is not None and policy.inspects:
            self.inspection.become_trusted()
        old, self._policy = self._policy, policy
        if self._outgoing is not None:
            self._outgoing.policy_changed(old)

    @property
    def inspection(self) -> Inspection:
        """What sees requests."""
        inspection = self._inspection
        if inspection is None:
            # Imported here, because few sandboxes have such hosts.
            from wasmsand.machine.network.inspection import Inspection

            inspection = self._inspection = Inspection(self, self._authority)
        return inspection

    @property
    def authority(self) -> Authority | None:
        """The certificate authority that programs in the sandbox trust, if there is one."""
        return self._authority if self._inspection is None else self._inspection.authority

    @property
    def is_closed_to_all(self) -> bool:
        """Whether nothing can be allowed: there is neither a rule nor somebody to ask."""
        return self.ask is None and super().is_closed_to_all

    @property
    def outgoing(self) -> HostConnections:
        """The connections of the sandbox."""
        outgoing = self._outgoing
        if outgoing is None:
            # Imported here, because most sandboxes have no network.
            from wasmsand.machine.network.connecting import HostConnections

            outgoing = self._outgoing = HostConnections(self)
        return outgoing
