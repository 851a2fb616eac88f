"""Every limit of the HTTP server, with its default.

Rules: what a client can make grow (connections, bodies, waiting requests, sandboxes) has
a number here; the message of a refusal names the option to raise.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from wasmsand.http.tokens import Token

KIB = 1024
MIB = 1024 * KIB

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8750


def is_loopback(host: str) -> bool:
    """Whether a name or an address stands for this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class Settings:
    """How the server is run. Names are those of `wasmsand serve`'s options."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0 takes a free one."""
    version: str = "unknown"
    """What the server says of itself."""
    tokens: tuple[Token, ...] = field(default=(), repr=False)
    """Who may come in. None: everybody, which is refused unless `host` is a loopback address."""

    max_sandboxes: int = 256
    """Of all tokens together."""
    idle_seconds: float = 600
    """A sandbox that nobody has used for so long is killed; the longest that a client can ask."""
    lifetime_seconds: float = 24 * 3600
    """A sandbox is killed at this age, used or not; the longest that a client can ask."""
    most_output_bytes: int = 256 * MIB
    """The largest `max_output_bytes` that a client can ask for; and so on. Its memory and files
    are bounded by its token's quota."""
    most_inodes: int = 1_000_000
    most_processes: int = 1024
    most_open_files: int = 65_536

    max_running_commands: int = 64
    """Commands at work at the same time, each on a thread."""
    max_waiting_commands: int = 256
    """Commands that wait for their turn; further ones are refused."""
    file_threads: int = 8
    """Threads for everything that is not a command."""
    max_waiting_files: int = 256
    max_command_seconds: float = 3600
    """The longest timeout of one command; "no timeout" means this."""

    max_connections: int = 1024
    max_json_bytes: int = 32 * MIB
    """Largest JSON body."""
    max_upload_bytes: int = 256 * MIB
    """Largest file that can be written by one request."""
    max_buffered_bytes: int = 1024 * MIB
    """Bodies that are being received, of all requests together."""
    header_seconds: float = 10
    """For the header of a request, from its first byte, or from the connection's beginning."""
    body_seconds: float = 120
    """For the whole body of a request."""
    keep_alive_seconds: float = 75
    """How long a connection may stay open with nothing to do."""
    unread_seconds: float = 60
    """A client that reads nothing for so long while the server has output for it is cut off."""
    heartbeat_seconds: float = 10
    """A stream that has nothing to say says so this often, so that a lost peer is noticed."""
    grace_seconds: float = 20
    """After SIGTERM: how long running requests may take until they are ended."""
