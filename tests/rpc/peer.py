"""A minimal client of `wasmsand rpc`: a process and its pipes."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager
from typing import Any

from tests.wire.line_peer import LinePeer, ended_at_last

COMMAND = [sys.executable, "-m", "wasmsand", "rpc"]


class Peer(LinePeer):
    """A client that talks to one server process."""

    def __init__(self, *options: str) -> None:
        super().__init__("rpc", *options)
        self._ids = iter(range(1, 1_000_000))

    def call(self, method: str, **params: object) -> Any:
        """Call a method; returns the result. An error fails the test."""
        response = self.request(method, **params)
        assert "error" not in response, response
        return response["result"]

    def error(self, method: str, **params: object) -> Any:
        """Call a method that must fail; returns the error."""
        response = self.request(method, **params)
        assert "result" not in response, response
        return response["error"]

    def request(self, method: str, **params: object) -> Any:
        """Call a method; returns the whole response."""
        number = next(self._ids)
        response = self.exchange(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        )
        assert response["id"] == number
        return response

    def create(self, **params: object) -> None:
        """Create the sandbox."""
        assert self.call("create", **{"wasmDir": None, **params}) == {"ok": True}


def peer(*options: str) -> AbstractContextManager[Peer]:
    """A server process that is always ended at the end."""
    return ended_at_last(Peer(*options))
