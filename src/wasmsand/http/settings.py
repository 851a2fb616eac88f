"""Every limit of the HTTP server, with its default.

Rules: what a client can make grow (connections, bodies, waiting requests, sandboxes) has
a number here; the message of a refusal names the option to raise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wasmsand.http.tokens import Token
from wasmsand.sdk.options import Isolation
from wasmsand.serving.crowd import ConnectionLimits
from wasmsand.serving.lanes import LaneLimits

KIB = 1024
MIB = 1024 * KIB

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8750


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
    isolation: Isolation | None = None
    """How all sandboxes run. None: each in a process of its own for tokens that are not trusted,
    in the server's process for trusted ones and on a server without tokens."""
    spare_processes: int = 2
    """Processes that are kept ready for the next sandbox with isolation "process"."""

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
    """Commands at work at the same time, each on a thread. Half of the threads are divided
    evenly among the tokens, so that each always has some; a sandbox has at most three quarters
    of what its token can have."""
    max_waiting_commands: int = 256
    """Commands of one token that wait for their turn; further ones are refused."""
    file_threads: int = 64
    """Threads for everything that is not a command, divided in the same way."""
    file_threads_per_token: int = 24
    file_threads_per_sandbox: int = 4
    max_waiting_files: int = 256
    """Calls of one token that wait for such a thread; half of them for one sandbox."""
    hang_seconds: float = 60
    """A sandbox that does not answer for so much longer than it should is answered for: 503."""
    max_command_seconds: float = 3600
    """The longest timeout of one command; "no timeout" means this."""

    max_connections: int = 1024
    max_json_bytes: int = 32 * MIB
    """Largest JSON body."""
    max_upload_bytes: int = 256 * MIB
    """Largest file that can be written by one request."""
    max_buffered_bytes: int = 1024 * MIB
    """Bodies that are being received, of all requests together; half of it is divided evenly
    among the tokens."""
    max_header_bytes: int = 16 * KIB
    header_seconds: float = 10
    """For the header of a request, from its first byte, or from the connection's beginning; and
    how long a connection without a token may be idle."""
    body_seconds: float = 120
    """For the whole body of a request."""
    body_idle_seconds: float = 20
    """Between two pieces of a body."""
    keep_alive_seconds: float = 75
    """How long a connection may stay open with nothing to do."""
    unread_seconds: float = 60
    """A client that does not read its output for so long is cut off; much output gets a second
    more for each 64 KiB."""
    heartbeat_seconds: float = 10
    """A stream that has nothing to say says so this often, so that a lost peer is noticed."""
    grace_seconds: float = 10
    """After SIGTERM: how long running requests may take until they are ended."""

    @property
    def tenants(self) -> int:
        """Who shares the server: the tokens, and those who show none."""
        return len(self.tokens) + 1 if self.tokens else 1

    @property
    def uses_processes(self) -> bool:
        """Whether any sandbox has a process of its own."""
        return self.isolation == "process" or any(
            self.isolation_of(token) == "process" for token in self.tokens
        )

    def isolation_of(self, owner: Token) -> Isolation:
        """How sandboxes of `owner` run."""
        if self.isolation is not None:
            return self.isolation
        return "none" if owner.trusted or not self.tokens else "process"

    def most_of(self, option: str) -> int | None:
        """The largest value that a client can ask for; None if its token's quota bounds it."""
        most: int | None = getattr(self, f"most_{option.removeprefix('max_')}", None)
        return most

    def connection_limits(self) -> ConnectionLimits:
        """For `serving.connections`."""
        return ConnectionLimits(
            max_connections=self.max_connections,
            tenants=self.tenants,
            header_seconds=self.header_seconds,
            body_seconds=self.body_seconds,
            body_idle_seconds=self.body_idle_seconds,
            keep_alive_seconds=self.keep_alive_seconds,
            unread_seconds=self.unread_seconds,
            max_header_bytes=self.max_header_bytes,
        )

    def command_lane(self) -> LaneLimits:
        """Threads for commands."""
        threads = self.max_running_commands
        return LaneLimits(
            threads=threads,
            tenant_threads=threads,
            tenant_waiting=self.max_waiting_commands,
            sandbox_threads=None,
            sandbox_waiting=self.max_waiting_commands,
        )

    def file_lane(self) -> LaneLimits:
        """Threads for everything else."""
        return LaneLimits(
            threads=self.file_threads,
            tenant_threads=self.file_threads_per_token,
            tenant_waiting=self.max_waiting_files,
            sandbox_threads=self.file_threads_per_sandbox,
            sandbox_waiting=max(1, self.max_waiting_files // 2),
        )
