"""Decides about a request, and writes the one that the host gets.

Owns `examine`. Rules: the request must be for the host that the guest connected to, by its target
and by `Host`. The policy decides about method and path, and refuses unclear paths. Headers that
concern one connection only are dropped. Headers by which servers replace method or path are refused
or decided about as well. Secrets are added last, so that nothing that the guest sent can move them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import h11

from wasmsand.machine.network.inspecting.order import RequestOrder
from wasmsand.machine.network.inspecting.refusals import Refusal
from wasmsand.machine.network.inspecting.secrets import HEADS_MAX, Secrets
from wasmsand.machine.network.inspecting.websocket import options_of, requested_key

_METHOD: Final = re.compile(rb"[A-Z][A-Z0-9-]{0,31}\Z")
_ECHOING_METHODS: Final = frozenset((b"TRACE", b"TRACK"))
_ABSOLUTE: Final = re.compile(rb"(?P<scheme>[A-Za-z]+)://(?P<authority>[^/?#]*)(?P<rest>.*)\Z")
_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[-._0-9A-Za-z]+)(?::(?P<port>[0-9]{1,5}))?\Z"
)
_PER_CONNECTION: Final = frozenset(
    (
        b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te",
        b"trailer", b"upgrade", b"http2-settings", b"host",
    )
)  # fmt: skip
_NOT_NOMINATED: Final = frozenset((b"host", b"content-length", b"transfer-encoding"))
_METHOD_HEADERS: Final = frozenset(
    (b"x-http-method-override", b"x-http-method", b"x-method-override")
)
_PATH_HEADERS: Final = frozenset((b"x-original-url", b"x-rewrite-url", b"x-override-url"))


@dataclass(frozen=True, slots=True)
class Examined:
    """An allowed request."""

    method: str
    path: str
    request: h11.Request = field(repr=False)
    """For the host: with secrets."""
    websocket_key: bytes | None


def examine(
    request: h11.Request, order: RequestOrder, secrets: Secrets, *, secure: bool
) -> Examined:
    """The request for the host; raises `Refusal`."""
    raw_headers = request.headers.raw_items()
    method = request.method.decode("ascii")
    if request.method == b"CONNECT":
        raise Refusal(403, "CONNECT is not allowed: the sandbox has no proxy; connect directly")
    if request.method in _ECHOING_METHODS:
        raise Refusal(403, f"{method} is never allowed, because servers answer with all headers")
    if not _METHOD.match(request.method):
        raise Refusal(400, "the method is not in upper case")
    target = _target_of(request, order, secure=secure)
    path, _, _ = target.partition(b"?")
    _decide(method, path.decode("ascii"), raw_headers, order)
    if secrets and not (secure or order.secrets_in_clear):
        raise Refusal(403, f"{order.host} has secrets, which are sent by TLS only: use https://")
    key = requested_key(request.method, raw_headers)
    headers = secrets.applied(_end_to_end(raw_headers))
    if headers is None:
        raise Refusal(431, f"the head of the request is longer than {HEADS_MAX} bytes")
    headers.insert(0, (b"Host", _host_header(order, secure=secure)))
    if key is not None:
        headers += [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
    elif _closes(request):
        headers.append((b"Connection", b"close"))
    try:
        upstream = h11.Request(method=request.method, target=target, headers=headers)
    except h11.LocalProtocolError:  # its message could show a header
        raise Refusal(400, "a header cannot be sent") from None
    return Examined(method, path_of(request), upstream, key)


def path_of(request: h11.Request) -> str:
    """The path of any request, for a log: without the query, bounded."""
    return request.target.partition(b"?")[0][:2048].decode("ascii", "replace")


def _target_of(request: h11.Request, order: RequestOrder, *, secure: bool) -> bytes:
    """The request's target in origin form."""
    hosts = [value for name, value in request.headers if name == b"host"]
    for host in hosts:
        _require_host(host, order, secure=secure)
    target = request.target
    if target.startswith(b"/"):
        pass
    elif target == b"*" and request.method == b"OPTIONS":
        return target
    else:
        absolute = _ABSOLUTE.match(target)
        if absolute is None:
            raise Refusal(400, "the target of the request is not a path")
        if absolute["scheme"].lower() != (b"https" if secure else b"http"):
            raise Refusal(421, "the URL of the request has another scheme than the connection")
        _require_host(absolute["authority"], order, secure=secure)
        target = absolute["rest"]
        target = target if target.startswith(b"/") else b"/" + target
    if b"#" in target:
        raise Refusal(400, "the target of the request has a fragment")
    return target


def _require_host(value: bytes, order: RequestOrder, *, secure: bool) -> None:
    found = _AUTHORITY.match(value.decode("latin-1"))
    named = "" if found is None else _normal(found["host"])
    port = 0 if found is None else int(found["port"] or (443 if secure else 80))
    if named != _normal(order.host) or port != order.port:
        raise Refusal(
            421,
            f"the connection is to {order.authority_in_urls}, but the request names another host "
            "or port",
        )


def _normal(host: str) -> str:
    if ":" not in host:
        return host.lower().removesuffix(".")
    import ipaddress

    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return ""


def _host_header(order: RequestOrder, *, secure: bool) -> bytes:
    with_port = order.authority_in_urls
    default = ":443" if secure else ":80"
    return with_port.removesuffix(default).encode("ascii")


def _decide(
    method: str, path: str, headers: list[tuple[bytes, bytes]], order: RequestOrder
) -> None:
    """Raise `Refusal` unless the request is allowed."""
    methods = [method]
    for name, value in headers:
        key = name.lower().replace(b"_", b"-")
        if key in _PATH_HEADERS:
            raise Refusal(400, f"the header {key.decode()} would replace the path")
        if key in _METHOD_HEADERS:
            if not _METHOD.match(value):
                raise Refusal(400, f"the header {key.decode()} has no method in upper case")
            methods.append(value.decode("ascii"))
    for each in dict.fromkeys(methods):
        verdict = order.decide(each, path)
        if not verdict.allowed:
            raise Refusal(403, verdict.reason)


def _end_to_end(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    nominated = options_of(headers, b"connection") - {b"close", b"keep-alive"}
    if nominated & _NOT_NOMINATED:
        raise Refusal(400, "the header connection names a header that cannot be dropped")
    dropped = nominated | _PER_CONNECTION
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def _closes(request: h11.Request) -> bool:
    return request.http_version != b"1.1" or b"close" in options_of(request.headers, b"connection")


def response_headers(
    headers: list[tuple[bytes, bytes]], secrets: Secrets, *, close: bool
) -> list[tuple[bytes, bytes]]:
    """The headers of a response, for the guest."""
    dropped = (options_of(headers, b"connection") - _NOT_NOMINATED) | _PER_CONNECTION - {b"host"}
    kept = [(name, value) for name, value in headers if name.lower() not in dropped]
    if close:
        kept.append((b"Connection", b"close"))
    return secrets.masked(kept)
