"""`HttpBackend`: a server's sandbox, as a backend of the SDK.

Owns `open_http_backend`, which `Sandbox.connect` calls. Rules: one operation is one request;
an exception of the server is raised here with the same type and message; when the backend
is garbage-collected, its sandbox is killed; a sandbox that no client uses expires on the server.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from wasmsand.http.answers import ended_of, exact_bytes, object_of
from wasmsand.http.client_copies import HttpCopies
from wasmsand.http.client_life import HttpLife
from wasmsand.http.client_ports import HttpPorts
from wasmsand.http.client_terminals import HttpTerminals
from wasmsand.http.process import HttpProcess
from wasmsand.http.reaching import transport_for_new
from wasmsand.http.transport import ANSWER_SECONDS, HttpExchange, Transport
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import (
    DEFAULT_USER,
    BackendProcess,
    Cancellation,
    CommandRequest,
    Completed,
    FileWrite,
    PackageRequest,
)
from wasmsand.sdk.errors import SandboxError, ServerError, UnsupportedError
from wasmsand.sdk.opening import ServedLife
from wasmsand.sdk.option_table import SandboxInterface
from wasmsand.sdk.options import OPTIONS, SandboxOptions
from wasmsand.sdk.results import FileInfo, NetworkRules, PackageInfo, ProcessInfo, Usage
from wasmsand.sdk.unsupported import WithoutDisks, no_mounts

if TYPE_CHECKING:
    from wasmsand.sdk.network import Network, NetworkEvent

_MARGIN_SECONDS = 30.0
"""How much longer than its command a request may take: it may wait in the server's queue."""
_COMPILE_SECONDS = 300.0
"""How much longer a request may take that starts a program: the server may have to compile that
first, which does not count against the command's timeout."""


def open_http_backend(
    url: str, token: str | None, options: SandboxOptions, life: ServedLife | None = None
) -> HttpBackend:
    """Create a sandbox on the server at `url`. Raises `ServerError`, `ConnectionLostError`."""
    wanted = options_out(options)
    if life is not None and life.metadata:
        wanted["metadata"] = dict(life.metadata)
    if life is not None and life.lifetime_seconds is not None:
        wanted["lifetime_seconds"] = life.lifetime_seconds
    return _backend(transport_for_new(url, token), options, "POST", "/v1/sandboxes", wanted)


def options_out(options: SandboxOptions) -> dict[str, Any]:
    """The options that a server needs. Variables, working directory and timeout of commands are
    the client's; the server keeps them for a client that finds the sandbox by its id."""
    if options.wasm_dir is not None:
        raise ValueError("wasm_dir is a directory of this machine, which the server cannot read")
    if options.mounts:
        raise no_mounts(HttpBackend.kind)
    wanted: dict[str, Any] = {
        option.name: getattr(options, option.name)
        for option in OPTIONS
        if SandboxInterface.HTTP in option.interfaces
    }
    wanted["env"] = dict(options.env)
    if options.timeout_ms is not None:
        wanted["timeout_ms"] = min(options.timeout_ms, arguments.LONGEST_TIMEOUT_MS)
    if options.network is not None:
        wanted["network"] = plain_network_of(options.network)
    return wanted


def plain_network_of(network: Network) -> dict[str, Any]:
    """What the server needs to know of a network. Contains secrets."""
    from wasmsand.sdk.network import plain_network

    for name in ("ask", "on_event", "proxy", "ceiling"):
        if getattr(network, name) is not None:
            raise UnsupportedError(
                f"Sandbox.connect does not offer Network({name}=...): it is the server's"
            )
    return plain_network(network)


def _backend(
    transport: Transport, options: SandboxOptions, method: str, path: str, value: object = None
) -> HttpBackend:
    """Send the request; its response describes the sandbox."""
    try:
        state = object_of(transport.ask(method, path, value=value))
        longest = float(state["max_command_seconds"])
        return HttpBackend(transport, str(state["id"]), longest, options)
    except BaseException:
        transport.close()
        raise


