"""Every limit of the HTTP server, with its default.

Rules: everything that a client can make grow (connections, bodies, waiting requests,
sandboxes) has a limit here; the message of a refusal names the option to raise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from wasmsand.http.tokens import Token
from wasmsand.sdk.network import Network
from wasmsand.sdk.options import Isolation
from wasmsand.serving.crowd import ConnectionLimits
from wasmsand.serving.lanes import LaneLimits

KIB = 1024
MIB = 1024 * KIB

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8750
_IDLE_SECONDS = 600.0
_LIFETIME_SECONDS = 24 * 3600.0
_STORED_SECONDS = 30 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The server's settings, named like the options of `wasmsand serve`."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0 chooses a free port."""
    version: str = "unknown"
    """The version that the server reports."""
    tokens: tuple[Token, ...] = field(default=(), repr=False)
    """Who may use the server. Empty means everybody; then `host` must be a loopback address."""
    tokens_file: str | None = None
    """The file that the tokens were read from. A change of it takes effect within seconds."""
    isolation: Isolation | None = None
    """Isolation of all sandboxes. None means "none" for trusted tokens and on a server without
    tokens, and "process" for other tokens."""
    packages: tuple[str, ...] = ()
    """Python packages of a sandbox whose client does not choose any."""
    index_installs: bool = False
    """Whether clients may install packages from the package index, with the settings of pip on this
    host; packages of the image are always allowed."""
    network: Network | None = field(default=None, repr=False)
    """What clients may allow their sandboxes to reach, unless their token says it; None means
    nothing."""
    playground: str | None = None
    """A directory with the page for `/playground/`; None means that there is none."""
    spare_processes: int = 2
    """Processes that are kept ready for new sandboxes with isolation "process"."""

    workers: int = 1
    """Worker processes. 1 means that one process does everything, unless `tenant_workers` is
    set. Limits of threads, terminals, port connections and buffers hold for each worker."""
    tenant_workers: bool = False
    """Whether each token has workers of its own, as many as `workers` says."""
    host_memory: int | None = None
    """What the server's processes may hold of the host's memory, in bytes; then new sandboxes are
    refused, and with a store idle ones are paused. None is no limit."""
    max_load: float | None = None
    """The host's load average per core above which new sandboxes are refused."""

    log_format: Literal["text", "json"] = "text"
    otel: bool = False
    """Whether traces and metrics are exported by OpenTelemetry."""
    verbose: bool = False
    """Whether the log has more than errors."""

    max_sandboxes: int = 256
    """Sandboxes of all tokens together."""
    max_snapshots: int = 32
    """Snapshots of one sandbox. Their size counts against the token's `max_memory_bytes`."""
    idle_seconds: float | None = None
    """A sandbox that was unused for this long is killed. Clients may set less, not more. None means
    10 minutes, and 30 days with a store."""
    lifetime_seconds: float | None = None
    """A sandbox of this age is killed, even in use. Clients may set less, not more. None means 24
    hours, and 30 days with a store."""
    store: str | None = None
    """A directory in which sandboxes are kept, so that they survive the server; None means that
    they end with it."""
    idle_pause: float = 300
    """With a store: a sandbox that was unused for this many seconds is put to disk. The next
    request that needs it brings it back."""
    max_stored_sandboxes: int = 10_000
    """With a store: sandboxes of all tokens together, paused ones too."""
    max_stored_bytes: int = 256 * 1024 * MIB
    """With a store: the size of all files there."""
    most_output_bytes: int = 256 * MIB
    """The largest `max_output_bytes` that a client may set; likewise the following. A token's
    quota bounds memory and files."""
    most_inodes: int = 1_000_000
    most_processes: int = 1024
    most_open_files: int = 65_536

    max_running_commands: int = 64
    """Commands that run at the same time, each on a thread. Half of the threads are divided
    evenly among the tokens, so that each token always has some. One sandbox may use at most
    three quarters of its token's threads."""
    max_waiting_commands: int = 256
    """Commands of one token in the queue; further ones are refused."""
    file_threads: int = 64
    """Threads for all calls that are not commands, divided in the same way."""
    file_threads_per_token: int = 24
    file_threads_per_sandbox: int = 4
    max_waiting_files: int = 256
    """Calls of one token that wait for such a thread; one sandbox may have half of them."""
    hang_seconds: float = 60
    """If a sandbox exceeds the time of a call by this much, the server answers 503."""
    max_command_seconds: float = 3600
    """The longest timeout of a command, and the timeout of a command without one."""

    max_connections: int = 1024
    max_port_connections: int = 256
    """Connections to servers in sandboxes, of all tokens together; half of them are divided evenly
    among the tokens."""
    port_idle_seconds: float = 300
    """A connection to a server in a sandbox is closed if no byte moves for this long."""
    max_terminals: int = 64
    """Open terminals, each with two threads, of all tokens together; half of them are divided
    evenly among the tokens."""
    max_json_bytes: int = 32 * MIB
    """Largest JSON body."""
    max_upload_bytes: int = 256 * MIB
    """Largest file that one request can write."""
    max_buffered_bytes: int = 1024 * MIB
    """Bodies in memory, of all requests together; half of this is divided evenly among the
    tokens."""
    max_header_bytes: int = 16 * KIB
    header_seconds: float = 10
    """Longest time for a request's header, from its first byte or from the connection's start.
    Also the longest idle time of a connection without a token."""
    body_seconds: float = 120
    """Longest time for a whole request body."""
    body_idle_seconds: float = 20
    """Longest time between two pieces of a body."""
    keep_alive_seconds: float = 75
    """Longest idle time of a connection with a token."""
    unread_seconds: float = 60
    """A client that does not read its response for this long is disconnected; a large response
    gets one more second for each 64 KiB."""
    heartbeat_seconds: float = 10
    """A stream without output sends a comment this often, so that a lost client is noticed."""
    grace_seconds: float = 10
    """After SIGTERM, running requests may take this long until they are ended."""

    @property
    def most_idle_seconds(self) -> float:
        """How long a sandbox may be unused."""
        if self.idle_seconds is not None:
            return self.idle_seconds
        return _IDLE_SECONDS if self.store is None else _STORED_SECONDS

    @property
    def most_lifetime_seconds(self) -> float:
        """How old a sandbox may become."""
        if self.lifetime_seconds is not None:
            return self.lifetime_seconds
        return _LIFETIME_SECONDS if self.store is None else _STORED_SECONDS

    @property
    def has_front(self) -> bool:
        """Whether a front process and workers serve."""
        return self.workers > 1 or self.tenant_workers

    @property
    def tenants(self) -> int:
        """How many share the server: the tokens, and clients without a token as one."""
        return len(self.tokens) + 1 if self.tokens else 1

    @property
    def uses_processes(self) -> bool:
        """Whether any sandbox can run in a separate process."""
        return self.isolation == "process" or any(
            self.isolation_of(token) == "process" for token in self.tokens
        )

    def isolation_of(self, owner: Token) -> Isolation:
        """The isolation of sandboxes of `owner`."""
        if self.isolation is not None:
            return self.isolation
        return "none" if owner.trusted or not self.tokens else "process"

    def network_of(self, owner: Token) -> Network:
        """What sandboxes of `owner` may reach at most."""
        return owner.network or self.network or Network()

    def most_of(self, option: str) -> int | None:
        """The largest value of `option` that a client may set; None if a quota bounds it."""
        most: int | None = getattr(self, f"most_{option.removeprefix('max_')}", None)
        return most

    def connection_limits(self) -> ConnectionLimits:
        """The limits for `serving.connections`."""
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
        """The limits of the threads for commands."""
        threads = self.max_running_commands
        return LaneLimits(
            threads=threads,
            tenant_threads=threads,
            tenant_waiting=self.max_waiting_commands,
            sandbox_threads=None,
            sandbox_waiting=self.max_waiting_commands,
        )

    def file_lane(self) -> LaneLimits:
        """The limits of the threads for all other calls."""
        return LaneLimits(
            threads=self.file_threads,
            tenant_threads=self.file_threads_per_token,
            tenant_waiting=self.max_waiting_files,
            sandbox_threads=self.file_threads_per_sandbox,
            sandbox_waiting=max(1, self.max_waiting_files // 2),
        )
