"""Which names stand for this machine alone.

A server that asks for no token answers programs of this machine only. A page of the web can
make a browser send requests to it: by its address, or by a name of the page's own domain
that was made to lead here (DNS rebinding). Rules: the `Host` header must be there once, be
well formed and name this machine; what a browser adds to requests of pages is refused.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether a name or an address stands for this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


Headers = Sequence[tuple[bytes, bytes]]
"""Names are in lower case."""


def foreign_host(headers: Headers) -> str | None:
    """What is wrong with the `Host` of a request; None if it names this machine."""
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(hosts) != 1:
        return f"{len(hosts)} Host headers"
    if not _is_local(hosts[0]):
        return f"the Host {hosts[0][:64]!r}"
    return None


def foreign_page(headers: Headers) -> str | None:
    """Whether a page of a browser sent a request; None if no page did."""
    for name, value in headers:
        if name == b"origin" or (
            name == b"sec-fetch-site" and value not in (b"none", b"same-origin")
        ):
            return "a page of a browser"
    return None


def is_local_origin(origin: str) -> bool:
    """Whether an `Origin` is a page that this machine serves."""
    scheme, colon, host = origin.partition("://")
    return bool(colon) and scheme in ("http", "https") and _is_local(host)


def _is_local(host: str) -> bool:
    matched = _HOST.fullmatch(host)
    return matched is not None and is_loopback(matched[1] or matched[2])
