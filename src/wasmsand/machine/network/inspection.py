"""Hosts whose requests the bridge sees.

Owns `Inspection`, one per bridge: the sandbox's authority, and the orders of `inspecting`. Rules:
it exists only if the policy has such hosts, because it imports optional packages. Verdicts are
those of the policy at the moment of a request. Secrets are sent without TLS only to this machine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import KernelError
from wasmsand.machine.network.addresses import AddressKind, kind_of, parse_address
from wasmsand.machine.network.extra import InspectionImpossible
from wasmsand.machine.network.guest_trust import trust
from wasmsand.machine.network.inspecting.authority import Authority
from wasmsand.machine.network.inspecting.contexts import verifying_context
from wasmsand.machine.network.inspecting.order import InspectionOrder
from wasmsand.machine.network.rules import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from wasmsand.machine.network.bridge import Bridge
    from wasmsand.machine.network.inspecting.inspector import Inspector
    from wasmsand.machine.network.policy import NetworkPolicy
    from wasmsand.machine.network.streams import OutsideStream

_NO_NETWORK = Verdict(False, reason="the sandbox has no network")


class Inspection:
    """Makes the inspectors of one sandbox's connections."""

    def __init__(self, bridge: Bridge, authority: Authority | None = None) -> None:
        """`NetworkExtraMissing` if a package that it needs is not installed."""
        self._bridge = bridge
        self.authority = authority or Authority()
        self._ca_file: str | None = None
        self._is_trusted = False

    def verify_with(self, ca_file: str) -> None:
        """Trust these authorities for real hosts, instead of the host's."""
        self._ca_file = ca_file

    def become_trusted(self) -> None:
        """Put the authority's certificate into the sandbox's bundles, once. Takes the lock.
        `InspectionImpossible` if there is no room."""
        if self._is_trusted:
            return
        try:
            trust(self._bridge.kernel, self._bridge.lock, self.authority.certificate)
        except KernelError as error:
            raise InspectionImpossible(
                f"the sandbox's certificate authority cannot be stored in its files: {error}"
            ) from None
        self._is_trusted = True

    def inspector_for(
        self,
        stream: OutsideStream,
        current_policy: Callable[[], NetworkPolicy | None],
        addresses: list[str],
    ) -> Inspector:
        """The inspector of a connection to one of `addresses`; none are given if a proxy connects.
        On any thread."""
        from wasmsand.machine.network.inspecting.inspector import Inspector

        policy, host, port = current_policy(), stream.host, stream.port
        outgoing = self._bridge.outgoing

        def decide(method: str, path: str) -> Verdict:
            policy = current_policy()
            if policy is None:
                return _NO_NETWORK
            return policy.decide_request(host, port, method, path)

        return Inspector(
            InspectionOrder(
                host=host,
                port=port,
                decide=decide,
                authority=self.authority,
                server_context=verifying_context(self._ca_file),
                headers={} if policy is None else policy.headers_for(host, port),
                placeholders={} if policy is None else policy.placeholders_for(host, port),
                secrets_in_clear=bool(addresses) and all(map(_is_loopback, addresses)),
                admit=outgoing.admit_request,
                on_request=partial(outgoing.see_request, stream),
            )
        )


def _is_loopback(address: str) -> bool:
    parsed = parse_address(address)
    return parsed is not None and kind_of(parsed) is AddressKind.LOOPBACK
