"""Requests to a host of a fleet, which may move to another node.

Owns `FleetTransport`. Rules: a request is repeated only if the host did not get it (no connection,
or the host refused it because it was ending), or if it changes nothing (GET). For any other request
that was on its way when the host was lost, the caller gets `ServerError` (`host_lost`): it may have
been done or not. Without a store, the sandbox ended with its host: `SandboxCrashedError`. Each wait
for a host has a deadline.
"""

from __future__ import annotations

import http.client
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from wasmsand.fleet.cluster import Home
from wasmsand.fleet.values import HostPlace
from wasmsand.http.transport import ANSWER_SECONDS, Content, HttpExchange, Transport
from wasmsand.sdk.errors import ConnectionLostError, SandboxCrashedError, ServerError

RECOVERY_SECONDS: Final = 120.0
"""How long a request waits for a host that is lost or moves."""
_PAUSE_SECONDS: Final = 0.2
_PROBE_SECONDS: Final = 5.0
_ENDING: Final = "shutting_down"
"""The code of a server that refuses a request because it ends."""
_FULL: Final = frozenset({"server_full", "quota_exceeded"})


class FleetTransport(Transport):
    """Sends requests to one host, wherever it is."""

    has_stable_address = False

    def __init__(self, home: Home, *, is_bound: bool, others: Sequence[Home] = ()) -> None:
        """`is_bound`: the requests are about a sandbox of this host. Otherwise the first request
        creates one; if the host cannot take it, it goes to one of the `others`."""
        self._home = home
        self._others = list(others)
        self._is_bound = is_bound
        self._place = home.place()
        self._owner = os.getpid()
        super().__init__(self._place.url, self._place.token)

    def another(self) -> Transport:
        """See `Transport`."""
        return FleetTransport(self._home, is_bound=True)

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        value: object = None,
        content: Content = None,
        seconds: float | None = ANSWER_SECONDS,
        exchange: HttpExchange | None = None,
    ) -> bytes:
        """See `Transport`."""
        exchange = exchange or HttpExchange()
        until = time.monotonic() + RECOVERY_SECONDS
        can_repeat = content is None or isinstance(content, bytes)
        while True:
            place = self._place
            exchange.was_sent = False
            try:
                answer = super().ask(
                    method,
                    path,
                    query=query,
                    value=value,
                    content=content,
                    seconds=seconds,
                    exchange=exchange,
                )
                self._is_bound = True
                return answer
            except ServerError as error:
                if error.code in _FULL and self._use_another():
                    continue
                if error.code != _ENDING or not can_repeat:
                    raise
                self._follow(place, until, error)
            except ConnectionLostError as error:
                if exchange.broken or self._closed:
                    raise
                if not exchange.was_sent and self._use_another():
                    continue
                self._follow(place, until, error)
                if not can_repeat or (exchange.was_sent and method != "GET"):
                    raise self._uncertain() from None

    def ask_pieces(
        self, method: str, path: str, *, query: Mapping[str, object] | None = None
    ) -> Iterator[bytes]:
        """See `Transport`. Only the start of the response can be repeated."""
        place = self._place
        try:
            return super().ask_pieces(method, path, query=query)
        except ConnectionLostError as error:
            if method != "GET":
                raise
            self._follow(place, time.monotonic() + RECOVERY_SECONDS, error)
            return super().ask_pieces(method, path, query=query)

    def connected(self) -> http.client.HTTPConnection:
        """See `Transport`."""
        place = self._place
        try:
            return super().connected()
        except OSError as error:
            self._follow(place, time.monotonic() + RECOVERY_SECONDS, self.lost(error))
            return super().connected()

    def _use_another(self) -> bool:
        """Before there is a sandbox: try the next host. False if there is none."""
        while not self._is_bound and self._others:
            self._home = self._others.pop(0)
            try:
                self._go_to(self._home.place())
            except (ConnectionLostError, ServerError):
                continue  # this one does not answer either
            return True
        return False

    def _follow(self, place: HostPlace, until: float, error: Exception) -> None:
        """Wait until the host of a failed request is at its next place. Raises `error` if it is
        where it was and answers: then something else is wrong."""
        if os.getpid() != self._owner:
            raise error  # Ray cannot be used in a forked process
        while True:
            found = self._home.look(until)
            if found.generation != place.generation:
                break
            if not isinstance(error, ServerError) and _answers(found):
                raise error
            if time.monotonic() > until:
                raise error
            time.sleep(_PAUSE_SECONDS)
        if self._is_bound and not found.has_store:
            raise SandboxCrashedError(
                f"{self._home.name} of the fleet was lost, and the sandbox with it: the fleet has "
                "no store; create it with --store to keep sandboxes",
                0,
            )
        self._go_to(found)

    def _go_to(self, place: HostPlace) -> None:
        self._aim(place.url, place.token)
        self._place = place
        self._drop_kept()

    def _uncertain(self) -> ServerError:
        return ServerError(
            f"{self._home.name} of the fleet was lost during the request, which may have been done "
            "or not; the sandbox goes on from its last stored state",
            "host_lost",
            503,
        )


def _answers(place: HostPlace) -> bool:
    """Whether a server answers there. One that is being killed may still accept connections."""
    probe = http.client.HTTPConnection(place.url.removeprefix("http://"), timeout=_PROBE_SECONDS)
    try:
        probe.request("GET", "/healthz")
        return probe.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        probe.close()
