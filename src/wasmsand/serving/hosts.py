"""Recognises requests that do not come from a program on this machine.

A server without tokens serves only programs on this machine. But a web page can make a browser
send requests to the server: to its address, or to a host name of the page's own domain that
resolves to this machine (DNS rebinding). Rules: a request must have exactly one `Host` header,
well formed, that names this machine; requests with the headers that browsers add for pages are
refused.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Whether a name or an address means only this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


Headers = Sequence[tuple[bytes, bytes]]
"""Header names are in lower case."""


def foreign_host(headers: Headers) -> str | None:
    """What is wrong with the `Host` header; None if it names this machine."""
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(hosts) != 1:
        return f"{len(hosts)} Host headers"
    if not _is_local(hosts[0]):
        return f"the Host {hosts[0][:64]!r}"
    return None


def foreign_page(headers: Headers) -> str | None:
    """How the request shows that a web page sent it; None if it does not."""
    for name, value in headers:
        if name == b"origin" or (
            name == b"sec-fetch-site" and value not in (b"none", b"same-origin")
        ):
            return "headers of a web page"
    return None


def is_local_origin(origin: str) -> bool:
    """Whether an `Origin` is a page served by this machine."""
    scheme, colon, host = origin.partition("://")
    return bool(colon) and scheme in ("http", "https") and _is_local(host)


def _is_local(host: str) -> bool:
    matched = _HOST.fullmatch(host)
    return matched is not None and is_loopback(matched[1] or matched[2])
