"""Requests about the network of the sandbox.

Rules: as in JSON-RPC. A change is answered when programs trust the sandbox's authority, because
every connection by TLS ends in the kernel's worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wasmsand.kernel.errno import KernelError
from wasmsand.machine.network.policy import NetworkPolicy
from wasmsand.rpc import values
from wasmsand.sdk.errors import command_error
from wasmsand.web.network.bridge import require_possible
from wasmsand.web.service import OK, Answer, Call, Handler, Service

Change = Callable[[NetworkPolicy], NetworkPolicy]


def use_network(service: Service, call: Call, policy: NetworkPolicy) -> None:
    """Use a policy from now on, and answer the call."""

    def trusted() -> None:
        network = service.network
        old, network.policy = network.policy, policy
        try:
            service.machine.bridge.use_policy()
        except KernelError as error:
            network.policy = old
            service.fail(call.number, command_error(error, "the network"))
        else:
            service.reply(call.number, OK)

    require_possible(service.network.host, policy)
    service.network.with_authority(trusted)


def _change(service: Service, call: Call, change: Change) -> None:
    policy = change(service.network.policy or NetworkPolicy())
    if policy.ceiling is not None:
        policy.require_within(policy.ceiling)
    use_network(service, call, policy)


def _allow(service: Service, call: Call) -> None:
    rules = call.params.texts("rules")
    _change(service, call, lambda policy: policy.allowing(*rules))


def _deny(service: Service, call: Call) -> None:
    rules = call.params.texts("rules")
    _change(service, call, lambda policy: policy.denying(*rules))


def _rules(service: Service, call: Call) -> Answer:
    policy = service.network.policy or NetworkPolicy()
    return {"allow": list(map(str, policy.allow)), "deny": list(map(str, policy.deny))}, None


def _log(service: Service, call: Call) -> Answer:
    events = service.machine.bridge.log.events()
    return {"events": [values.event_out(event) for event in events]}, None


NETWORK_METHODS: Final[dict[str, Handler]] = {
    "network.allow": _allow,
    "network.deny": _deny,
    "network.rules": _rules,
    "network.log": _log,
}
