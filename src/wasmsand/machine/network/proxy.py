"""Connections through an HTTP proxy of the host.

Owns `ProxyAddress`, where a proxy is, and `Tunnel`, the CONNECT request to it. Rules: the answer of
a proxy is bounded, and read byte by byte at its end, so that no byte of the tunnel is taken.
"""

from __future__ import annotations

import base64
import os
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

_ANSWER_MAX: Final = 16 * 1024
_END: Final = b"\r\n\r\n"


class ProxyFailed(Exception):
    """The proxy refuses, or does not speak HTTP."""


class ProxyAddress(NamedTuple):
    """Where a proxy is."""

    host: str
    port: int
    authorization: str = ""
    """The value of Proxy-Authorization."""

    @classmethod
    def of_url(cls, url: str) -> ProxyAddress:
        """The proxy at an address such as `http://user:password@proxy:3128`. Raises
        `ValueError`."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError("a proxy has the form http://HOST:PORT")
        authorization = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(parts.hostname, parts.port or 80, authorization)

    @classmethod
    def of_environment(cls, host: str) -> ProxyAddress | None:
        """The proxy that the host's environment names for connections to `host`."""
        url = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
        url = url or os.environ.get("HTTP_PROXY") or os.environ.get("http_proxy")
        if not url or _is_exempt(host):
            return None
        return cls.of_url(url)

    def __repr__(self) -> str:
        return f"<proxy {self.host}:{self.port}>"


def _is_exempt(host: str) -> bool:
    """Whether NO_PROXY names a host: itself, or a domain that contains it."""
    entries = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""
    for entry in entries.split(","):
        name = entry.strip().lower().removeprefix("*").lstrip(".")
        if entry.strip() == "*" or (name and (host == name or host.endswith(f".{name}"))):
            return True
    return False


class Tunnel:
    """A CONNECT request and the answer to it."""

    def __init__(self, proxy: ProxyAddress, host: str, port: int) -> None:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
        if proxy.authorization:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        self.to_send = "\r\n".join([*lines, "", ""]).encode("ascii")
        self._answer = b""
        self.is_open = False

    def was_sent(self, count: int) -> None:
        """`count` bytes of `to_send` were sent."""
        self.to_send = self.to_send[count:]

    @property
    def wanted(self) -> int:
        """How many bytes may be read without reading past the end of the answer."""
        for size in (3, 2, 1):
            if self._answer.endswith(_END[:size]):
                return len(_END) - size
        return len(_END)

    def received(self, data: bytes) -> None:
        """The next bytes of the answer; empty if the proxy has closed the connection. Raises
        `ProxyFailed`."""
        if not data:
            raise ProxyFailed("the proxy closed the connection")
        self._answer += data
        if len(self._answer) > _ANSWER_MAX:
            raise ProxyFailed("the proxy's answer is too long")
        if self._answer.endswith(_END):
            status = self._answer.split(b"\r\n", 1)[0].split(b" ")
            if not status[0].startswith(b"HTTP/1.") or len(status) < 2 or status[1] != b"200":
                shown = b" ".join(status[1:])[:100].decode("latin-1")
                raise ProxyFailed(f"the proxy refuses: {shown!r}")
            self.is_open = True
