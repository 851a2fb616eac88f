"""`V86Backend`: a v86 machine as a sandbox.

Rules: limits are those of `SandboxOptions`, as far as the machine can hold them; others are
refused when the sandbox is created. Errors have the same types and words as in a local sandbox.
What a machine cannot do raises `UnsupportedError` (`unoffered`). A call that finds its machine lost
raises an error with EIO, and the next call starts the machine again.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Final

from wasmsand.kernel.errno import KernelError
from wasmsand.sdk.backend import (
    Cancellation,
    CapturedOutput,
    CommandRequest,
    Completed,
    Ended,
    FileWrite,
)
from wasmsand.sdk.errors import (
    ArchiveError,
    CommandError,
    DiskImageError,
    UnsupportedError,
    command_errors,
    file_error,
    file_errors,
)
from wasmsand.sdk.options import HOME, SandboxOptions
from wasmsand.sdk.results import FileInfo, ProcessInfo, Usage
from wasmsand.v86 import linux
from wasmsand.v86.agent import Agent, MachineLost
from wasmsand.v86.command import GuestCommand
from wasmsand.v86.disk import (
    LEFT_OUT_FILE,
    LOAD_COMMAND,
    REMOVE_COMMAND,
    SAVE_COMMAND,
    LoadedImage,
    write_image,
)
from wasmsand.v86.files import GuestFiles
from wasmsand.v86.image import V86Image, find_image
from wasmsand.v86.machine import BOX, SCRATCH, GuestMachine
from wasmsand.v86.process import V86Process
from wasmsand.v86.processes import list_processes
from wasmsand.v86.unoffered import WithoutLocalParts

_ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


def open_v86_backend(options: SandboxOptions) -> V86Backend:
    """A new machine. Raises `ImageMissingError`, `UnsupportedError`, `ValueError`."""
    image = find_image()
    _check(options, image)
    return V86Backend(image, options)


def _check(options: SandboxOptions, image: V86Image) -> None:
    """Refuse options that the machine cannot hold."""
    for name, value, most in (
        ("memory_limit_bytes", options.memory_limit_bytes, image.most_memory_bytes),
        ("fs_limit_bytes", options.fs_limit_bytes, image.most_disk_bytes),
    ):
        if value > most:
            raise ValueError(f"{name} can be at most {most} in v86 mode, not {value}")
    default = SandboxOptions()
    if options.max_inodes != default.max_inodes:
        raise UnsupportedError(f"v86 mode always has max_inodes={image.most_inodes}")
    for name in ("wasm_dir", "packages", "network", "mounts"):
        if getattr(options, name) != getattr(default, name):
            raise UnsupportedError(f"v86 mode does not offer {name}; use mode='simple'")


class V86Backend(WithoutLocalParts):
    """A machine, as a `Backend`."""

    def __init__(self, image: V86Image, options: SandboxOptions) -> None:
        self._options = options
        self._machine = GuestMachine(image, options)
        # Weak, so that the machine ends when nobody uses the sandbox any more.
        fill = weakref.WeakMethod(self._fill)
        self._machine.on_new = lambda agent: found(agent) if (found := fill()) else None
        weakref.finalize(self, self._machine.close)
        self._files = GuestFiles(self._machine.agent, options.fs_limit_bytes)
        self._loaded: LoadedImage | None = None
        self._began = time.monotonic()
        self.variables = dict(options.env)
        self.cwd = options.cwd
        with self._command_losses():
            self._machine.agent()

    def _fill(self, agent: Agent) -> None:
        """What every new machine gets."""
        if self._loaded is not None:
            self._unpack(agent, self._loaded)
        if self.cwd != HOME:
            with suppress(KernelError):
                GuestFiles(lambda: agent, 0).make_directory(self.cwd, parents=True)

    # Commands.

    def run(self, request: CommandRequest, cancellation: Cancellation | None = None) -> Completed:
        """See `Backend`."""
        with self._command_losses(), command_errors(request.argv[0]):
            agent = self._machine.agent()
            return self._run(agent, request, cancellation)

    def _run(
        self, agent: Agent, request: CommandRequest, cancellation: Cancellation | None = None
    ) -> Completed:
        command = GuestCommand(agent, request, self._options.max_open_files)
        if cancellation is not None:
            cancellation.on_cancel(command.kill)
        captured = CapturedOutput(self._options.max_output_bytes)
        seconds = request.timeout_seconds
        deadline = None if seconds is None else time.monotonic() + seconds
        data, done = request.stdin or b"", 0
        while not command.has_ended:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            taken, done = command.step(data, done, left)
            for output in taken:
                captured.keep(output.fd, output.data)
            if captured.truncated:
                command.kill()
                command.end_certainly()
                break
            if deadline is not None and not command.has_ended and time.monotonic() >= deadline:
                command.time_out()
                command.end_certainly()
        ended = command.wait()
        assert ended is not None
        notices = self._finish(agent, command, ended)
        return captured.completed(Ended(ended.exit_code, ended.timed_out, ended.seconds, notices))

    def _finish(self, agent: Agent, command: GuestCommand, ended: Ended) -> tuple[str, ...]:
        """Clean up after a command; returns the notices."""
        notices: tuple[str, ...] = ()
        if ended.exit_code and self._machine.was_out_of_memory(agent, command.identity):
            limit = self._options.memory_limit_bytes
            notices = (
                f"out of memory ({limit} bytes), a process was ended; raise memory_limit_bytes",
            )
        self._machine.clean(agent, command.identity)
        return notices

    def start(self, request: CommandRequest) -> V86Process:
        """See `Backend`."""
        if request.session is not None and request.session[0] == "python":
            raise self._unsupported("Python sessions")
        with self._command_losses(), command_errors(request.argv[0]):
            agent = self._machine.agent()
            command = GuestCommand(agent, request, self._options.max_open_files)
        return V86Process(command, request, lambda: self._machine.clean(agent, command.identity))

    def processes(self) -> list[ProcessInfo]:
        """See `Backend`."""
        with self._command_losses(), command_errors("processes"):
            return list_processes(self._machine.agent())

    def kill_process(self, pid: int) -> bool:
        """See `Backend`."""
        try:
            self.signal(pid, 9)
        except CommandError as error:
            if error.errno_name == "ESRCH":
                return False
            raise
        return True

    def signal(self, pid: int, number: int) -> None:
        """See `Backend`."""
        with self._command_losses(), command_errors(f"pid {pid}"):
            linux.kill(self._machine.agent(), pid, number)

    def usage(self) -> Usage:
        """See `Backend`."""
        options = self._options
        with self._command_losses(), command_errors("usage"):
            agent = self._machine.agent()
            size, blocks, free, inodes, free_inodes = linux.space(agent, SCRATCH)
            memory = _numbers(linux.read_control(agent, BOX + b"/memory.stat"))
            cpu = _numbers(linux.read_control(agent, BOX + b"/cpu.stat"))
            processes = linux.read_control(agent, BOX + b"/pids.current").strip()
        used = sum(memory.get(name, 0) for name in (b"anon", b"shmem", b"kernel"))
        return Usage(
            fs_bytes=(blocks - free) * size,
            fs_limit_bytes=options.fs_limit_bytes,
            inodes=inodes - free_inodes,
            max_inodes=options.max_inodes,
            processes=int(processes) if processes.isdigit() else 0,
            max_processes=options.max_processes,
            memory_bytes=min(used, options.memory_limit_bytes),
            memory_limit_bytes=options.memory_limit_bytes,
            cpu_time_ms=cpu.get(b"usage_usec", 0) / 1000,
            kernel_bytes=memory.get(b"kernel", 0),
        )

    # Files.

    def read_file(self, path: str, offset: int = 0, count: int | None = None) -> bytes:
        """See `Backend`."""
        with self._file_losses(path):
            return self._files.read(path, offset, count)

    def write_file(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """See `Backend`."""
        with self._file_losses(path):
            self._files.write(path, data, mode)

    def write_files(self, files: Sequence[FileWrite]) -> None:
        """See `Backend`. Files that were written before a failure are removed or restored."""
        undo: list[tuple[str, bytes | None]] = []
        for file in files:
            path = file.path
            try:
                with self._file_losses(path):
                    try:
                        before: bytes | None = self._files.read(path, 0, None)
                    except KernelError:
                        before = None
                    self._files.write(path, file.data, file.mode)
            except BaseException:
                for written, content in reversed(undo):
                    with suppress(KernelError, MachineLost):
                        if content is None:
                            self._files.remove(written, recursive=False)
                        else:
                            self._files.write(written, content, None)
                raise
            undo.append((path, before))

    def append_file(self, path: str, data: bytes) -> None:
        """See `Backend`."""
        with self._file_losses(path):
            self._files.append(path, data)

    def list_directory(self, path: str, *, recursive: bool = False) -> list[FileInfo]:
        """See `Backend`."""
        with self._file_losses(path):
            return self._files.entries(path, recursive=recursive)

    def make_directory(self, path: str, *, parents: bool = True) -> None:
        """See `Backend`."""
        with self._file_losses(path):
            self._files.make_directory(path, parents=parents)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """See `Backend`."""
        with self._file_losses(path):
            self._files.remove(path, recursive=recursive)

    def rename(self, source: str, target: str) -> None:
        """See `Backend`."""
        with self._file_losses(source):
            self._files.rename(source, target)

    def copy(self, source: str, target: str) -> None:
        """See `Backend`."""
        with self._file_losses(source):
            self._files.stat(source, follow=False)
            parent = target.rstrip("/").rpartition("/")[0]
            if parent:
                self._files.make_directory(parent, parents=True)
        # The last argument, `SOURCE/.`, makes cp merge directories.
        merged = f"{source}/." if self._is_directory(source) else source
        done = self._as_root(("cp", "-aT", "--", merged, target))
        if done.exit_code:
            message = done.stderr.decode("utf-8", "replace").strip()[-300:]
            raise file_error(f"EIO: {message} ({source})", "EIO", source)

    def _is_directory(self, path: str) -> bool:
        with self._file_losses(path):
            return self._files.stat(path, follow=False).type == "dir"

    def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """See `Backend`."""
        with self._file_losses(path):
            return self._files.stat(path, follow=follow)

    def chmod(self, path: str, mode: int) -> None:
        """See `Backend`."""
        with self._file_losses(path):
            self._files.chmod(path, mode)

    def symlink(self, target: str, path: str) -> None:
        """See `Backend`."""
        with self._file_losses(path):
            self._files.symlink(target, path)

    def read_link(self, path: str) -> str:
        """See `Backend`."""
        with self._file_losses(path):
            return self._files.read_link(path)

    def export_tar(self, path: str) -> Iterator[bytes]:
        """See `Backend`."""
        is_directory = self._is_directory(path)
        folder, _, name = path.rstrip("/").rpartition("/")
        place, what = (path, ".") if is_directory else (folder or "/", f"./{name}")
        words = ("tar", "--create", "--format=pax", f"--directory={place}", "--file=-", what)
        return self._output_of(words)

    def import_tar(self, path: str, pieces: Iterable[bytes]) -> None:
        """See `Backend`."""
        self.make_directory(path)
        words = ("tar", "--extract", "--no-same-owner", f"--directory={path}", "--file=-")
        data = b"".join(pieces)
        gzip = ("--gzip",) if data[:2] == b"\x1f\x8b" else ()
        done = self._as_root((*words[:2], *gzip, *words[2:]), data)
        if done.exit_code:
            message = done.stderr.decode("utf-8", "replace").strip()[-300:]
            raise ArchiveError(f"EINVAL: {message} ({path})", "EINVAL", path)

    # Disk images.

    def save_disk(self, stream: IO[bytes]) -> None:
        """See `Backend`, but it does not work after `close`."""
        write_image(stream, self._output_of(SAVE_COMMAND))

    def load_disk(self, stream: IO[bytes]) -> None:
        """See `Backend`."""
        loaded = LoadedImage(stream, self._options.fs_limit_bytes)
        with self._command_losses():
            self._unpack(self._machine.agent(), loaded)
        self._loaded = loaded

    def _unpack(self, agent: Agent, loaded: LoadedImage) -> None:
        try:
            GuestFiles(lambda: agent, 1 << 30).write(LEFT_OUT_FILE, loaded.left_out(), None)
            for words, data in ((REMOVE_COMMAND, loaded.removed()), (LOAD_COMMAND, None)):
                content = b"".join(loaded.pieces()) if data is None else data
                done = self._run(agent, _root_request(words, content))
                if done.exit_code:
                    message = done.stderr.decode("utf-8", "replace").strip()[-300:]
                    raise DiskImageError(f"the disk image could not be loaded: {message}")
        except KernelError as error:
            raise DiskImageError(f"the disk image could not be loaded: {error}") from None

    def close(self) -> None:
        """See `Backend`."""
        self._machine.close()

    # Common parts.

    def _as_root(self, words: Sequence[str], data: bytes = b"") -> Completed:
        return self.run(_root_request(words, data))

    def _output_of(self, words: Sequence[str]) -> Iterator[bytes]:
        """The output of a program that runs as root, in pieces."""
        with self._command_losses(), command_errors(words[0]):
            agent = self._machine.agent()
            command = GuestCommand(agent, _root_request(words), self._options.max_open_files)
            problem = b""
            try:
                while taken := command.read():
                    for output in taken:
                        if output.fd == 1:
                            yield output.data
                        else:
                            problem = (problem + output.data)[-300:]
            finally:
                command.kill()
            ended = command.wait()
            assert ended is not None
            self._machine.clean(agent, command.identity)
        if ended.exit_code:
            message = problem.decode("utf-8", "replace").strip()
            raise CommandError(f"EIO: {words[0]} failed: {message}", "EIO")

    @contextmanager
    def _command_losses(self) -> Iterator[None]:
        """Turn the loss of the machine into a public exception."""
        try:
            yield
        except MachineLost as lost:
            raise CommandError(_loss(lost), "EIO") from None

    @contextmanager
    def _file_losses(self, path: str) -> Iterator[None]:
        try:
            with file_errors(path):
                yield
        except MachineLost as lost:
            raise file_error(f"{_loss(lost)} ({path})", "EIO", path) from None


def _loss(lost: MachineLost) -> str:
    return (
        f"EIO: the machine was lost ({lost}); the next request starts it again from its saved "
        "state, without the changes since then"
    )


def _root_request(words: Sequence[str], data: bytes = b"") -> CommandRequest:
    return CommandRequest(tuple(words), _ENVIRONMENT, "/", None, data, user="root")


def _numbers(text: bytes) -> dict[bytes, int]:
    """The lines `name number` of a file of a cgroup."""
    found = {}
    for line in text.splitlines():
        name, _, number = line.partition(b" ")
        if number.isdigit():
            found[name] = int(number)
    return found
