"""The tables of a network policy: hosts, secrets, placeholders; and the proxy.

Owns how they are checked. Rules: host names are in normal form afterwards; no message contains a
secret or a part of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from wasmsand.kernel.limits import NETWORK_RULES_MAX
from wasmsand.machine.network.addresses import parse_address
from wasmsand.machine.network.host_names import NameProblem, shown, user_name
from wasmsand.machine.network.rules import EVERY, PORT_MAX, parse_rule

if TYPE_CHECKING:
    from wasmsand.machine.network.addresses import IPAddress

ENVIRONMENT: Final = "environment"
"""The proxy that the host's environment names."""
PLACEHOLDER_MIN: Final = 8
"""Shortest placeholder: a short one could stand in a request by chance."""
_SECRET_MAX: Final = 64 * 1024
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_HEADER_TEXT: Final = re.compile("[\\t -~\xa0-\xff]+\\Z")
_FRAMING: Final = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip
"""Headers that delimit messages: setting them would break requests."""
_PROXY: Final = re.compile(
    r"http://(?:[^@/\s]*@)?(\[[0-9a-fA-F:.]+\]|[^:/@\s\[\]]+)(?::([0-9]+))?/?\Z"
)


class HostAddress(NamedTuple):
    """Where a name leads."""

    address: str
    """In normal form."""
    port: int | None = None
    """The port to connect to; None for the port that the guest asks for."""

    def __str__(self) -> str:
        if self.port is None:
            return self.address
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"

    def is_at(self, address: IPAddress, port: int) -> bool:
        """Whether this is an address and the port is the right one."""
        return self.address == str(address) and self.port in (None, port)


def mapped_hosts(hosts: Mapping[str, str]) -> dict[str, str]:
    """`hosts` of a policy, checked."""
    _require_table(hosts, "hosts", 'hosts={"api.example.com": "127.0.0.1:8080"}')
    made: dict[str, str] = {}
    for name, where in hosts.items():
        try:
            key = user_name(name)
        except NameProblem as problem:
            raise ValueError(f"hosts: {shown(name)} is not a host name: {problem}") from None
        if not isinstance(where, str):
            raise ValueError(f"hosts: the address of {shown(name)} is a string")
        made[key] = str(host_address(where, name))
    return made


def host_address(where: str, name: str = "") -> HostAddress:
    """The address that `IP` or `IP:port` says; `name` is for a message."""
    address = parse_address(where)
    if address is not None:
        return HostAddress(str(address))
    host, _, digits = where.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    address = parse_address(host)
    is_port = digits.isascii() and digits.isdigit() and 1 <= int(digits[:6]) <= PORT_MAX
    if address is None or not is_port:
        raise ValueError(
            f"hosts: {shown(where)} is not the address of {shown(name)}; write an IP address with"
            ' or without a port, such as "127.0.0.1", "127.0.0.1:8080" or "[::1]:8080"'
        )
    return HostAddress(str(address), int(digits))


def secret_headers(secrets: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """`secrets` of a policy, checked."""
    example = 'secrets={"api.example.com": {"Authorization": "Bearer ..."}}'
    made: dict[str, dict[str, str]] = {}
    for host, headers in _hosts_with_texts(secrets, "secrets", example):
        for header, value in headers.items():
            if _HEADER.match(header) is None or header.lower() in _FRAMING:
                raise ValueError(f"secrets: {shown(header)} is not a header that can be set")
            if not _is_header_value(value):
                raise ValueError(
                    f"secrets: the value of {shown(header)} for {shown(host)} is not the value of"
                    " a header: it has a control character, a space at an end or a character"
                    " outside Latin-1, or is empty or too long"
                )
        made[host] = made.get(host, {}) | headers
    return made


def secret_placeholders(placeholders: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """`placeholders` of a policy, checked."""
    example = 'placeholders={"api.example.com": {"key-for-the-api": "the real key"}}'
    made: dict[str, dict[str, str]] = {}
    for host, texts in _hosts_with_texts(placeholders, "placeholders", example):
        for placeholder, value in texts.items():
            if len(placeholder) < PLACEHOLDER_MIN or not _is_header_value(placeholder):
                raise ValueError(
                    f"placeholders: a placeholder for {shown(host)} has at least"
                    f" {PLACEHOLDER_MIN} letters that can be in a header"
                )
            if not _is_header_value(value):
                raise ValueError(
                    f"placeholders: the value of {shown(placeholder)} for {shown(host)} cannot be"
                    " in a header"
                )
        made[host] = made.get(host, {}) | texts
    return made


def _hosts_with_texts(
    table: Mapping[str, Mapping[str, str]], what: str, example: str
) -> list[tuple[str, dict[str, str]]]:
    """Hosts in normal form, with their texts."""
    _require_table(table, what, example)
    made = []
    for host, texts in table.items():
        rule = parse_rule(host)
        if rule.is_per_request or rule.host == EVERY:
            raise ValueError(f"{what}: {shown(host)} names one host, or *.name; write {example}")
        _require_table(texts, f"{what} of {shown(host)}", example)
        for text in (*texts, *texts.values()):
            if not isinstance(text, str):
                raise ValueError(f"{what} of {shown(host)} are strings; write {example}")
        made.append((str(rule), dict(texts)))
    return made


def _require_table(table: object, what: str, example: str) -> None:
    if not isinstance(table, Mapping):
        raise ValueError(f"{what} is a dict; write {example}")
    if len(table) > NETWORK_RULES_MAX:
        raise ValueError(f"{what} has at most {NETWORK_RULES_MAX} entries")
    if not all(isinstance(key, str) for key in table):
        raise ValueError(f"{what} has strings as keys; write {example}")


def _is_header_value(value: str) -> bool:
    return (
        0 < len(value) <= _SECRET_MAX
        and value.strip() == value
        and all(
            letter == "\t" or " " <= letter <= "~" or "\xa0" <= letter <= "\xff" for letter in value
        )
    )


def proxy_url(proxy: str | None) -> str | None:
    """`proxy` of a policy, checked. It may contain a password, so no message shows it."""
    if proxy is None or proxy == ENVIRONMENT:
        return proxy
    found = _PROXY.match(proxy) if isinstance(proxy, str) else None
    if found is None or not 1 <= int((found[2] or "80")[:6]) <= PORT_MAX:
        raise ValueError(
            'proxy is None, "environment" (HTTP_PROXY and so on of the host), or a URL such as'
            ' "http://proxy.example.com:3128" or "http://user:password@10.0.0.1:3128"'
        )
    return proxy
