"""One client on standard input and output: its sandbox lives as long as the process.

Rules: nothing but the protocol is written to standard output; the protocol's package sees
to that by giving the descriptor to nobody else.
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
