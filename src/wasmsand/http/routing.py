"""`HttpRoute`, and `Call`, the argument of a handler.

A route describes a request completely: method, path, query parameters, body, response. Rules:
`routes.ROUTES` is the only table; the application, the checks and the OpenAPI document are
made from it. The handler of a public route gets a `PublicCall`, because a front process answers
such requests itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from starlette.requests import Request

from wasmsand.http.quotas import CommandPlace
from wasmsand.http.registry import Entry
from wasmsand.http.service import Service
from wasmsand.http.settings import Settings
from wasmsand.http.tokens import Token

Result = TypeVar("Result")
Query = TypeVar("Query")
Body = TypeVar("Body")


class PublicService(Protocol):
    """What public routes need of a server: `Service`, or the front process."""

    @property
    def settings(self) -> Settings:
        """The server's settings."""

    @property
    def draining(self) -> bool:
        """Whether the server is shutting down."""

    @property
    def page_files(self) -> Mapping[str, tuple[bytes, dict[str, str]]]:
        """Content and headers of the files of the playground."""


@dataclass(frozen=True, slots=True)
class PublicCall:
    """A request to a public route."""

    service: PublicService
    request: Request

    def part(self, name: str) -> str:
        """The part of the path that the route calls `{name}`."""
        return str(self.request.path_params[name])


PublicHandler = Callable[[PublicCall], Awaitable[object]]
"""The handler of a public route."""


@dataclass(frozen=True, slots=True)
class Call(PublicCall, Generic[Query, Body]):
    """One validated request."""

    service: Service
    owner: Token
    query: Query
    """The query parameters; None if the route has none."""
    body: Body
    """The decoded JSON body, or bytes; None if the route has no body."""
    found: Entry | None

    @property
    def entry(self) -> Entry:
        """The sandbox in the path."""
        assert self.found is not None, "the route has no {sandbox}"
        return self.found

    @property
    def _sandbox(self) -> str:
        return "-" if self.found is None else self.found.id

    def running_command(self) -> AbstractContextManager[CommandPlace]:
        """Count a running command against the quota. Raises `quota_exceeded`."""
        return self.service.quotas.running_command(self.owner, self._sandbox)

    async def in_file_thread(self, work: Callable[[], Result]) -> Result:
        """Run `work`, which blocks only briefly, on a thread of this token and sandbox."""
        return await self.service.in_file_thread(self.owner, self._sandbox, work)

    async def in_command_thread(
        self,
        work: Callable[[], Result],
        seconds: float = 0,
        then: Callable[[], object] | None = None,
    ) -> Result:
        """Run `work`, which may wait for a command for up to `seconds`. `then`: see `Lane.run`."""
        return await self.service.in_command_thread(self.owner, self._sandbox, work, seconds, then)


@dataclass(frozen=True, slots=True)
class HttpRoute(Generic[Query, Body]):
    """One row of the table of routes."""

    method: str
    path: str
    handler: Callable[[Call[Query, Body]], Awaitable[object]]
    """Returns a value of the type `answer`, or an ASGI response."""
    summary: str
    answer: Any
    """The type of the JSON response, or the media type of any other response."""
    query: type[Query] | None = None
    body: type[Body] | None = None
    """The type of the JSON body, or `bytes` for any body."""
    also: str | None = None
    """A media type that a client can request instead, with `Accept`."""
    status: int = 200
    public: bool = False
    """Whether no token is needed. Then the handler takes a `PublicCall`."""
    wakes: bool = True
    """Whether a paused sandbox is resumed for the request."""
    passes_through: bool = False
    """Whether query and body are for a program in the sandbox, as `{path}` is."""

    is_websocket: bool = False
    """Whether a client may give its token as a subprotocol."""

    @property
    def has_sandbox(self) -> bool:
        """Whether the path contains a sandbox's id."""
        return "{sandbox}" in self.path


AnyRoute = HttpRoute[Any, Any]
