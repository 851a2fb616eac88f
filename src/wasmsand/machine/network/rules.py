"""Rules of a network policy.

Owns `Rule`, its text form, and what it matches. The form is `[METHODS ]host[:port][/path]`:

    api.example.com              the host, every port
    *.example.com:443            every host below example.com (not example.com itself)
    *                            every public host
    10.1.2.3, 10.1.0.0/16        an address, or a network
    [2001:db8::1]:443            IPv6 with a port
    GET,HEAD api.example.com/v1/*    only these requests

Rules: `parse_rule` is the only way to make a rule, and a rule's text parses to the same rule. A
problem's message shows the right form. A path is the whole path unless it ends in `*`; a rule that
denies also covers what is below its path, and other spellings of it. A rule with methods or a path
is decided per request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from wasmsand.kernel.limits import NETWORK_RULE_LENGTH_MAX, NETWORK_RULES_MAX
from wasmsand.machine.network.addresses import (
    AddressKind,
    is_numeric,
    kind_of,
    legacy_address,
    names_private,
    parse_address,
)
from wasmsand.machine.network.host_names import NameProblem, shown, user_name
from wasmsand.machine.network.paths import PathProblem, canonical_path, denied_form

if TYPE_CHECKING:
    from wasmsand.machine.network.addresses import IPAddress, IPNetwork

PORT_MAX: Final = 65_535
EVERY: Final = "*"
_METHOD: Final = re.compile(r"[A-Za-z][A-Za-z-]{2,31}\Z")
_IPV4_START: Final = re.compile(r"[0-9.]+(?:/[0-9]+(?=[:/]|\Z))?")
_BRACKETED: Final = re.compile(r"\[([^\]]*)\](/[0-9]+(?=[:/]|\Z))?")
_HOST: Final = re.compile(r"[^:/]*")
_PORT: Final = re.compile(r":([^/]*)")
_FORM: Final = (
    'The form is [METHODS ]host[:port][/path], such as "api.example.com", "*.example.com:443",'
    ' "10.1.0.0/16", "[2001:db8::1]:443" or "GET,HEAD api.example.com/v1/*"'
)


class RuleProblem(ValueError):
    """A text is not a rule. The message shows the right form."""

    def __init__(self, text: object, why: str) -> None:
        super().__init__(
            f"{shown(text) if isinstance(text, str) else ascii(text)} is not a network rule:"
            f" {why}. {_FORM}"
        )


class Verdict(NamedTuple):
    """A decision of the policy."""

    allowed: bool
    inspected: bool = False
    """Whether requests on this connection have to be decided one by one."""
    reason: str = ""
    """Why it is refused, and what would allow it; "" if it is allowed."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `str(rule)` is its text in normal form."""

    host: str
    """A name, `*.` and a name, `*`, an address, or a network such as `10.0.0.0/8`."""
    port: int | None = None
    """None means every port."""
    methods: tuple[str, ...] = ()
    """Empty means every method."""
    path: str = ""
    """Empty means every path."""
    is_address: bool = False
    """Whether `host` is an address or a network."""

    def __str__(self) -> str:
        host = self.host
        if self.is_address and ":" in host and (self.port is not None or self.path):
            host = f"[{host}]"
        port = "" if self.port is None else f":{self.port}"
        methods = f"{','.join(self.methods)} " if self.methods else ""
        return f"{methods}{host}{port}{self.path}"

    @property
    def is_per_request(self) -> bool:
        """Whether the rule is about requests, not about connections."""
        return bool(self.methods or self.path)

    def matches_port(self, port: int | None) -> bool:
        """Whether the rule covers a port; None asks for any port at all."""
        return port is None or self.port is None or self.port == port

    def matches_name(self, name: str) -> bool:
        """Whether the rule covers a host name in normal form."""
        if self.is_address:
            return False
        if self.host.startswith("*."):
            return name.endswith(self.host[1:])
        return self.host in (EVERY, name)

    def network(self) -> IPNetwork:
        """The addresses of a rule that `is_address`."""
        return _network_of(self.host)

    def matches_address(self, address: IPAddress) -> bool:
        """Whether the rule is about an address or a network that contains `address`."""
        return self.is_address and address in self.network()

    def means_private(self, address: IPAddress) -> bool:
        """Whether the rule names `address`, which is not public."""
        return self.is_address and names_private(self.network(), address)

    def allows_request(self, method: str, path: str | None) -> bool:
        """Whether the rule, in an allow list, covers a request; `path` is canonical, or None if it
        has no canonical form."""
        if self.methods and method not in self.methods:
            return False
        if not self.path:
            return True
        if path is None:
            return False
        return path.startswith(self.path[:-1]) if self.path.endswith("*") else path == self.path

    def denies_request(self, method: str, path: str | None) -> bool:
        """Whether the rule, in a deny list, covers a request. A path without a canonical form could
        be any."""
        if self.methods and method.upper() not in self.methods:
            return False
        if not self.path or path is None:
            return True
        wanted, denied = denied_form(path), denied_form(self.path.rstrip("*"))
        if self.path.endswith("*") and not self.path.endswith("/*"):
            return wanted.startswith(denied)
        return f"{wanted}/".startswith(f"{denied}/")

    def is_within(self, other: Rule) -> bool:
        """Whether `other` allows everything that this rule allows."""
        return (
            self._has_hosts_within(other)
            and (other.port is None or other.port == self.port)
            and (
                not other.methods
                or (bool(self.methods) and set(self.methods) <= set(other.methods))
            )
            and self._has_paths_within(other)
        )

    def _has_hosts_within(self, other: Rule) -> bool:
        if self.is_address != other.is_address:
            return False
        if self.is_address:
            mine, theirs = self.network(), other.network()
            if mine.version != theirs.version:
                return False
            first, last = mine.network_address, mine.broadcast_address
            if kind_of(first) is not AddressKind.PUBLIC and not names_private(theirs, first):
                return mine == theirs
            return first in theirs and last in theirs
        if other.host == EVERY or other.host == self.host:
            return True
        return other.host.startswith("*.") and self.host.endswith(other.host[1:])

    def _has_paths_within(self, other: Rule) -> bool:
        if not other.path:
            return True
        if other.path.endswith("*"):
            return self.path.startswith(other.path[:-1])
        return self.path == other.path


