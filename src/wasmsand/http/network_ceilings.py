"""What sandboxes of a token may reach."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from wasmsand.http.tokens import Token
from wasmsand.sdk.network import Network, NetworkEvent

if TYPE_CHECKING:
    from wasmsand.http.service import Service


def within_ceiling(network: Network, service: Service, owner: Token) -> Network:
    """A client's network under the ceiling of its token; its events are counted. Raises
    `ValueError` if it wants more."""

    def count(event: NetworkEvent) -> None:
        service.metrics.count_network(owner.name, event)

    return replace(network, ceiling=service.settings.network_of(owner), on_event=count)
