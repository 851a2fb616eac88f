"""Methods for the network of the sandbox.

Rules: what a client may allow is bounded only by `ceiling` of `create`. The events are those of the
sandbox's log; if `networkEvents` of `create` is true, each is also sent as a notification
`network.event`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from wasmsand.rpc import values
from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession
from wasmsand.sdk.options import SandboxOptions

if TYPE_CHECKING:
    from wasmsand.sdk.network import NetworkEvent


_EVENT_SECONDS: Final = 0.005
"""Shortest average time between two notifications, after a burst."""
_EVENT_BURST: Final = 200


def _allow(session: RpcSession, params: Params) -> Result:
    session.backend.allow_network(tuple(params.texts("rules")))
    return OK


def _deny(session: RpcSession, params: Params) -> Result:
    session.backend.deny_network(tuple(params.texts("rules")))
    return OK


def _rules(session: RpcSession, _: Params) -> Result:
    return values.record_out(session.backend.network_rules())


def _log(session: RpcSession, _: Params) -> Result:
    return {"events": [values.event_out(event) for event in session.backend.network_log()]}


def with_events(session: RpcSession, options: SandboxOptions) -> SandboxOptions:
    """Options of a sandbox whose events on the network are sent to the client."""
    if options.network is None:
        return options

    next_at = 0.0

    def send(event: NetworkEvent) -> None:
        nonlocal next_at
        # A guest can cause many events. While this waits, the log drops those that it has no room
        # for.
        time.sleep(max(0.0, next_at - time.monotonic()))
        next_at = max(next_at + _EVENT_SECONDS, time.monotonic() - _EVENT_BURST * _EVENT_SECONDS)
        session.notify("network.event", values.event_out(event))

    return replace(options, network=replace(options.network, on_event=send))


NETWORK_METHODS: Final = (
    Method("network.allow", _allow, ("rules",)),
    Method("network.deny", _deny, ("rules",)),
    Method("network.rules", _rules),
    Method("network.log", _log),
)
