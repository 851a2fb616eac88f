"""The network policy of a sandbox: what may be reached, and how much.

Owns `NetworkPolicy`, all decisions about names, addresses and requests, and `Budget`. Rules: a
policy is frozen and plain, and decides without any network. What is not allowed is refused; a deny
rule always wins. An address that is not public is refused, whatever name led to it, unless an
allow rule names the address or `hosts` maps the name to it. A `ceiling` is a second policy that
also has to allow everything. No secret is in a repr, a message or a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from wasmsand.kernel.limits import (
    NETWORK_BYTES_IN,
    NETWORK_BYTES_OUT,
    NETWORK_CONNECTIONS,
    NETWORK_OPEN_CONNECTIONS,
    NETWORK_REQUESTS,
    NETWORK_RULES_MAX,
)
from wasmsand.machine.network.addresses import (
    AddressKind,
    embedded,
    kind_of,
    parse_address,
    plain,
)
from wasmsand.machine.network.host_names import NameProblem, guest_name, shown
from wasmsand.machine.network.paths import PathProblem, canonical_path
from wasmsand.machine.network.reasons import as_rule, because, not_allowed
from wasmsand.machine.network.rules import Rule, RuleProblem, Verdict, known_rule, parse_rule
from wasmsand.machine.network.tables import (
    HostAddress,
    host_address,
    mapped_hosts,
    proxy_url,
    secret_headers,
    secret_placeholders,
)

if TYPE_CHECKING:
    from wasmsand.machine.network.addresses import IPAddress

_Value = TypeVar("_Value")
_SHOWN_RULES: Final = 20
_ALLOWED: Final = Verdict(True)
_INSPECTED: Final = Verdict(True, inspected=True)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of the network a sandbox may use. Connections and requests that were refused do not
    count."""

    connections_at_once: int = NETWORK_OPEN_CONNECTIONS
    connections: int = NETWORK_CONNECTIONS
    bytes_in: int = NETWORK_BYTES_IN
    bytes_out: int = NETWORK_BYTES_OUT
    requests: int = NETWORK_REQUESTS
    """Requests that the bridge sees: those to inspected hosts."""

    def within(self, other: Budget) -> Budget:
        """The smaller of both, number by number."""
        return Budget(
            min(self.connections_at_once, other.connections_at_once),
            min(self.connections, other.connections),
            min(self.bytes_in, other.bytes_in),
            min(self.bytes_out, other.bytes_out),
            min(self.requests, other.requests),
        )


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """What a sandbox may reach. `NetworkPolicy()` allows nothing; `policy_of` makes one from
    text."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)
    """Addresses of names (`IP` or `IP:port`), used instead of the host's name service."""
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Headers that the bridge sets in requests, by host (a rule without methods and path)."""
    placeholders: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Texts that the bridge replaces in requests, by host."""
    budget: Budget = Budget()
    proxy: str | None = field(default=None, repr=False)
    """None, "environment" (the host's HTTP_PROXY and so on), or the URL of a proxy. Not in the
    repr, because it may contain a password."""
    ceiling: NetworkPolicy | None = None
    """A policy that also has to allow everything."""

    def __post_init__(self) -> None:
        """Check the tables and bring them into normal form. `ValueError` shows the right form."""
        object.__setattr__(self, "hosts", mapped_hosts(self.hosts))
        object.__setattr__(self, "secrets", secret_headers(self.secrets))
        object.__setattr__(self, "placeholders", secret_placeholders(self.placeholders))
        object.__setattr__(self, "proxy", proxy_url(self.proxy))

    @property
    def allows_nothing(self) -> bool:
        """Whether every decision is a refusal."""
        return not self.allow or (self.ceiling is not None and self.ceiling.allows_nothing)

    @property
    def inspects(self) -> bool:
        """Whether there may be hosts whose requests have to be seen."""
        return (
            bool(self.secrets or self.placeholders)
            or any(rule.is_per_request for rule in (*self.allow, *self.deny))
            or (self.ceiling is not None and self.ceiling.inspects)
        )

    # Decisions.

    def decide_name(self, name: str, port: int | None) -> Verdict:
        """Whether a guest may look up `name` (port None) or connect to it at `port`. Addresses are
        decided as such; other numbers that inet_aton(3) understands are refused."""
        address = parse_address(name)
        if address is not None:
            return self._decide_literal(address, port)
        try:
            name = guest_name(name)
        except NameProblem as problem:
            return Verdict(False, reason=f"{shown(name)} is not a host name: {problem}")
        verdict = self._decide_known_name(name, port)
        return self._under_ceiling(verdict, lambda ceiling: ceiling._decide_known_name(name, port))

    def decide_address(self, ip: str | IPAddress, port: int, *, name: str | None) -> Verdict:
        """Whether the bridge may connect to an address at `port`. `name` is the allowed name that
        led to it, or None if the guest itself named the address. The port is the one that the
        bridge connects to, which `hosts` may have changed."""
        address = parse_address(ip) if isinstance(ip, str) else plain(ip)
        if address is None:
            return Verdict(False, reason=f"{shown(str(ip))} is not an address")
        if name is None:
            return self._decide_literal(address, port)
        named = self.decide_name(name, None)
        if not named.allowed:
            return named
        name = guest_name(name)
        verdict = self._decide_address_of(address, port, name)
        if self.ceiling is not None and name in self.hosts:
            # The user of this policy chose the address, so the ceiling must allow the address.
            return self._under_ceiling(
                verdict, lambda ceiling: ceiling._decide_known_literal(address, port)
            )
        return self._under_ceiling(
            verdict, lambda ceiling: ceiling._decide_address_of(address, port, name)
        )

    def decide_request(self, name: str, port: int, method: str, path: str) -> Verdict:
        """Whether a guest may send a request to an inspected host. `name` may be an address; `path`
        is the target of the request line."""
        if method.upper() == "CONNECT" or not (path.startswith("/") or path == "*"):
            return Verdict(
                False,
                inspected=True,
                reason=f"{shown(method)} {shown(path)}: {name} is not used as a proxy",
            )
        connection = self.decide_name(name, port)
        if not connection.allowed:
            return connection
        verdict = self._decide_known_request(name, port, method, path)
        return self._under_ceiling(
            verdict, lambda ceiling: ceiling._decide_known_request(name, port, method, path)
        )

    def _under_ceiling(
        self, verdict: Verdict, decide: Callable[[NetworkPolicy], Verdict]
    ) -> Verdict:
        """A verdict, and that of the ceiling if it is allowed."""
        if self.ceiling is None or not verdict.allowed:
            return verdict
        upper = decide(self.ceiling)
        if not upper.allowed:
            return Verdict(False, reason=f"{upper.reason} (the ceiling of this sandbox)")
        return Verdict(True, verdict.inspected or upper.inspected)

    def _decide_known_name(self, name: str, port: int | None) -> Verdict:
        allowing = [rule for rule in self.allow if rule.matches_name(name)]
        for rule in self.deny:
            covers_port = rule.port is None or rule.port == port
            if rule.matches_name(name) and covers_port and not rule.is_per_request:
                return Verdict(False, reason=f"{as_rule(name, port)} is denied by {str(rule)!r}")
        if not any(rule.matches_port(port) for rule in allowing):
            return not_allowed(name, port)
        return _INSPECTED if self._is_inspected(name, None, port) else _ALLOWED

    def _decide_literal(self, address: IPAddress, port: int | None) -> Verdict:
        """An address that a guest uses without a name."""
        verdict = self._decide_known_literal(address, port)
        return self._under_ceiling(
            verdict, lambda ceiling: ceiling._decide_known_literal(address, port)
        )

    def _decide_known_literal(self, address: IPAddress, port: int | None) -> Verdict:
        denied = self._denied_address(address, port)
        if denied is not None:
            return denied
        is_public = kind_of(address) is AddressKind.PUBLIC
        for rule in self.allow:
            named = rule.matches_address(address) if is_public else rule.means_private(address)
            if named and rule.matches_port(port):
                inspected = self._is_inspected(None, address, port)
                return _INSPECTED if inspected else _ALLOWED
        return not_allowed(str(address), port, kind_of(address))

    def _decide_address_of(self, address: IPAddress, port: int, name: str) -> Verdict:
        """An address that an allowed name led to."""
        denied = self._denied_address(address, port)
        if denied is not None:
            return denied
        kind = kind_of(address)
        inspected = self._is_inspected(name, None, None)
        verdict = _INSPECTED if inspected else _ALLOWED
        if kind is AddressKind.PUBLIC:
            return verdict
        mapped = self._address_of(name)
        if mapped is not None and mapped.is_at(address, port):
            return verdict
        if any(rule.means_private(address) and rule.matches_port(port) for rule in self.allow):
            return verdict
        return Verdict(
            False,
            reason=f"{name} leads to {address}, a {kind.value} address, which no rule names;"
            f" to allow it, add {as_rule(str(address), port)!r} to network.allow",
        )

    def _decide_known_request(self, name: str, port: int, method: str, path: str) -> Verdict:
        address = parse_address(name)
        host = name if address is not None else guest_name(name)
        allow = [rule for rule in self.allow if _is_about(rule, host, address, port)]
        deny = [rule for rule in self.deny if _is_about(rule, host, address, port)]
        canonical: str | None = None
        problem = ""
        if any(rule.path for rule in (*allow, *deny)):
            try:
                canonical = canonical_path(path)
            except PathProblem as error:
                problem = str(error)
        request = f"{shown(method)[1:-1]} {host}:{port}{shown(path.partition('?')[0])[1:-1]}"
        for rule in deny:
            if rule.denies_request(method, canonical):
                return Verdict(
                    False, True, f"{request} is denied by {str(rule)!r}" + because(problem)
                )
        if any(rule.allows_request(method, canonical) for rule in allow):
            return _INSPECTED
        hint = "" if problem else f"; to allow it, add {request!r} to network.allow"
        return Verdict(False, True, f"{request} is not allowed{because(problem)}{hint}")

    def _denied_address(self, address: IPAddress, port: int | None) -> Verdict | None:
        """A refusal, if a deny rule covers an address or an address that it carries."""
        for rule in self.deny:
            if not rule.is_address or rule.is_per_request:
                continue
            if rule.port is not None and rule.port != port:
                continue
            if any(rule.matches_address(form) for form in (address, *embedded(address))):
                return Verdict(
                    False, reason=f"{as_rule(str(address), port)} is denied by {str(rule)!r}"
                )
        return None

    def _is_inspected(self, name: str | None, address: IPAddress | None, port: int | None) -> bool:
        """Whether requests to a host have to be seen, at `port` or (None) at some port: some are
        denied, or only some are allowed, or there are secrets for the host."""
        host = name or str(address)
        allow = [rule for rule in self.allow if _is_about(rule, host, address, port)]
        deny = [rule for rule in self.deny if _is_about(rule, host, address, port)]
        is_open = port is not None and any(not rule.is_per_request for rule in allow)
        deciding = deny if is_open else (*allow, *deny)
        if any(rule.is_per_request for rule in deciding):
            return True
        return self._has_secrets(host, address, port)

    def _has_secrets(self, host: str, address: IPAddress | None, port: int | None) -> bool:
        return bool(
            _entries_of(self.secrets, host, address, port)
            or _entries_of(self.placeholders, host, address, port)
        )

    # Tables.

    def mapped(self, name: str, port: int) -> tuple[str, int] | None:
        """Where `hosts` leads a name: an address, and the port to connect to; None if it does not
        mention the name."""
        try:
            where = self._address_of(guest_name(name))
        except NameProblem:
            return None
        return None if where is None else (where.address, where.port or port)

    def _address_of(self, name: str) -> HostAddress | None:
        """The entry for a name in `hosts`, or in those of the ceiling."""
        found = self.hosts.get(name)
        if found is not None:
            return host_address(found)
        return None if self.ceiling is None else self.ceiling._address_of(name)

    def headers_for(self, name: str, port: int) -> dict[str, str]:
        """The secret headers of requests to a host; those of the ceiling win."""
        headers = _table_for(self.secrets, name, port)
        return headers if self.ceiling is None else headers | self.ceiling.headers_for(name, port)

    def placeholders_for(self, name: str, port: int) -> dict[str, str]:
        """The placeholders in requests to a host, and their values."""
        found = _table_for(self.placeholders, name, port)
        return found if self.ceiling is None else found | self.ceiling.placeholders_for(name, port)

    # Changes.

    def allowing(self, *rules: str | Rule) -> NetworkPolicy:
        """This policy with more allow rules. The same rule is taken out of `deny`; other deny rules
        still win."""
        new = _rules(rules)
        return replace(
            self,
            allow=_joined(self.allow, new),
            deny=tuple(rule for rule in self.deny if rule not in new),
        )

    def denying(self, *rules: str | Rule) -> NetworkPolicy:
        """This policy with more deny rules. The same rule is taken out of `allow`."""
        new = _rules(rules)
        return replace(
            self,
            allow=tuple(rule for rule in self.allow if rule not in new),
            deny=_joined(self.deny, new),
        )

    def under(self, ceiling: NetworkPolicy) -> NetworkPolicy:
        """This policy, limited by another one, which also chooses the proxy."""
        return replace(
            self,
            ceiling=ceiling,
            budget=self.budget.within(ceiling.budget),
            proxy=ceiling.proxy,
        )

    def require_within(self, ceiling: NetworkPolicy) -> None:
        """`ValueError` if this policy wants more than a ceiling allows. The decisions heed the
        ceiling too; this tells the user early."""
        for rule in self.allow:
            if not any(rule.is_within(upper) for upper in ceiling.allow):
                raise ValueError(
                    f"network: {str(rule)!r} exceeds what may be allowed here:"
                    f" {', '.join(map(str, ceiling.allow[:_SHOWN_RULES])) or 'nothing'}"
                    f"{', ...' if len(ceiling.allow) > _SHOWN_RULES else ''}"
                )
            if rule in ceiling.deny:
                raise ValueError(f"network: {str(rule)!r} is denied here")
        for name, where in self.hosts.items():
            target = host_address(where)
            address = parse_address(target.address)
            assert address is not None
            # The address must be allowed, and must not get secrets that are for the real host.
            is_secret = ceiling._has_secrets(name, None, None)
            if is_secret or not ceiling._decide_known_literal(address, target.port).allowed:
                raise ValueError(f"network: hosts: {name} may not be at {where} here")


