"""What one connection is inspected for.

Owns `RequestOrder`, `InspectionOrder` and `RequestSeen`. Rules: values only, and functions of the
bridge that return at once. `repr` shows no secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import ssl

    from wasmsand.machine.network.inspecting.authority import Authority


class RequestVerdict(Protocol):
    """What the policy says about a request."""

    @property
    def allowed(self) -> bool:
        """Whether it may be sent."""

    @property
    def reason(self) -> str:
        """Why not; without secrets."""


@dataclass(frozen=True, slots=True)
class RequestSeen:
    """A request that has ended, or was refused."""

    allowed: bool
    method: str
    path: str
    """Without the query."""
    status: int
    """Of the response that the guest got; 0 if it got none."""
    reason: str = ""
    """Why the request was refused or failed."""
    sent: int = 0
    """Bytes of the request's body."""
    received: int = 0
    """Bytes of the response's body."""
    duration_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOrder:
    """The requests of one connection to `host`."""

    host: str
    """A name in its normal form (lower case, ASCII, no trailing dot) or an IP address."""
    port: int
    decide: Callable[[str, str], RequestVerdict]
    """Method and path, as in the request line without the query, to verdict. It has no effects, and
    is called several times for a request with several methods."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers that the host gets, instead of those of the guest."""
    placeholders: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the guest writes in header values, and what the host gets instead."""
    secrets_in_clear: bool = False
    """Whether secrets may be sent without TLS, as to a server on this machine."""
    admit: Callable[[], str] = lambda: ""
    """Called once for each allowed request, before it is sent. Returns why not (a budget is used
    up), or an empty string."""
    on_request: Callable[[RequestSeen], None] = lambda _seen: None

    @property
    def authority_in_urls(self) -> str:
        """Host and port as in a URL, with the port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionOrder(RequestOrder):
    """The same, where the bridge itself speaks TLS with both sides."""

    authority: Authority
    server_context: ssl.SSLContext
    """Verifies the real host; see `contexts.verifying_context`."""
