"""`LocalBackend`: a sandbox whose machine runs in this process.

Rules: only this module and its kin (`local_*`) use the machine
(`machine/command.py`, the values of a command, and `machine/network/policy.py`, the rules of a
network, excepted); it turns all errors of the kernel into public exceptions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from wasmsand.kernel.clock import Clock
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.vfs.model import BLOCK_SIZE
from wasmsand.machine import (
    ArchiveRejected,
    CannotCapture,
    CapturedSession,
    FileEntry,
    ForkCapture,
    Machine,
    MachineOptions,
    MachineState,
    ProcessEntry,
    WasmProgramRejected,
    capture_at_rest,
    export_tar,
    import_tar,
    list_processes,
    send_signal,
)
from wasmsand.machine.many_files import NotWritten, write_files
from wasmsand.machine.mounts.table import MountProblem
from wasmsand.machine.network.extra import InspectionImpossible
from wasmsand.machine.processes import end_process
from wasmsand.sdk.backend import (
    BackendProcess,
    BackendTerminal,
    Cancellation,
    CommandRequest,
    Completed,
    FileWrite,
)
from wasmsand.sdk.errors import (
    ArchiveError,
    FileError,
    MountError,
    SandboxClosedError,
    SandboxError,
    StateError,
    UnsupportedError,
    WasmDirError,
    command_error,
    command_errors,
    file_errors,
)
from wasmsand.sdk.local_disk import read_disk, write_disk
from wasmsand.sdk.local_mounts import LocalMounts, mount_request
from wasmsand.sdk.local_network import LocalNetwork
from wasmsand.sdk.local_ports import LocalPorts
from wasmsand.sdk.local_process import LocalProcess, LocalTerminal
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.package_requests import (
    PackageRequest,
    package_info,
    package_problems,
    packages_of_image,
    prepare_packages,
)
from wasmsand.sdk.results import FileInfo, PackageInfo, ProcessInfo, Usage

if TYPE_CHECKING:
    from wasmsand.sdk.state import SandboxState

_SITE_PACKAGES: Final = "/usr/lib/python3.14/site-packages"


class LocalBackend(LocalMounts, LocalNetwork, LocalPorts):
    """A machine, as a `Backend`."""

    def __init__(
        self,
        options: SandboxOptions,
        state: MachineState | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        """A new sandbox, or one that continues from `state`. `clock` defaults to the host's time.
        Raises `ImageMissingError`; `WasmDirError` if `wasm_dir` contains an invalid program;
        `PackageError` if a package cannot be installed; `UnsupportedError` if the bridge cannot
        check requests or add secrets as the network's rules want."""
        try:
            with package_problems():
                if state is not None:
                    self._machine = Machine.from_state(state, clock=clock)
                else:
                    self._machine = _new_machine(options, clock)
        except (MountProblem, KernelError) as problem:
            raise MountError(str(problem), "") from None
        except WasmProgramRejected as rejected:
            raise WasmDirError(str(rejected), str(rejected.path), rejected.errno_name) from None
        except InspectionImpossible as problem:
            raise UnsupportedError(str(problem)) from None
        network = options.network
        if network is not None:
            self._machine.bridge.ask = network.ask
            self._machine.bridge.log.on_event = network.on_event
        self._policy_lock = threading.Lock()
        """Held while the network's policy is changed."""
        self._files = self._machine.files
        self.variables = self._machine.variables
        self.cwd = self._machine.cwd

    def state(self) -> MachineState:
        """The sandbox's state at rest (see `machine.at_rest`)."""
        return self._machine.state()

    # Copies.

    def capture(self, process: BackendProcess) -> object:
        """See `Backend`."""
        assert isinstance(process, LocalProcess)
        with _capture_errors():
            return capture_at_rest(self._machine, process.streamed)

    def capture_at_fork(self, process: BackendProcess) -> Callable[[], object]:
        """See `Backend`."""
        assert isinstance(process, LocalProcess)
        with _capture_errors():
            capturing = ForkCapture(self._machine, process.streamed)

        def take() -> object:
            with _capture_errors():
                return capturing.take()

        return take

    def take_state(self, captured: Sequence[object] = ()) -> MachineState:
        """See `Backend`."""
        return self._machine.state(cast("Sequence[CapturedSession]", captured))

    def open_state(self, state: object, options: SandboxOptions) -> LocalBackend:
        """See `Backend`."""
        assert isinstance(state, MachineState)
        return LocalBackend(options, state)

    def restore_state(self, state: object, options: SandboxOptions) -> LocalBackend:
        """See `Backend`."""
        return self.open_state(state, options)

    def save_state(self, state: SandboxState, name: str | None, stream: IO[bytes]) -> None:
        """See `Backend`."""
        # Imported here, because most programs save nothing.
        from wasmsand.sdk.local_files import write_local

        write_local(state, name, stream)

    def size_of(self, copied: object) -> int:
        """See `Backend`."""
        if isinstance(copied, CapturedSession):
            return copied.instance.memory_size()
        assert isinstance(copied, MachineState)
        return copied.tree.used_blocks * BLOCK_SIZE

    def adopt(self, captured: object, *, is_last: bool) -> BackendProcess:
        """See `Backend`."""
        assert isinstance(captured, CapturedSession)
        name = captured.process.name.decode("utf-8", "replace")
        try:
            return LocalProcess(self._machine.adopt(captured, is_last=is_last), name)
        except KernelError as error:
            raise StateError(f"the copy of {name} cannot run: {error}") from None

    # Commands.

    def run(self, request: CommandRequest, cancellation: Cancellation | None = None) -> Completed:
        """See `Backend`."""
        machine, on_started = self._machine, None
        if cancellation is not None:

            def on_started(job: int) -> None:
                cancellation.on_cancel(partial(machine.end_job, job))

        try:
            return machine.run(request, on_started)
        except KernelError as error:
            raise self._start_failure(error, request) from None

    def start(self, request: CommandRequest) -> BackendProcess:
        """See `Backend`."""
        try:
            process = self._machine.start(request)
        except KernelError as error:
            raise self._start_failure(error, request) from None
        return LocalProcess(process, request.argv[0])

    def open_terminal(self, request: CommandRequest, rows: int, columns: int) -> BackendTerminal:
        """See `Backend`."""
        try:
            terminal = self._machine.open_terminal(request, rows, columns)
        except KernelError as error:
            raise self._start_failure(error, request) from None
        return LocalTerminal(terminal, request.argv[0])

    def _start_failure(self, error: KernelError, request: CommandRequest) -> SandboxError:
        """The public exception for a command that could not be started."""
        if self._machine.closed:  # another thread has closed it meanwhile
            return SandboxClosedError("the sandbox was killed; create a new Sandbox")
        return command_error(error, request.argv[0])

    def processes(self) -> list[ProcessInfo]:
        """See `Backend`."""
        return [_process_info(entry) for entry in list_processes(self._machine)]

    def kill_process(self, pid: int) -> bool:
        """See `Backend`."""
        killed: list[bool] = []
        self._machine.change(lambda: killed.append(end_process(self._machine, pid)))
        return killed[0]

    def signal(self, pid: int, number: int) -> None:
        """See `Backend`."""
        with command_errors(f"pid {pid}"):
            self._machine.change(lambda: send_signal(self._machine, pid, number))

    def usage(self) -> Usage:
        """See `Backend`."""
        machine = self._machine
        with machine.lock:
            kernel = machine.kernel
            limits, space, cpu = kernel.limits, kernel.root.space, kernel.usage()
            ledger = kernel.ledger
            ledger.see()
            return Usage(
                fs_bytes=space.used_bytes,
                fs_limit_bytes=limits.fs_limit_bytes,
                inodes=space.used_inodes,
                max_inodes=limits.max_inodes,
                processes=len(kernel.processes) - 1,
                max_processes=limits.max_processes,
                memory_bytes=ledger.used,
                memory_limit_bytes=limits.memory_limit_bytes,
                cpu_time_ms=(cpu.user_ns + cpu.system_ns) / 1e6,
                kernel_bytes=ledger.objects + ledger.queued,
            )

    # Files.

    @contextmanager
    def _file_errors(self, path: str) -> Iterator[None]:
        try:
            with file_errors(path):
                yield
        except FileError as error:
            if error.errno_name == "ESRCH":  # another thread has closed the machine meanwhile
                raise SandboxClosedError("the sandbox was killed; create a new Sandbox") from None
            raise

    def _with_file_errors(self, pieces: Iterator[bytes], path: str) -> Iterator[bytes]:
        with self._file_errors(path):
            yield from pieces

    def _change(self, path: str, action: Callable[[], object]) -> None:
        """Change files; an error names `path`."""
        with self._file_errors(path):
            self._machine.change(action)

    def read_file(self, path: str, offset: int = 0, count: int | None = None) -> bytes:
        """See `Backend`."""
        with self._file_errors(path):
            return self._files.read(path, offset, count)

    def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """See `Backend`."""
        self._change(path, lambda: self._files.write(path, data, mode=mode))

    def write_files(self, files: Sequence[FileWrite]) -> None:
        """See `Backend`."""
        try:
            self._machine.change(lambda: write_files(self._files, files))
        except NotWritten as problem:
            with self._file_errors(problem.path):
                raise problem.error from None

    def append_file(self, path: str, data: bytes) -> None:
        """See `Backend`."""
        self._change(path, lambda: self._files.append(path, data))

    def list_directory(self, path: str, *, recursive: bool = False) -> list[FileInfo]:
        """See `Backend`."""
        with self._file_errors(path):
            entries = self._files.tree(path) if recursive else self._files.list(path)
        return [_info(entry) for entry in entries]

    def make_directory(self, path: str, *, parents: bool = True) -> None:
        """See `Backend`."""
        self._change(path, lambda: self._files.mkdir(path, parents=parents))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """See `Backend`."""
        self._change(path, lambda: self._files.remove(path, recursive=recursive))

    def rename(self, source: str, target: str) -> None:
        """See `Backend`."""
        self._change(source, lambda: self._files.rename(source, target))

    def copy(self, source: str, target: str) -> None:
        """See `Backend`."""
        self._change(source, lambda: self._files.copy(source, target))

    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """See `Backend`."""
        with self._file_errors(path):
            return _info(self._files.stat(path, follow=follow))

    def chmod(self, path: str, mode: int) -> None:
        """See `Backend`."""
        self._change(path, lambda: self._files.chmod(path, mode))

    def symlink(self, target: str, path: str) -> None:
        """See `Backend`."""
        self._change(path, lambda: self._files.symlink(target, path))

    def read_link(self, path: str) -> str:
        """See `Backend`."""
        with self._file_errors(path):
            return self._files.read_link(path)

    def export_tar(self, path: str) -> Iterator[bytes]:
        """See `Backend`."""
        with self._file_errors(path):
            pieces = export_tar(self._machine, path)
        return self._with_file_errors(pieces, path)

    def import_tar(self, path: str, pieces: Iterable[bytes]) -> None:
        """See `Backend`."""
        with self._file_errors(path):
            try:
                import_tar(self._machine, path, pieces)
            except ArchiveRejected as rejected:
                message = f"EINVAL: {rejected.detail} ({path})"
                raise ArchiveError(message, "EINVAL", path) from None

    # Packages.

    def install_packages(self, request: PackageRequest) -> None:
        """See `Backend`."""
        prepared = prepare_packages(request, self.installed_packages())
        self.install_prepared(prepared.names, prepared.wheels)

    def install_prepared(self, names: Sequence[str], wheels: Sequence[str]) -> None:
        """Install packages of the image, by name, and wheels that the host has unpacked, by their
        hash."""
        from wasmsand.machine.packages.installing import install_packages
        from wasmsand.machine.packages.offered import registry
        from wasmsand.machine.packages.wheel_cache import load_wheel

        found = [load_wheel(sha256) for sha256 in wheels]
        with self._file_errors(_SITE_PACKAGES), package_problems():
            install_packages(self._machine, registry(), names, found)

    def uninstall_packages(self, names: tuple[str, ...]) -> None:
        """See `Backend`."""
        from wasmsand.machine.packages.installing import uninstall_packages
        from wasmsand.machine.packages.offered import registry

        with self._file_errors(_SITE_PACKAGES), package_problems():
            uninstall_packages(self._machine, registry(), names)

    def installed_packages(self) -> list[PackageInfo]:
        """See `Backend`."""
        from wasmsand.machine.packages.installing import installed_packages

        with self._file_errors(_SITE_PACKAGES):
            found = installed_packages(self._machine)
        return [package_info(found[name].metadata, found[name].location) for name in sorted(found)]

    def available_packages(self) -> list[PackageInfo]:
        """See `Backend`."""
        return packages_of_image()

    # State at rest.

    def save_disk(self, stream: IO[bytes]) -> None:
        """See `Backend`."""
        write_disk(self._machine, stream)

    def load_disk(self, stream: IO[bytes]) -> None:
        """See `Backend`."""
        read_disk(self._machine, stream)

    # Life.

    def close(self) -> None:
        """See `Backend`."""
        self.close_ports()
        self._machine.close()


