"""`Sandbox(isolation="process")`: a sandbox in a separate process, behind the same API.

Owns `ProcessBackend`. Rules: each operation of `Backend` is a method of `wasmsand rpc`; an error
response becomes the exception that a sandbox in this process would raise.
"""

from __future__ import annotations

import logging
import os
import weakref
from _thread import start_new_thread
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from wasmsand.rpc import values
from wasmsand.rpc.client import ANSWER_SECONDS, RpcConnection
from wasmsand.rpc.failures import failures
from wasmsand.rpc.params import Params
from wasmsand.rpc.process_copies import CopiedState, ProcessCopies
from wasmsand.rpc.process_network import ProcessNetwork, event_receiver
from wasmsand.rpc.process_ports import ProcessPorts
from wasmsand.rpc.process_terminals import ProcessTerminals
from wasmsand.rpc.shared_process import FIRST, SandboxAddress, SharedProcess, leave_later
from wasmsand.rpc.spares import keep_spares, take_spare
from wasmsand.sdk.backend import (
    STDIN,
    BackendProcess,
    Cancellation,
    CommandRequest,
    Completed,
    Ended,
    FileWrite,
    Output,
    PackageRequest,
)
from wasmsand.sdk.errors import SandboxClosedError, no_space
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.package_requests import packages_of_image, prepare_packages
from wasmsand.sdk.polled_process import PolledProcess
from wasmsand.sdk.results import FileInfo, PackageInfo, ProcessInfo, Usage
from wasmsand.sdk.unsupported import WithoutDisks, no_mounts, unsupported

log = logging.getLogger("wasmsand.rpc")

_PIECE: Final = 1024 * 1024
_AT_ONCE: Final = 4 * 1024 * 1024
"""A file up to this size is written by one request; a longer one is sent in pieces."""
_SPARE_SECONDS: Final = 10.0
"""How long a spare process may take to create a sandbox; it usually takes milliseconds."""
_MARGIN_SECONDS: Final = 300.0
"""How much later than the request's own timeout a process may respond: it may have to compile a
program of the image first, which does not count against the timeout. A process that has ended is
noticed at once."""
_ENTRY_BYTES: Final = 16 * 1024
"""Upper bound of the JSON of one file in a listing, or of one process."""


def open_process_backend(options: SandboxOptions) -> ProcessBackend:
    """A new sandbox in a new process."""
    if options.mounts:
        raise no_mounts(ProcessBackend.kind)
    return ProcessBackend(options)


def keep_process_spares(count: int) -> None:
    """Keep `count` processes ready for sandboxes whose limits are at most the defaults."""
    keep_spares(count, _longest_line(SandboxOptions()))


def open_connection(options: SandboxOptions) -> RpcConnection:
    """Start a process for a sandbox with these options. Only one for a network may make
    connections."""
    directories = [] if options.wasm_dir is None else [options.wasm_dir]
    network = options.network
    if network is None:
        return RpcConnection(_longest_line(options), directories)
    if network.ask is not None:
        raise unsupported(ProcessBackend.kind, "Network(ask=...)")
    # Imported here, because most sandboxes have no network.
    from wasmsand.sdk.network import uses_host_proxy

    return RpcConnection(
        _longest_line(options),
        directories,
        network=True,
        host_proxy=uses_host_proxy(network),
        on_notification=event_receiver(network),
    )


def spare_for(options: SandboxOptions) -> RpcConnection | None:
    """A process that is ready for a sandbox with these options, if there is one."""
    if options.network is not None or options.wasm_dir is not None:
        return None
    return take_spare(_longest_line(options))


def send_pieces(address: SandboxAddress, begun: Params, pieces: Iterable[bytes]) -> None:
    """Write pieces to the stream that a method has begun, and finish it. Raises `RpcError`."""
    stream = begun.integer("stream")
    try:
        for piece in pieces:
            for start in range(0, len(piece), _PIECE):
                data = values.data_out(piece[start : start + _PIECE])
                address.call("streams.write", {"stream": stream, "data": data})
        address.call("streams.finish", {"stream": stream})
    finally:
        address.notify("streams.close", stream=stream)


