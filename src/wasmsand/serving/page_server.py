"""A small web server for a page, on this machine only.

Owns `page_server`. Rules: it listens on a loopback address, serves files of `Pages` and nothing
else, and needs only the standard library.
"""

from __future__ import annotations

import shutil
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from wasmsand.serving.pages import Pages

_ADDRESS = "127.0.0.1"
_IDLE_SECONDS = 30


def page_server(pages: Pages, port: int) -> ThreadingHTTPServer:
    """A server that listens on `port`; 0 chooses a free one. Raises `OSError`."""

    class Handler(_PageHandler):
        served = pages

    return ThreadingHTTPServer((_ADDRESS, port), Handler)


class _PageHandler(BaseHTTPRequestHandler):
    """Answers one connection."""

    served: Pages
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        """Send a file."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Send the headers of a file."""
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        name = unquote(urlsplit(self.path).path).removeprefix("/")
        file = self.served.find(name)
        if file is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            content = file.open()
        except OSError:  # it was built anew
            self.send_error(HTTPStatus.NOT_FOUND, explain="restart the server: its files changed")
            return
        with content:
            size = content.seek(0, 2)
            content.seek(0)
            self.send_response(HTTPStatus.OK)
            for header, value in file.headers.items():
                self.send_header(header, value)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if with_body:
                try:
                    shutil.copyfileobj(content, self.wfile)
                except ConnectionError:
                    self.close_connection = True  # the browser has left

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""