@lru_cache(maxsize=2 * NETWORK_RULES_MAX)
def _network_of(host: str) -> IPNetwork:
    """Decisions are made with the sandbox's lock held, so networks are parsed once."""
    import ipaddress

    return ipaddress.ip_network(host)


@lru_cache(maxsize=NETWORK_RULES_MAX)
def known_rule(text: str) -> Rule:
    """`parse_rule` for texts that are used again and again, such as the hosts of secrets."""
    return parse_rule(text)


def parse_rule(text: str) -> Rule:
    """The rule that `text` says. `RuleProblem` if it says none."""
    if not isinstance(text, str):
        raise RuleProblem(text, "a rule is a string")
    if len(text) > NETWORK_RULE_LENGTH_MAX:
        raise RuleProblem(text, f"it has more than {NETWORK_RULE_LENGTH_MAX} characters")
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in text):
        raise RuleProblem(text, "it contains a control character")
    words = text.split()
    if not words or len(words) > 2:
        raise RuleProblem(text, "it is empty" if not words else "it has more than two words")
    methods = _methods(text, words[0]) if len(words) == 2 else ()
    target = words[-1]
    if "://" in target:
        raise RuleProblem(text, f"leave out the scheme: {shown(target.partition('://')[2])}")
    if "@" in target.partition("/")[0]:
        raise RuleProblem(text, "a host has no user name or password; leave out everything to '@'")
    host, is_address, rest = _host(text, target)
    port, rest = _port(text, rest)
    return Rule(host, port, methods, _path(text, rest), is_address)


