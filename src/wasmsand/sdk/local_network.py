"""The network of a sandbox in this process.

Owns `LocalNetwork`, a base of `LocalBackend`. Rules: as in `local`; a policy is changed by one
thread at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from wasmsand.machine import Machine
from wasmsand.machine.network.extra import InspectionImpossible
from wasmsand.sdk.errors import UnsupportedError
from wasmsand.sdk.results import NetworkRules

if TYPE_CHECKING:
    from wasmsand.machine.network.events import NetworkEvent
    from wasmsand.machine.network.policy import NetworkPolicy


class LocalNetwork:
    """What a machine may reach."""

    _machine: Machine
    _policy_lock: threading.Lock

    def allow_network(self, rules: tuple[str, ...]) -> None:
        """See `Backend`."""
        self._change_policy(lambda policy: policy.allowing(*rules))

    def deny_network(self, rules: tuple[str, ...]) -> None:
        """See `Backend`."""
        self._change_policy(lambda policy: policy.denying(*rules))

    def _change_policy(self, change: Callable[[NetworkPolicy], NetworkPolicy]) -> None:
        from wasmsand.machine.network.policy import NetworkPolicy

        bridge = self._machine.bridge
        with self._policy_lock:
            policy = change(bridge.policy or NetworkPolicy())
            if policy.ceiling is not None:
                policy.require_within(policy.ceiling)
            try:
                bridge.policy = policy
            except InspectionImpossible as problem:
                raise UnsupportedError(str(problem)) from None

    def network_rules(self) -> NetworkRules:
        """See `Backend`."""
        policy = self._machine.bridge.policy
        if policy is None:
            return NetworkRules((), ())
        return NetworkRules(tuple(map(str, policy.allow)), tuple(map(str, policy.deny)))

    def network_log(self) -> list[NetworkEvent]:
        """See `Backend`."""
        return self._machine.bridge.log.events()
