"""The network of one sandbox while it runs: `sandbox.network`.

Rules: the backend changes and checks everything. Nothing of the network is imported here, because
most sandboxes have none.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.results import NetworkRules

if TYPE_CHECKING:
    from wasmsand.machine.network.events import NetworkEvent


class SandboxNetwork:
    """The network of one sandbox: `sandbox.network`.

    Example:
        sandbox.network.allow("api.example.com:443")
        sandbox.commands.run("curl -sS https://api.example.com/")
        for event in sandbox.network.log():
            print(event.kind, event.host, event.port, event.allowed, event.reason)
    """

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment

    def allow(self, *rules: str) -> None:
        """Allow more, from now on. The form of rules is that of `Network.allow`. The same rule is
        taken out of `deny`; other rules there still win.

        Example:
            sandbox.network.allow("api.example.com", "*.wikipedia.org:443")
        """
        self._attachment.backend.allow_network(arguments.rules("rules", rules))

    def deny(self, *rules: str) -> None:
        """Deny something, from now on; connections that are open are reset. The same rule is taken
        out of `allow`.

        Example:
            sandbox.network.deny("api.example.com")
        """
        self._attachment.backend.deny_network(arguments.rules("rules", rules))

    def rules(self) -> NetworkRules:
        """Return the rules as they are now.

        Example:
            sandbox.network.rules().allow
        """
        return self._attachment.backend.network_rules()

    def log(self) -> builtins.list[NetworkEvent]:
        """Return the newest look-ups, connections and requests, allowed or not, oldest first.

        Example:
            [event for event in sandbox.network.log() if not event.allowed]
        """
        return self._attachment.backend.network_log()

    def __repr__(self) -> str:
        return f"<SandboxNetwork of {self._attachment!r}>"
