"""Serves one client on standard input and output; its sandbox ends with the process.

Rules: only messages of the protocol go to standard output; the package `mcp` ensures this by
keeping the descriptor to itself.
"""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from wasmsand.mcp.server import make_server
from wasmsand.mcp.sessions import Sessions

_ONLY_SESSION = "stdio"


def serve_stdio(sessions: Sessions, version: str) -> None:
    """Serve until standard input ends."""
    anyio.run(_serve, sessions, version)


async def _serve(sessions: Sessions, version: str) -> None:
    server = make_server(sessions, lambda _context: _ONLY_SESSION, version)
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        with anyio.CancelScope(shield=True):
            await sessions.end_all()
