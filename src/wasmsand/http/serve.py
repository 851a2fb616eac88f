"""From settings to a listening process, and its end.

Rules: without tokens the server listens on loopback addresses only. SIGTERM or SIGINT:
no further connection is taken, requests that run may take `grace_seconds`; then their
sandboxes are killed, so that each is still answered. A second SIGINT ends at once.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from wasmsand.http.app import application
from wasmsand.http.connections import connection_class
from wasmsand.http.routes import ROUTES
from wasmsand.http.service import Service
from wasmsand.http.settings import Settings, is_loopback

_LAST_ANSWERS_SECONDS = 5
"""After the grace period: for the answers that say that the sandbox was killed."""
_BACKLOG = 2048
_OTHER_DESCRIPTORS = 256
"""For compiled programs and the like."""


class CannotServe(Exception):
    """The server cannot be started so; the message says what to change."""


def serve(settings: Settings, on_listening: Callable[[str], None] | None = None) -> None:
    """Serve until a signal ends it. `on_listening` is told the URL. Raises `CannotServe`."""
    listener = _listen(settings)
    if on_listening is not None:
        on_listening(_url(listener))
    _server(settings).run(sockets=[listener])


@contextmanager
def running_server(settings: Settings) -> Iterator[str]:
    """A server on a thread of this process, ended at the end; gives its URL."""
    listener = _listen(settings)
    server = _server(settings)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="wasmsand-serve"
    )
    thread.start()
    try:
        yield _url(listener)
    finally:
        server.should_exit = True
        thread.join()


def _server(settings: Settings) -> _Server:
    service = Service(settings)
    config = uvicorn.Config(
        application(service, ROUTES),
        http=connection_class(settings),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=int(settings.keep_alive_seconds),
        timeout_graceful_shutdown=int(settings.grace_seconds) + _LAST_ANSWERS_SECONDS,
        backlog=_BACKLOG,
    )
    return _Server(config, service)


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def check_address(settings: Settings) -> None:
    """Raises `CannotServe` if everybody could come in from elsewhere."""
    if settings.tokens or is_loopback(settings.host):
        return
    raise CannotServe(
        f"refusing to listen on {settings.host} without tokens: anybody who reaches it could run "
        "commands; name them with --tokens-file or WASMSAND_TOKENS, or leave out --host"
    )


def _listen(settings: Settings) -> socket.socket:
    check_address(settings)
    _allow_descriptors(settings.max_connections + _OTHER_DESCRIPTORS)
    listener = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol named (unlike socket.create_server), asyncio turns off Nagle's
        # algorithm on its connections; else each answer may wait 40 ms.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        return listener
    except OSError as error:
        if listener is not None:
            listener.close()
        raise CannotServe(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}; "
            "choose others with --host and --port"
        ) from None


def _allow_descriptors(wanted: int) -> None:
    """Have the system allow that many, as far as it lets us: a connection is one."""
    try:
        import resource
    except ImportError:  # not a Unix
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Server(uvicorn.Server):
    """uvicorn's server, with an end that answers."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not as uvicorn does: a server that was told to end, and did, has not failed.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.draining = True
        killer = asyncio.create_task(self._kill_after_grace())
        try:
            await super().shutdown(sockets)
        finally:
            killer.cancel()

    async def _kill_after_grace(self) -> None:
        await asyncio.sleep(self._service.settings.grace_seconds)
        await self._service.kill_all()
