"""Which names stand for this machine alone.

A server that asks for no token answers programs of this machine only. A page of the web can
make a browser send requests to it: by its address, or by a name of the page's own domain
that was made to lead here (DNS rebinding). Rules: the `Host` header must be there once, be
well formed and name this machine; what a browser adds to requests of pages is refused.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether a name or an address stands for this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def foreign_reason(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Why a request does not come from a program of this machine; None if it may. Names of
    `headers` are in lower case."""
    hosts, origins, site = [], 0, b"none"
    for name, value in headers:
        if name == b"host":
            hosts.append(value)
        elif name == b"origin":
            origins += 1
        elif name == b"sec-fetch-site":
            site = value
    if len(hosts) != 1:
        return f"{len(hosts)} Host headers"
    matched = _HOST.fullmatch(hosts[0].decode("latin-1"))
    if matched is None:
        return "a Host that is no name"
    if not is_loopback(matched[1] or matched[2]):
        return f"the Host {hosts[0].decode('latin-1')[:64]!r}"
    if origins or site not in (b"none", b"same-origin"):
        return "a page of a browser"
    return None
