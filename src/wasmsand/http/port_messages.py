"""Types of JSON requests and responses about servers in a sandbox. Rules: see `messages`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from wasmsand.http.message_types import RequestMessage, ResponseMessage
from wasmsand.sdk.results import PortInfo


class PortList(ResponseMessage):
    """The ports on which programs of the sandbox listen, sorted."""

    ports: list[PortInfo]


class WaitPort(RequestMessage):
    """How long to wait for a program that listens."""

    wait_ms: Annotated[float, Meta(ge=0)] = 0
    """At most 20,000."""


class PortState(ResponseMessage):
    """Whether a program listens on a port."""

    port: int
    listens: bool