class ProcessBackend(ProcessNetwork, ProcessPorts, ProcessTerminals, ProcessCopies, WithoutDisks):
    """A machine in a separate process, as a `Backend`."""

    kind = 'isolation="process"'

    def __init__(self, options: SandboxOptions) -> None:
        """Raises what `LocalBackend` raises, and `SandboxCrashedError`."""
        self._fs_limit_bytes = options.fs_limit_bytes
        self.variables = dict(options.env)
        self.cwd = options.cwd
        self._has_network = options.network is not None
        spare = spare_for(options)
        if spare is not None:
            try:
                self._begin(spare, options, _SPARE_SECONDS)
                return
            except SandboxClosedError:
                pass  # the spare died or hangs: start a new process instead
        # Compiling the programs of wasm_dir may take long, so there is no timeout.
        seconds = ANSWER_SECONDS if options.wasm_dir is None else None
        self._begin(open_connection(options), options, seconds)

    def _begin(
        self, connection: RpcConnection, options: SandboxOptions, seconds: float | None
    ) -> None:
        params = values.options_out(options)
        if options.network is not None and options.network.on_event is not None:
            params["networkEvents"] = True
        try:
            with failures():
                connection.call("create", params, seconds)
                self.barriers = tuple(connection.call("confinement", {}).texts("barriers"))
                barriers = ", ".join(self.barriers) or "nothing"
                log.info("process %d of a sandbox is confined by: %s", connection.pid, barriers)
        except BaseException:
            connection.close()
            raise
        self._join(SharedProcess(connection), FIRST, {})

    @classmethod
    def of_copy(
        cls,
        process: SharedProcess,
        number: int,
        options: SandboxOptions,
        state: CopiedState,
    ) -> ProcessBackend:
        """A sandbox that exists in `process` already."""
        backend = cls.__new__(cls)
        backend._fs_limit_bytes = options.fs_limit_bytes
        backend.variables = dict(state.variables)
        backend.cwd = state.cwd
        backend._has_network = options.network is not None
        backend.barriers = state.barriers
        backend._join(process, number, state.programs)
        return backend

    def _join(
        self, process: SharedProcess, number: int, adopted: dict[int, tuple[int, int]]
    ) -> None:
        process.join()
        self._process = process
        self._adopted = adopted
        self._connection = SandboxAddress(process.connection, number)
        self._killing: dict[str, object] = {"sandbox": number}
        self._finalizer = weakref.finalize(
            self, leave_later, process, "kill", self._killing, os.getpid()
        )

    barriers: tuple[str, ...]
    """The barriers that confine the process; see `wasmsand.confinement`."""

    @property
    def pid(self) -> int:
        """The pid of the process."""
        return self._connection.pid

    def _call(self, method: str, **params: object) -> Params:
        with failures():
            return self._connection.call(method, params)

    def _call_within(self, seconds: float | None, method: str, **params: object) -> Params:
        """Call a method that waits for up to `seconds`."""
        with failures():
            limit = None if seconds is None else seconds + _MARGIN_SECONDS
            return self._connection.call(method, params, limit)

    # Commands.

    def run(self, request: CommandRequest, cancellation: Cancellation | None = None) -> Completed:
        """See `Backend`."""
        connection = self._connection
        with failures():
            seconds = request.timeout_seconds
            limit = None if seconds is None else seconds + _MARGIN_SECONDS
            call = connection.begin("commands.run", _request_out(request), limit)

            def cancel() -> None:
                connection.notify("commands.cancel", request=call.number)

            if cancellation is not None:
                cancellation.on_cancel(cancel)
            try:
                return values.completed_in(call.result(limit))
            except KeyboardInterrupt:  # the caller gives up: kill the command
                cancel()
                raise

    def start(self, request: CommandRequest) -> BackendProcess:
        """See `Backend`."""
        params = _request_out(request)
        params["extraInputs"] = list(request.extra_inputs)
        params["extraOutputs"] = list(request.extra_outputs)
        result = self._call_within(0.0, "commands.start", **params)
        return RpcProcess(self._connection, result.integer("command"), result.integer("pid"))

    def processes(self) -> list[ProcessInfo]:
        """See `Backend`."""
        found = self._call("commands.list").objects("processes")
        return [values.record_in(item, ProcessInfo) for item in found]

    def kill_process(self, pid: int) -> bool:
        """See `Backend`."""
        return self._call("commands.killProcess", pid=pid).flag("killed")

    def signal(self, pid: int, number: int) -> None:
        """See `Backend`."""
        self._call("commands.signal", pid=pid, signal=number)

    def usage(self) -> Usage:
        """See `Backend`."""
        return values.record_in(self._call("usage"), Usage)

    # Files.

    def read_file(self, path: str, offset: int = 0, count: int | None = None) -> bytes:
        """See `Backend`."""
        return self._call("files.read", path=path, offset=offset, count=count).data("data")

    def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """See `Backend`."""
        if len(data) <= _AT_ONCE:
            self._call("files.write", path=path, data=self._content(path, data), mode=mode)
            return
        # Send pieces, because decoding one long line would block other threads.
        self._check_fits(path, data)
        self._send_pieces(self._call("files.writeStream", path=path, mode=mode), (data,))

    def write_files(self, files: Sequence[FileWrite]) -> None:
        """See `Backend`."""
        wanted = [
            {"path": each.path, "data": self._content(each.path, each.data), "mode": each.mode}
            for each in files
        ]
        self._call("files.writeMany", files=wanted)

    def append_file(self, path: str, data: bytes) -> None:
        """See `Backend`."""
        self._call("files.append", path=path, data=self._content(path, data))

    def _content(self, path: str, data: bytes) -> str:
        self._check_fits(path, data)
        return values.data_out(data)

    def _check_fits(self, path: str, data: bytes) -> None:
        """Refuse content that is larger than the file system: it may not fit in a line."""
        if len(data) > self._fs_limit_bytes:
            raise no_space(path, self._fs_limit_bytes)

    def list_directory(self, path: str, *, recursive: bool = False) -> list[FileInfo]:
        """See `Backend`."""
        result = self._call("files.list", path=path, recursive=recursive, details=True)
        return [values.record_in(item, FileInfo) for item in result.objects("entries")]

    def make_directory(self, path: str, *, parents: bool = True) -> None:
        """See `Backend`."""
        self._call("files.mkdir", path=path, parents=parents)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """See `Backend`."""
        self._call("files.rm", path=path, recursive=recursive)

    def rename(self, source: str, target: str) -> None:
        """See `Backend`."""
        self._call("files.rename", source=source, target=target)

    def copy(self, source: str, target: str) -> None:
        """See `Backend`."""
        self._call("files.copy", source=source, target=target)

    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """See `Backend`."""
        return values.record_in(
            self._call("files.stat", path=path, follow=follow, details=True), FileInfo
        )

    def chmod(self, path: str, mode: int) -> None:
        """See `Backend`."""
        self._call("files.chmod", path=path, mode=mode)

    def symlink(self, target: str, path: str) -> None:
        """See `Backend`."""
        self._call("files.symlink", target=target, path=path)

    def read_link(self, path: str) -> str:
        """See `Backend`."""
        return self._call("files.readlink", path=path).text("target")

    def export_tar(self, path: str) -> Iterator[bytes]:
        """See `Backend`."""
        stream = self._call("files.exportTar", path=path).integer("stream")
        return self._pieces(stream)

    def _pieces(self, stream: int) -> Iterator[bytes]:
        try:
            while (result := self._call("streams.read", stream=stream)).has("data"):
                yield result.data("data")
        finally:
            self._connection.notify("streams.close", stream=stream)

    def import_tar(self, path: str, pieces: Iterable[bytes]) -> None:
        """See `Backend`."""
        self._send_pieces(self._call("files.importTar", path=path), pieces)

    def _send_pieces(self, begun: Params, pieces: Iterable[bytes]) -> None:
        with failures():
            send_pieces(self._connection, begun, pieces)

    # Packages.

    def install_packages(self, request: PackageRequest) -> None:
        """See `Backend`. Packages are found and unpacked here, because the other process can
        neither reach the package index nor run pip."""
        prepared = prepare_packages(request, self.installed_packages())
        names, wheels = list(prepared.names), list(prepared.wheels)
        self._call("packages.installPrepared", names=names, wheels=wheels)

    def uninstall_packages(self, names: tuple[str, ...]) -> None:
        """See `Backend`."""
        self._call("packages.uninstall", names=list(names))

    def installed_packages(self) -> list[PackageInfo]:
        """See `Backend`."""
        found = self._call("packages.list").objects("packages")
        return [values.record_in(item, PackageInfo) for item in found]

    def available_packages(self) -> list[PackageInfo]:
        """See `Backend`."""
        return packages_of_image()

    # Life.

    def close(self) -> None:
        """See `Backend`."""
        if self._finalizer.detach() is None:
            return  # closed before
        self.close_ports()
        self._process.leave("kill", self._killing)