def _methods(text: str, word: str) -> tuple[str, ...]:
    methods = []
    for method in word.split(","):
        if _METHOD.match(method) is None:
            raise RuleProblem(text, f"{shown(method)} is not an HTTP method")
        methods.append(method.upper())
    if "CONNECT" in methods:
        raise RuleProblem(text, "CONNECT would open a tunnel to any host, and cannot be allowed")
    return tuple(sorted(set(methods)))


def _host(text: str, target: str) -> tuple[str, bool, str]:
    """The host, whether it is an address, and the rest of the rule."""
    if target.startswith("["):
        found = _BRACKETED.match(target)
        if found is None:
            raise RuleProblem(text, "'[' without ']'")
        inside = found[1] + (found[2] or "")
        if ":" not in inside:
            raise RuleProblem(text, "only an IPv6 address is written in [ ]")
        return _network(text, inside), True, target[found.end() :]
    if target.count(":") > 1:
        return _network(text, target), True, ""
    host = _HOST.match(target)
    assert host is not None  # it matches the empty string
    name = host[0]
    if is_numeric(name):
        ipv4 = _IPV4_START.match(target)
        if ipv4 is not None and parse_address(name) is not None:
            return _network(text, ipv4[0]), True, target[ipv4.end() :]
        usual = legacy_address(name)
        raise RuleProblem(
            text,
            f"{shown(name)} is not an address"
            if usual is None
            else f"write the address as {usual}",
        )
    return _name(text, name), False, target[host.end() :]


def _network(text: str, host: str) -> str:
    """The normal form of an address or network."""
    import ipaddress

    if "%" in host:
        raise RuleProblem(text, "an address has no zone; leave out everything from '%'")
    try:
        network = ipaddress.ip_network(host, strict=False)
    except ValueError:
        raise RuleProblem(text, f"{shown(host)} is not an address or a network") from None
    first = network.network_address
    if "/" in host and ipaddress.ip_address(host.partition("/")[0]) != first:
        raise RuleProblem(
            text,
            f"the network of this length is {network}; if /{network.prefixlen} is a path,"
            " write the port before it",
        )
    if network.num_addresses == 1:
        address = parse_address(str(first))
        assert address is not None
        return str(address)
    if isinstance(first, ipaddress.IPv6Address) and first.ipv4_mapped is not None:
        raise RuleProblem(text, "write an IPv4 network in its IPv4 form")
    return str(network)


def _name(text: str, name: str) -> str:
    if name == EVERY:
        return EVERY
    below = name.startswith("*.")
    bare = name[2:] if below else name
    if "*" in bare:
        raise RuleProblem(text, "'*' stands only at the start, alone or as '*.'")
    try:
        return f"{'*.' if below else ''}{user_name(bare)}"
    except NameProblem as problem:
        raise RuleProblem(text, str(problem)) from None


def _port(text: str, rest: str) -> tuple[int | None, str]:
    found = _PORT.match(rest)
    if found is None:
        return None, rest
    digits = found[1]
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5):
        raise RuleProblem(text, f"{shown(digits)} is not a port; a port is 1 to {PORT_MAX}")
    port = int(digits)
    if not 1 <= port <= PORT_MAX:
        raise RuleProblem(text, f"{port} is not a port; a port is 1 to {PORT_MAX}")
    return port, rest[found.end() :]


def _path(text: str, rest: str) -> str:
    if not rest:
        return ""
    if "?" in rest or "#" in rest:
        raise RuleProblem(text, "a path has no '?' and no '#'; queries are not part of rules")
    body = rest.removesuffix("*")
    if "*" in body:
        raise RuleProblem(text, "'*' in a path stands only at its end")
    try:
        return canonical_path(body) + rest[len(body) :]
    except PathProblem as problem:
        raise RuleProblem(text, str(problem)) from None
