"""The network policy: rules as users write them, names, addresses and requests as guests send them.

An input is lines: rules to allow, an empty line, rules to deny, an empty line, and questions: a
name or an address, a port, a method and a path, separated by tabs. Rules: a text is a rule or is
refused with `RuleProblem`; a rule's text is the same rule; no decision raises; an address that is
not public is allowed only if a rule names it; a deny rule that covers a name always wins; a policy
under a ceiling never allows more than the ceiling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from fuzz.target import Finding, Target
from wasmsand.machine.network.addresses import AddressKind, kind_of, parse_address
from wasmsand.machine.network.host_names import NameProblem, guest_name
from wasmsand.machine.network.policy import NetworkPolicy, policy_of
from wasmsand.machine.network.rules import Rule, RuleProblem, Verdict, parse_rule

_MOST_LINES: Final = 40
_CEILING: Final = policy_of(
    allow=["*.example", "GET api.test/v1/*", "10.0.0.0/8:80", "*:443"],
    deny=["evil.example", "api.test/v1/admin", "10.1.0.0/16"],
)
_WORDS: Final = (
    b"*", b"*.", b"example.com", b"api.test", b".", b"..", b":", b":80", b":0", b":65536", b"/",
    b"/v1/*", b"/../", b"%2e%2e", b"%2f", b"//", b"10.0.0.0/8", b"127.0.0.1", b"::1", b"[::1]",
    b"::ffff:", b"%eth0", b"64:ff9b::", b"2002:7f00:1::", b"169.254.169.254", b"0x7f.1",
    b"0177.1", b"2130706433", b"GET ", b"CONNECT ", b"GET,POST ", b"xn--", b"\xc3\xbc",
    b"\xe3\x80\x82", b"\xef\xbc\x91", b"\xd0\xb0", b"\t", b"\n", b"\n\n", b"@", b"?", b"#", b";",
    b"\\", b"_", b"-", b"a" * 63, b"a" * 64, b"https://", b"evil.example",
)  # fmt: skip


class NetworkRules(Target):
    """Rules and decisions."""

    name = "network-rules"
    about = "rules of the network policy, and decisions about hostile names, addresses and paths"
    words = _WORDS
    longest = 4096

    def seeds(self) -> Iterable[bytes]:
        """See `Target`."""
        yield b"*.example\n10.0.0.0/8\n\nevil.example\n\nwww.example\t80\tGET\t/v1/x\n"
        yield b"GET,HEAD api.test/v1/*\n\n\napi.test\t443\tGET\t/v1/../admin\n"
        yield b"*\n0.0.0.0/0\n::/0\n\n\n::ffff:127.0.0.1\t80\tGET\t/\n"

    def run(self, data: bytes) -> None:
        """See `Target`."""
        parts = data.decode("utf-8", "surrogateescape").split("\n\n", 2)
        parts += [""] * (3 - len(parts))
        allow, deny = _rules(parts[0]), _rules(parts[1])
        policy = policy_of(allow=allow, deny=deny)
        for line in parts[2].split("\n")[:_MOST_LINES]:
            _ask(policy, line)


def _rules(text: str) -> list[Rule]:
    found = []
    for line in text.split("\n")[:_MOST_LINES]:
        try:
            rule = parse_rule(line)
        except RuleProblem as problem:
            if not str(problem).isascii() or len(str(problem)) > 2000:
                raise Finding("message", repr(problem)) from None
            continue
        if parse_rule(str(rule)) != rule:
            raise Finding("text", f"{rule!r} is written {str(rule)!r}")
        if not rule.is_within(rule):
            raise Finding("within", f"{rule!r} is not within itself")
        found.append(rule)
    return found


def _ask(policy: NetworkPolicy, line: str) -> None:
    host, port_text, method, path = (line.split("\t") + [""] * 4)[:4]
    port = int(port_text) if port_text.isascii() and port_text.isdecimal() else 80
    port = max(1, min(port, 65535))
    limited = policy.under(_CEILING)
    decisions: tuple[Callable[[NetworkPolicy], Verdict], ...] = (
        lambda of: of.decide_name(host, port),
        lambda of: of.decide_name(host, None),
        lambda of: of.decide_address(host, port, name=None),
        lambda of: of.decide_address(host, port, name="www.example"),
        lambda of: of.decide_request(host, port, method or "GET", path or "/"),
    )
    for decide in decisions:
        verdict, upper = decide(policy), decide(limited)
        if upper.allowed and not (verdict.allowed and decide(_CEILING).allowed):
            raise Finding("ceiling", f"{line!r} is allowed although a ceiling refuses it")
        if not verdict.allowed and not verdict.reason:
            raise Finding("reason", f"{line!r} is refused without a reason")
    policy.mapped(host, port)
    address = parse_address(host)
    if address is not None:
        if (
            kind_of(address) is not AddressKind.PUBLIC
            and policy.decide_address(host, port, name=None).allowed
            and not any(rule.means_private(address) for rule in policy.allow)
        ):
            raise Finding("private", f"{host!r} is allowed, and no rule names it")
        return
    try:
        name = guest_name(host)
    except NameProblem:
        if policy.decide_name(host, port).allowed:
            raise Finding("name", f"{host!r} is no name, and is allowed") from None
        return
    whole = [rule for rule in policy.deny if not rule.is_per_request and rule.matches_port(port)]
    if any(rule.matches_name(name) for rule in whole) and policy.decide_name(host, port).allowed:
        raise Finding("deny", f"{host!r} is allowed although a rule denies it")