class RpcProcess(PolledProcess):
    """A command in the other process, as a `BackendProcess`."""

    def __init__(self, connection: SandboxAddress, number: int, pid: int) -> None:
        self._connection = connection
        self._number = number
        self._pid = pid
        self._finalizer = weakref.finalize(self, _release_later, connection, number, os.getpid())
        self._finalizer.atexit = False

    @property
    def number(self) -> int:
        """The number of the command in its sandbox."""
        return self._number

    @property
    def pid(self) -> int:
        """See `BackendProcess`."""
        return self._pid

    def _call(self, method: str, **params: object) -> Params:
        with failures():
            return self._connection.call(method, {"command": self._number, **params})

    def _call_in(self, seconds: float, method: str, **params: object) -> Params:
        """Call a method that waits for the command for up to `seconds`."""
        params = {"command": self._number, "timeoutMs": seconds * 1000, **params}
        with failures():
            return self._connection.call(method, params, seconds + _MARGIN_SECONDS)

    def _read_for(self, seconds: float) -> tuple[Output, ...] | None:
        result = self._call_in(seconds, "commands.read")
        if result.has("uncountedMs"):
            self._uncounted_seconds = result.number("uncountedMs") / 1000
        return None if result.flag("timedOut") else values.outputs_in(result, "outputs")

    def _write_for(self, data: bytes, fd: int, seconds: float) -> int:
        encoded = values.data_out(data)
        return self._call_in(seconds, "commands.write", data=encoded, fd=fd).integer("written")

    def _wait_for(self, seconds: float) -> Ended | None:
        ended = self._call_in(seconds, "commands.wait").object_or_none("ended")
        return None if ended is None else values.ended_in(ended)

    def close_input(self, fd: int = STDIN) -> None:
        """See `BackendProcess`."""
        self._call("commands.closeInput", fd=fd)

    def take_notices(self) -> tuple[str, ...]:
        """See `BackendProcess`."""
        return tuple(self._call("commands.notices").texts("notices"))

    def kill(self) -> None:
        """See `BackendProcess`."""
        try:
            self._call("commands.kill")
        except SandboxClosedError:
            pass  # the sandbox has ended, and the command with it


def _release_later(connection: SandboxAddress, number: int, owner: int) -> None:
    """Release the command on another thread: garbage collection may run in a thread that writes
    to the pipe. In a forked process, do nothing: the command belongs to the parent."""
    if os.getpid() == owner:
        start_new_thread(_release, (connection, number))


def _release(connection: SandboxAddress, number: int) -> None:
    connection.notify("commands.release", command=number)


def _request_out(request: CommandRequest) -> dict[str, object]:
    return {
        "command": list(request.argv),
        "environ": dict(request.environ),
        "cwd": request.cwd,
        "timeoutMs": _milliseconds(request.timeout_seconds),
        "stdin": None if request.stdin is None else values.data_out(request.stdin),
        "user": request.user,
    }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _longest_line(options: SandboxOptions) -> int:
    """An upper bound of the length of requests and responses of this sandbox."""
    data = 2 * (options.fs_limit_bytes + 2 * options.max_output_bytes)
    return data + _ENTRY_BYTES * (options.max_inodes + options.max_processes)