@contextmanager
def _capture_errors() -> Iterator[None]:
    try:
        yield
    except CannotCapture as error:
        raise StateError(str(error)) from None
    except MemoryError as error:
        raise StateError(f"the host has no memory for a copy: {error}") from None


def _new_machine(options: SandboxOptions, clock: Clock | None) -> Machine:
    return Machine(machine_options(options), variables=options.env, cwd=options.cwd, clock=clock)


def machine_options(options: SandboxOptions) -> MachineOptions:
    """The options that concern the machine."""
    wasm_dir = None if options.wasm_dir is None else Path(options.wasm_dir)
    policy = None
    if options.network is not None:
        # Imported here, because most sandboxes have no network.
        from wasmsand.sdk.network import policy_for

        policy = policy_for(options.network)
    return MachineOptions(
        options.limits(),
        wasm_dir=wasm_dir,
        packages=tuple(options.packages),
        network=policy,
        mounts=tuple([mount_request(path, each) for path, each in options.mounts.items()]),
    )


def _info(entry: FileEntry) -> FileInfo:
    return FileInfo(entry.name, entry.type, entry.size, entry.mode, entry.mtime_ns, entry.path)


def _process_info(entry: ProcessEntry) -> ProcessInfo:
    return ProcessInfo(
        pid=entry.pid,
        parent_pid=entry.parent_pid,
        command_pid=entry.job,
        argv=tuple(word.decode("utf-8", "surrogateescape") for word in entry.argv),
        state=entry.state,
        memory_bytes=entry.memory_bytes,
        cpu_time_ms=entry.cpu_ns / 1e6,
    )
