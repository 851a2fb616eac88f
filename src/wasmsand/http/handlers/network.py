"""The network of a sandbox: its rules and its log.

Rules: a client can never allow more than its token. The token's ceiling is part of the sandbox's
network, which decides; a sandbox that was created without a network gets none later.
"""

from __future__ import annotations

from wasmsand.http.network_messages import ChangeNetwork, NetworkLog
from wasmsand.http.routing import Call
from wasmsand.sdk import arguments
from wasmsand.sdk.results import NetworkRules


async def rules(call: Call[None, None]) -> NetworkRules:
    """`GET /v1/sandboxes/{sandbox}/network`"""
    return await call.in_file_thread(call.entry.sandbox.backend.network_rules)


async def log(call: Call[None, None]) -> NetworkLog:
    """`GET /v1/sandboxes/{sandbox}/network/log`"""
    return NetworkLog(events=await call.in_file_thread(call.entry.sandbox.backend.network_log))


async def allow(call: Call[None, ChangeNetwork]) -> NetworkRules:
    """`POST /v1/sandboxes/{sandbox}/network/allow`"""
    return await _change(call, is_allowing=True)


async def deny(call: Call[None, ChangeNetwork]) -> NetworkRules:
    """`POST /v1/sandboxes/{sandbox}/network/deny`"""
    return await _change(call, is_allowing=False)


async def _change(call: Call[None, ChangeNetwork], *, is_allowing: bool) -> NetworkRules:
    sandbox = call.entry.sandbox
    if sandbox.options.network is None:
        raise ValueError("the sandbox has no network; create it with a network, such as []")
    given = arguments.rules("rules", call.body.rules)
    backend = sandbox.backend

    def work() -> NetworkRules:
        if is_allowing:
            backend.allow_network(given)
        else:
            backend.deny_network(given)
        return backend.network_rules()

    return await call.in_file_thread(work)
