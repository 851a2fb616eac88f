"""`Network`: what a sandbox may reach.

Owns the public description of a policy and its plain form for other processes. Rules: a `Network`
is frozen and valid; its repr shows no secret; `machine.network.policy` checks and decides
everything. This module is imported only when a program uses a network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from wasmsand.machine.network.events import NetworkEvent
from wasmsand.machine.network.guest_trust import GUEST_VARIABLES
from wasmsand.machine.network.policy import Budget, NetworkPolicy, policy_of
from wasmsand.machine.network.tables import ENVIRONMENT
from wasmsand.sdk import arguments

__all__ = ["Network", "NetworkEvent"]

_BUDGET: Final = Budget()
_BUDGETS: Final = tuple(row.name for row in fields(Budget))
_TABLES: Final = ("hosts", "secrets", "placeholders")
_CEILINGS_MAX: Final = 4
"""How deep ceilings may be nested in the plain form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """What a sandbox may reach. Nothing is reachable unless a rule allows it.

    Example:
        Network(
            allow=["api.example.com", "*.wikipedia.org:443", "GET pypi.org/simple/*"],
            deny=["upload.wikipedia.org"],
            secrets={"api.example.com": {"Authorization": "Bearer ..."}},
        )

    A rule has the form `[METHODS ]host[:port][/path]`. The host is a name, `*.` and a name, `*` for
    every public host, an address, or a network such as `10.1.0.0/16`. Addresses that are not public
    (loopback, private, link-local, cloud metadata) are refused, whatever name leads to them, unless
    a rule names the address. Methods and a path are checked for each request. `deny` always wins.
    """

    allow: Sequence[str] = ()
    """Rules for what may be reached."""
    deny: Sequence[str] = ()
    """Rules for what may not be reached, although a rule in `allow` covers it."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Addresses of names, used instead of the host's name service: `{"api.test":
    "127.0.0.1:8080"}`. The name still needs a rule; the address needs none."""
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Headers that are set in requests to a host, outside the sandbox."""
    placeholders: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Texts that are replaced in headers of requests to a host, outside the sandbox."""
    connections_at_once: int = _BUDGET.connections_at_once
    """Most connections at once; likewise the following, in the life of the sandbox."""
    connections: int = _BUDGET.connections
    bytes_in: int = _BUDGET.bytes_in
    bytes_out: int = _BUDGET.bytes_out
    requests: int = _BUDGET.requests
    """Most requests to hosts whose requests are checked one by one."""
    proxy: str | None = field(default=None, repr=False)
    """A proxy of the host: None, `"environment"` (HTTPS_PROXY and so on), or its URL."""
    ask: Callable[[str, int], bool] | None = field(default=None, repr=False)
    """Called with a host and a port that no rule is about, on a thread; True allows it from now
    on. Only for sandboxes in this process."""
    on_event: Callable[[NetworkEvent], None] | None = field(default=None, repr=False)
    """Called for every event, on a thread. Not for sandboxes on a server."""
    ceiling: Network | None = None
    """A second description that also has to allow everything. `sandbox.network.allow` cannot exceed
    it."""
    _policy: NetworkPolicy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("allow", "deny"):
            put(self, name, arguments.rules(name, getattr(self, name)))
        for name in _BUDGETS:
            arguments.positive_integer(name, getattr(self, name))
        arguments.callback("ask", self.ask)
        arguments.callback("on_event", self.on_event)
        if self.ceiling is not None and not isinstance(self.ceiling, Network):
            raise TypeError("ceiling must be a Network or None")
        policy = policy_of(
            allow=self.allow,
            deny=self.deny,
            hosts=self.hosts,
            secrets=self.secrets,
            placeholders=self.placeholders,
            budget=Budget(**{name: getattr(self, name) for name in _BUDGETS}),
            proxy=self.proxy,
        )
        put(self, "allow", tuple(map(str, policy.allow)))
        put(self, "deny", tuple(map(str, policy.deny)))
        put(self, "hosts", dict(policy.hosts))
        for name in ("secrets", "placeholders"):
            put(self, name, {host: dict(row) for host, row in getattr(policy, name).items()})
        if self.ceiling is not None:
            policy = policy.under(self.ceiling._policy)
            policy.require_within(self.ceiling._policy)
        put(self, "_policy", policy)


def network_option(name: str, value: object) -> Network:
    """The option `network`: a `Network`, or a list of rules to allow."""
    if isinstance(value, Network):
        return value
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise TypeError(
            f'{name} must be a Network, a list of rules such as ["api.example.com:443"], or None,'
            f" not {type(value).__name__}"
        )
    return Network(allow=arguments.rules(name, value))


def policy_for(network: Network) -> NetworkPolicy:
    """The policy that a network describes."""
    return network._policy


def variables_for(network: Network) -> Mapping[str, str]:
    """Variables that programs of a sandbox with this network need."""
    return GUEST_VARIABLES if network._policy.inspects else {}


def uses_host_proxy(network: Network) -> bool:
    """Whether the proxy is that of the host's environment."""
    return network._policy.proxy == ENVIRONMENT


# The plain form, for other processes.

_PLAIN: Final = ("allow", "deny", *_TABLES, *_BUDGETS, "proxy")
NETWORK_FIELDS: Final = (*_PLAIN, "ceiling")
"""The fields that can be sent: all but the callbacks."""


def plain_network(network: Network) -> dict[str, Any]:
    """The fields of a network that are not the default, as JSON values. Contains secrets."""
    default = Network()
    plain: dict[str, Any] = {}
    for name in _PLAIN:
        value = getattr(network, name)
        if value != getattr(default, name):
            plain[name] = list(value) if isinstance(value, tuple) else value
    if network.ceiling is not None:
        plain["ceiling"] = plain_network(network.ceiling)
    return plain


def network_from_plain(name: str, value: object, depth: int = 0) -> Network:
    """The inverse of `plain_network`; a list is a list of rules to allow. Raises `ValueError`."""
    try:
        if not isinstance(value, Mapping):
            return network_option(name, value)
        unknown = [str(key) for key in value if key not in NETWORK_FIELDS]
        if unknown:
            known = ", ".join(NETWORK_FIELDS)
            raise ValueError(f"{name}: unknown field {unknown[0][:80]!r} (known: {known})")
        given = dict(value)
        ceiling = given.pop("ceiling", None)
        if ceiling is not None:
            if depth >= _CEILINGS_MAX:
                raise ValueError(f"{name}: at most {_CEILINGS_MAX} ceilings")
            given["ceiling"] = network_from_plain(f"{name}.ceiling", ceiling, depth + 1)
        return Network(**given)
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from None
