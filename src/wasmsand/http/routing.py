"""What a route is, and what a handler gets.

Owns `HttpRoute` and `Call`. A route says everything about a request: how it is found, what
its parameters and its body are, what comes back. Rules: `routes.ROUTES` is the one table;
the application, the checks and the OpenAPI document are made from it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.requests import Request

from wasmsand.http.quotas import CommandPlace
from wasmsand.http.registry import Entry
from wasmsand.http.service import Service
from wasmsand.http.tokens import Token

Result = TypeVar("Result")
Query = TypeVar("Query")
Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class Call(Generic[Query, Body]):
    """One request, checked."""

    service: Service
    request: Request
    owner: Token
    query: Query
    """The parameters; None if the route has none."""
    body: Body
    """The JSON body, or bytes; None if the route has none."""
    found: Entry | None

    @property
    def entry(self) -> Entry:
        """The sandbox that the path names."""
        assert self.found is not None, "the route has no {sandbox}"
        return self.found

    @property
    def _sandbox(self) -> str:
        return "-" if self.found is None else self.found.id

    def running_command(self) -> AbstractContextManager[CommandPlace]:
        """While a command of this sandbox runs. Raises `quota_exceeded`."""
        return self.service.quotas.running_command(self.owner, self._sandbox)

    async def in_file_thread(self, work: Callable[[], Result]) -> Result:
        """Run what blocks only for a moment, on a thread of this token and sandbox."""
        return await self.service.in_file_thread(self.owner, self._sandbox, work)

    async def in_command_thread(
        self,
        work: Callable[[], Result],
        seconds: float = 0,
        then: Callable[[], object] | None = None,
    ) -> Result:
        """Run what may wait for a command, for `seconds` at most. `then`: see `Lane.run`."""
        return await self.service.in_command_thread(self.owner, self._sandbox, work, seconds, then)

    def part(self, name: str) -> str:
        """A part of the path that the route names in braces."""
        return str(self.request.path_params[name])


@dataclass(frozen=True, slots=True)
class HttpRoute(Generic[Query, Body]):
    """One row of the table."""

    method: str
    path: str
    handler: Callable[[Call[Query, Body]], Awaitable[object]]
    """Returns a value of the type `answer`, or an ASGI response."""
    summary: str
    answer: Any
    """The type of the JSON that comes back, or the media type of something else."""
    query: type[Query] | None = None
    body: type[Body] | None = None
    """The type of the JSON that is sent, or bytes for whatever it is."""
    also: str | None = None
    """A media type that a client can ask for instead, by `Accept`."""
    status: int = 200
    public: bool = False
    """Whether no token is needed."""

    @property
    def has_sandbox(self) -> bool:
        """Whether the path names a sandbox."""
        return "{sandbox}" in self.path


AnyRoute = HttpRoute[Any, Any]