class HttpBackend(HttpPorts, HttpTerminals, HttpLife, HttpCopies, WithoutDisks):
    """One sandbox on a server."""

    kind = "Sandbox.connect"

    survives_fork = True

    def __init__(
        self,
        transport: Transport,
        identity: str,
        max_command_seconds: float,
        options: SandboxOptions,
        *,
        is_found: bool = False,
    ) -> None:
        """`is_found`: the sandbox existed before, and does not end with this object."""
        self.id = identity
        self.variables = dict(options.env)
        self._told = dict(options.env)
        self.cwd = options.cwd
        self._longest = max_command_seconds
        self._transport = transport
        self._path = f"/v1/sandboxes/{identity}"
        self._adopted = {}
        self._begin_life(is_found=is_found)

    # Commands.

    def run(self, request: CommandRequest, cancellation: Cancellation | None = None) -> Completed:
        """See `Backend`."""
        self._tell_variables()
        exchange = HttpExchange()
        if cancellation is not None:
            # The server kills the command of a client that disconnects.
            cancellation.on_cancel(exchange.break_off)
        seconds = self._longest
        if request.timeout_seconds is not None:
            seconds = min(seconds, request.timeout_seconds)
        try:
            answer = self._transport.ask(
                "POST",
                f"{self._path}/run",
                value=_wanted(request),
                seconds=seconds + _COMPILE_SECONDS,
                exchange=exchange,
            )
        except SandboxError:
            if exchange.broken:
                return Completed(137, False, 0.0)
            raise
        outcome = object_of(answer)
        return Completed.of(
            ended_of(outcome),
            exact_bytes(outcome.get("stdout"), outcome.get("stdout_base64")),
            exact_bytes(outcome.get("stderr"), outcome.get("stderr_base64")),
            bool(outcome["truncated"]),
        )

    def start(self, request: CommandRequest) -> BackendProcess:
        """See `Backend`."""
        self._tell_variables()
        wanted = _wanted(request)
        wanted["open_stdin"] = request.stdin is None
        wanted["inputs"] = request.extra_inputs
        wanted["outputs"] = request.extra_outputs
        if request.session is not None:
            wanted["session"] = dict(zip(("kind", "identity"), request.session, strict=True))
        state = self._post("/commands", wanted, seconds=_COMPILE_SECONDS)
        path = f"{self._path}/commands/{state['id']}"
        return HttpProcess(self._transport, path, state["pid"], is_kept=request.session is not None)

    def processes(self) -> list[ProcessInfo]:
        """See `Backend`."""
        return [
            ProcessInfo(**{**item, "argv": tuple(item["argv"])})
            for item in self._get("/processes")["processes"]
        ]

    def kill_process(self, pid: int) -> bool:
        """See `Backend`."""
        return bool(self._post(f"/processes/{pid}/kill", {})["killed"])

    def signal(self, pid: int, number: int) -> None:
        """See `Backend`."""
        self._post(f"/processes/{pid}/signal", {"signal": number})

    def usage(self) -> Usage:
        """See `Backend`."""
        return Usage(**self._get("/usage"))

    # Files.

    def read_file(self, path: str, offset: int = 0, count: int | None = None) -> bytes:
        """See `Backend`."""
        query: dict[str, object] = {"path": path}
        if offset:
            query["offset"] = offset
        if count is not None:
            query["count"] = count
        return self._transport.ask("GET", f"{self._path}/files", query=query)

    def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """See `Backend`."""
        query: dict[str, object] = {"path": path}
        if mode is not None:
            query["mode"] = mode
        self._transport.ask("PUT", f"{self._path}/files", query=query, content=data)

    def write_files(self, files: Sequence[FileWrite]) -> None:
        """See `Backend`."""
        wanted = [
            {
                "path": each.path,
                "base64": base64.b64encode(each.data).decode("ascii"),
                "mode": each.mode,
            }
            for each in files
        ]
        self._post("/files/batch", {"files": wanted})

    def append_file(self, path: str, data: bytes) -> None:
        """See `Backend`."""
        self._transport.ask(
            "POST", f"{self._path}/files/append", query={"path": path}, content=data
        )

    def list_directory(self, path: str, *, recursive: bool = False) -> list[FileInfo]:
        """See `Backend`."""
        answer = self._get("/files/list", path=path, recursive=_word(recursive))
        return [FileInfo(**item) for item in answer["entries"]]

    def make_directory(self, path: str, *, parents: bool = True) -> None:
        """See `Backend`."""
        self._post("/files/mkdir", {"path": path, "parents": parents})

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """See `Backend`."""
        query = {"path": path, "recursive": _word(recursive)}
        self._transport.ask("DELETE", f"{self._path}/files", query=query)

    def rename(self, source: str, target: str) -> None:
        """See `Backend`."""
        self._post("/files/rename", {"source": source, "target": target})

    def copy(self, source: str, target: str) -> None:
        """See `Backend`."""
        self._post("/files/copy", {"source": source, "target": target})

    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """See `Backend`."""
        return FileInfo(**self._get("/files/stat", path=path, follow=_word(follow)))

    def chmod(self, path: str, mode: int) -> None:
        """See `Backend`."""
        self._post("/files/chmod", {"path": path, "mode": mode})

    def symlink(self, target: str, path: str) -> None:
        """See `Backend`."""
        self._post("/files/symlink", {"path": path, "target": target})

    def read_link(self, path: str) -> str:
        """See `Backend`."""
        return str(self._get("/files/link", path=path)["target"])

    def export_tar(self, path: str) -> Iterator[bytes]:
        """See `Backend`."""
        return self._transport.ask_pieces("GET", f"{self._path}/files/tar", query={"path": path})

    def import_tar(self, path: str, pieces: Iterable[bytes]) -> None:
        """See `Backend`."""
        self._transport.ask("PUT", f"{self._path}/files/tar", query={"path": path}, content=pieces)

    # Packages.

    def install_packages(self, request: PackageRequest) -> None:
        """See `Backend`. The server decides whether the package index may be used."""
        seconds = self._longest
        if request.timeout_seconds is not None:
            seconds = min(seconds, request.timeout_seconds)
        self._transport.ask(
            "POST",
            f"{self._path}/packages/install",
            value={"requirements": request.requirements, "timeout_ms": seconds * 1000},
            seconds=seconds + _MARGIN_SECONDS,
        )

    def uninstall_packages(self, names: tuple[str, ...]) -> None:
        """See `Backend`."""
        self._post("/packages/uninstall", {"names": names})

    def installed_packages(self) -> list[PackageInfo]:
        """See `Backend`."""
        return [PackageInfo(**item) for item in self._get("/packages")["packages"]]

    def available_packages(self) -> list[PackageInfo]:
        """See `Backend`."""
        return [PackageInfo(**item) for item in self._get("/packages/available")["packages"]]

    # The network.

    def allow_network(self, rules: tuple[str, ...]) -> None:
        """See `Backend`. The server decides what this client may allow."""
        self._post("/network/allow", {"rules": rules})

    def deny_network(self, rules: tuple[str, ...]) -> None:
        """See `Backend`."""
        self._post("/network/deny", {"rules": rules})

    def network_rules(self) -> NetworkRules:
        """See `Backend`."""
        found = self._get("/network")
        return NetworkRules(tuple(found["allow"]), tuple(found["deny"]))

    def network_log(self) -> list[NetworkEvent]:
        """See `Backend`."""
        from wasmsand.sdk.network import NetworkEvent

        return [NetworkEvent(**item) for item in self._get("/network/log")["events"]]

    # Life.

    def _tell_variables(self) -> None:
        """See `HttpCopies`. Commands bring their own variables: the server keeps them for clients
        that find the sandbox."""
        wanted = dict(self.variables)
        if wanted == self._told:
            return
        change = {
            "set": {name: text for name, text in wanted.items() if self._told.get(name) != text},
            "unset": [name for name in self._told if name not in wanted],
        }
        with suppress(ServerError, ValueError):  # more than a server keeps; programs may get them
            self._transport.ask("PATCH", f"{self._path}/env", value=change)
        self._told = wanted

    def close(self) -> None:
        """See `Backend`."""
        self.close_ports()
        self._end_life()

    def leave(self) -> None:
        """Disconnect, and let the sandbox live until it expires. The backend is unusable after."""
        self.keep_alive()
        self.close()

    def _get(self, part: str, **query: object) -> dict[str, Any]:
        return object_of(self._transport.ask("GET", self._path + part, query=query))

    def _post(
        self, part: str, value: Mapping[str, object], seconds: float = ANSWER_SECONDS
    ) -> dict[str, Any]:
        path = self._path + part
        return object_of(self._transport.ask("POST", path, value=value, seconds=seconds))


def _wanted(request: CommandRequest) -> dict[str, object]:
    seconds = request.timeout_seconds
    wanted: dict[str, object] = {
        "command": request.argv,
        "environ": dict(request.environ),
        "cwd": request.cwd,
        "timeout_ms": None if seconds is None else seconds * 1000,
    }
    if request.user != DEFAULT_USER:  # an older server does not know it
        wanted["user"] = request.user
    if request.stdin:
        wanted["stdin_base64"] = base64.b64encode(request.stdin).decode("ascii")
    return wanted


def _word(flag: bool) -> str:
    return "true" if flag else "false"
