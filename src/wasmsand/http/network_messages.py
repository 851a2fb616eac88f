"""Types of JSON requests and responses about the network of a sandbox. Rules: see `messages`."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from wasmsand.http.message_types import Positive, RequestMessage, ResponseMessage
from wasmsand.sdk.network import NetworkEvent

Rules = Annotated[list[str], Meta(max_length=4096)]
HostTable = Annotated[dict[str, dict[str, str]], Meta(max_length=4096)]


class NetworkWanted(RequestMessage):
    """What a sandbox may reach, within what the token may allow. A rule has the form
    `[METHODS ]host[:port][/path]`."""

    allow: Rules = []
    deny: Rules = []
    hosts: Annotated[dict[str, str], Meta(max_length=4096)] = {}
    """Addresses of names, which the token must be allowed to use."""
    secrets: HostTable = {}
    """Headers that are set in requests to a host, outside the sandbox."""
    placeholders: HostTable = {}
    """Texts that are replaced in headers of requests to a host, outside the sandbox."""
    connections_at_once: Positive | UnsetType = UNSET
    connections: Positive | UnsetType = UNSET
    bytes_in: Positive | UnsetType = UNSET
    bytes_out: Positive | UnsetType = UNSET
    requests: Positive | UnsetType = UNSET


class ChangeNetwork(RequestMessage):
    """Rules to allow or to deny."""

    rules: Rules


class NetworkLog(ResponseMessage):
    """The newest look-ups, connections and requests, oldest first."""

    events: list[NetworkEvent]