def policy_of(
    *,
    allow: Iterable[str | Rule] = (),
    deny: Iterable[str | Rule] = (),
    hosts: Mapping[str, str] | None = None,
    secrets: Mapping[str, Mapping[str, str]] | None = None,
    placeholders: Mapping[str, Mapping[str, str]] | None = None,
    budget: Budget | None = None,
    proxy: str | None = None,
) -> NetworkPolicy:
    """A policy from what a user wrote. `RuleProblem` or `ValueError` if something is malformed."""
    return NetworkPolicy(
        _rules(allow),
        _rules(deny),
        {} if hosts is None else hosts,
        {} if secrets is None else secrets,
        {} if placeholders is None else placeholders,
        budget or Budget(),
        proxy,
    )


def _rules(rules: Iterable[str | Rule]) -> tuple[Rule, ...]:
    if isinstance(rules, str):
        raise RuleProblem(rules, "rules are a list of strings; write [...] around it")
    made = (rule if isinstance(rule, Rule) else parse_rule(rule) for rule in rules)
    return _joined((), tuple(made))


def _joined(first: tuple[Rule, ...], second: tuple[Rule, ...]) -> tuple[Rule, ...]:
    rules = tuple(dict.fromkeys((*first, *second)))
    if len(rules) > NETWORK_RULES_MAX:
        raise ValueError(f"a network policy has at most {NETWORK_RULES_MAX} rules")
    return rules


def _is_about(rule: Rule, host: str, address: IPAddress | None, port: int | None) -> bool:
    """Whether a rule covers a host, which is a name unless `address` is given."""
    if not rule.matches_port(port):
        return False
    return rule.matches_name(host) if address is None else rule.matches_address(address)


def _entries_of(
    table: Mapping[str, _Value], host: str, address: IPAddress | None, port: int | None
) -> list[_Value]:
    """The values of all hosts in a table that cover a host."""
    return [
        value for key, value in table.items() if _is_about(known_rule(key), host, address, port)
    ]


def _table_for(table: Mapping[str, Mapping[str, str]], name: str, port: int) -> dict[str, str]:
    found: dict[str, str] = {}
    address = parse_address(name)
    host = name if address is not None else guest_name(name)
    for values in _entries_of(table, host, address, port):
        found |= values
    return found
