"""The network of a sandbox in a separate process: rules, log and events.

Owns `ProcessNetwork`, a base class of `ProcessBackend`. Rules: a process that was started without a
network has given up its sockets, and gets no network later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from wasmsand.rpc import values
from wasmsand.rpc.params import Params
from wasmsand.sdk.errors import UnsupportedError
from wasmsand.sdk.results import NetworkRules

if TYPE_CHECKING:
    from wasmsand.sdk.network import Network, NetworkEvent

log = logging.getLogger("wasmsand.rpc")


def event_receiver(network: Network) -> Callable[[str, Params], None]:
    """What a connection calls for notifications: it gives events to the user's callback."""

    def notified(method: str, params: Params) -> None:
        if method == "network.event" and network.on_event is not None:
            try:
                network.on_event(values.event_in(params))
            except Exception:
                log.exception("on_event failed")

    return notified


class ProcessNetwork:
    """The operations of `Backend` for the network."""

    kind: ClassVar[str]
    _has_network: bool

    def _call(self, method: str, **params: object) -> Params:
        raise NotImplementedError

    def allow_network(self, rules: tuple[str, ...]) -> None:
        """See `Backend`."""
        if not self._has_network:
            raise UnsupportedError(
                f"{self.kind}: the process of this sandbox gave up the network when it started;"
                " create the sandbox with network=[] or network=Network()"
            )
        self._call("network.allow", rules=list(rules))

    def deny_network(self, rules: tuple[str, ...]) -> None:
        """See `Backend`."""
        self._call("network.deny", rules=list(rules))

    def network_rules(self) -> NetworkRules:
        """See `Backend`."""
        return values.record_in(self._call("network.rules"), NetworkRules)

    def network_log(self) -> list[NetworkEvent]:
        """See `Backend`."""
        return [values.event_in(item) for item in self._call("network.log").objects("events")]
