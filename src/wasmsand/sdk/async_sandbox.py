"""`AsyncSandbox` and its parts: the SDK for asynchronous programs.

Generated from the blocking classes by scripts/make_async.py; do not edit.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, overload

from wasmsand.sdk.async_calls import (
    AsyncDataSink,
    AsyncInputSource,
    AsyncResultSink,
    AsyncTextSink,
    Stream,
    Turns,
    call,
    in_loop,
    known_twin,
    obtain,
    remember_twin,
)
from wasmsand.sdk.backend import Backend
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, SandboxTimeout, SandboxUser
from wasmsand.sdk.command_handle import CommandHandle, OutputChunk
from wasmsand.sdk.commands import Commands
from wasmsand.sdk.environment import Environment
from wasmsand.sdk.files import CHUNK, Files, GuestPath
from wasmsand.sdk.options import HOME, Isolation, Mode, SandboxOptions
from wasmsand.sdk.packages import INSTALL_TIMEOUT_MS, Packages
from wasmsand.sdk.pool import SandboxPool
from wasmsand.sdk.ports import (
    CONNECT_TIMEOUT_MS,
    READ_BYTES,
    WAIT_TIMEOUT_MS,
    Ports,
    PortStream,
)
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.results import (
    CommandResult,
    FileInfo,
    MountDiff,
    MountInfo,
    NetworkRules,
    PackageInfo,
    PortInfo,
    ProcessInfo,
    PythonResult,
    SandboxInfo,
    Usage,
)
from wasmsand.sdk.sandbox import DEFAULTS, Sandbox
from wasmsand.sdk.sandbox_network import SandboxNetwork
from wasmsand.sdk.shell import Shell
from wasmsand.sdk.state import FileOrStream, Running, Snapshot, Snapshots
from wasmsand.sdk.stores import Store
from wasmsand.sdk.terminal import COLUMNS, ROWS, Terminal
from wasmsand.sdk.watching import FileEvent, FileWatch

if TYPE_CHECKING:
    from wasmsand.machine.network.events import NetworkEvent
    from wasmsand.sdk.mounts import Mount, MountMode
    from wasmsand.sdk.network import Network

NOT_ENTERED = (
    "the sandbox does not exist yet: use `async with AsyncSandbox(...) as sandbox`, or "
    "`await AsyncSandbox.create(...)`"
)


def _session_twin(session: Shell | PythonSession) -> AsyncShell | AsyncPythonSession:
    """The twin of a session: always the same one."""
    known = known_twin(session)
    if isinstance(known, AsyncShell | AsyncPythonSession):
        return known
    return AsyncShell(session) if isinstance(session, Shell) else AsyncPythonSession(session)


def _kill_all(sandboxes: list[Sandbox]) -> None:
    for sandbox in sandboxes:
        sandbox.kill()


class AsyncCommandHandle:
    """A started command: talk to it, wait for it, end it.

    Example:
        async with await sandbox.commands.start("cat -n") as cat:
            await cat.write_stdin("hello\\n")
            await cat.close_stdin()
            async for chunk in cat:
                print(chunk.text)

    If a task is cancelled in `wait` or while it iterates, the command keeps running, and the next
    `wait` or iteration gets the output.
    """

    def __init__(self, blocking: CommandHandle) -> None:
        self._blocking = blocking
        self._stream = Stream(lambda: iter(blocking))
        self._turns = Turns()

    @property
    def pid(self) -> int:
        """The process ID in the sandbox; `kill PID` works there."""
        return self._blocking.pid

    def __aiter__(self) -> AsyncIterator[OutputChunk]:
        """Yield the output of both streams as it is printed, in the order in which it was written.

        The iteration ends when the command has ended. Output that you get here is not in the
        result of `wait`.
        """
        return self._stream

    async def write_stdin(self, data: bytes | str, *, timeout_ms: float | None = None) -> None:
        """Write to the command's input; text is encoded as UTF-8. Waits until the command has read
        enough.

        Raises `InputTimeoutError` if not all of `data` is written after `timeout_ms`: its
        `written` is the number of bytes written, and the rest may be written again. Raises
        `CommandError` with EPIPE if the command has ended or closed its input, and with EBADF
        after `close_stdin` or if `stdin` was given to `start`.
        """
        await call(self._blocking.write_stdin, data, timeout_ms=timeout_ms)

    async def close_stdin(self) -> None:
        """Close the command's input. Calling it again does nothing."""
        await call(self._blocking.close_stdin)

    async def wait(
        self,
        *,
        timeout_ms: float | None = None,
        on_stdout: AsyncTextSink | None = None,
        on_stderr: AsyncTextSink | None = None,
    ) -> CommandResult:
        """Wait for the end of the command, and return the output that was not read by iterating.

        Raises `TimeoutError` if the command is still running after `timeout_ms`; the command
        keeps running, and you may wait again. `wait` does not close the input: if the command
        reads until the end of its input, call `close_stdin` first.
        """
        return await self._turns.call(
            self._blocking.wait,
            timeout_ms=timeout_ms,
            on_stdout=in_loop(on_stdout),
            on_stderr=in_loop(on_stderr),
        )

    async def poll(self) -> int | None:
        """Return the exit code, or None while the command is running."""
        return await call(self._blocking.poll)

    async def send_signal(self, number: int) -> None:
        """Send a signal, such as 2 (SIGINT) or 15 (SIGTERM), to the command's first process.

        Raises `CommandError` (ESRCH) if the process has ended.
        """
        await call(self._blocking.send_signal, number)

    async def kill(self) -> None:
        """End every process of the command, including those that it left in the background.
        Calling it again does nothing.
        """
        await call(self._blocking.kill)

    async def __aenter__(self) -> AsyncCommandHandle:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.kill()

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncCommands:
    """Run programs in one sandbox.

    Example:
        result = await sandbox.commands.run("sort | uniq -c", stdin="b\\na\\nb\\n")

    If a task is cancelled in `run`, its command is ended.
    """

    def __init__(self, blocking: Commands) -> None:
        self._blocking = blocking

    async def run(
        self,
        command: str | Sequence[str],
        *,
        stdin: bytes | str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_ms: float | SandboxTimeout | None = SANDBOX_TIMEOUT,
        user: SandboxUser = "user",
        on_stdout: AsyncTextSink | None = None,
        on_stderr: AsyncTextSink | None = None,
    ) -> CommandResult:
        """Run `command`, wait for its end and return its result.

        A str is a script for bash. A sequence is a program, searched for in PATH, and its
        arguments; no shell is involved. `env` adds variables for this command; `cwd` and
        `timeout_ms` replace the sandbox's values. With `user="root"` the command runs as the
        sandbox's own root, who may change every file of the sandbox and has no other rights.
        `on_stdout` and `on_stderr` get text as it is printed, on the calling thread; if one of
        them raises an exception, the command is ended and `run` raises that exception.

        `run` returns when the command has ended. A process that the command left in the
        background keeps running; its later output is dropped.

        After `timeout_ms` every process of the command is killed. The result then has exit code
        124, `command timed out` on stderr, and the output so far. The sandbox stays usable. With
        `timeout_ms=None` the command has no time limit.
        """
        return await call(
            self._blocking.run,
            command,
            stdin=stdin,
            env=env,
            cwd=cwd,
            timeout_ms=timeout_ms,
            user=user,
            on_stdout=in_loop(on_stdout),
            on_stderr=in_loop(on_stderr),
        )

    async def start(
        self,
        command: str | Sequence[str],
        *,
        stdin: bytes | str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        timeout_ms: float | None = None,
        user: SandboxUser = "user",
    ) -> AsyncCommandHandle:
        """Start `command` and return while it is running.

        The arguments are those of `run`, with two differences. Without `stdin`, the command's
        input stays open until `close_stdin`. Without `timeout_ms`, there is no time limit: the
        sandbox's `timeout_ms` does not apply.

        If you do not read the output, the command waits when a buffer of 256 KiB is full, as at
        a pipe.
        """
        return AsyncCommandHandle(
            await obtain(
                CommandHandle.kill,
                self._blocking.start,
                command,
                stdin=stdin,
                env=env,
                cwd=cwd,
                timeout_ms=timeout_ms,
                user=user,
            )
        )

    async def list(self) -> builtins.list[ProcessInfo]:
        """List every process in the sandbox, by pid: those of commands, and those that commands
        left in the background.
        """
        return await call(self._blocking.list)

    async def kill(self, pid: int) -> bool:
        """End a process at once. If it is the first process of a command (`CommandHandle.pid`, or
        `ProcessInfo.command_pid`), end every process of the command. Return False if there is no
        such process.
        """
        return await call(self._blocking.kill, pid)

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncFileWatch:
    """The changes below a path since the watch began.

    Example:
        async with await sandbox.files.watch("src") as watch:
            async for event in watch:
                print(event.type, event.path)
    """

    def __init__(self, blocking: FileWatch) -> None:
        self._blocking = blocking
        self._stream = Stream(lambda: iter(blocking))
        self._turns = Turns()

    async def poll(self) -> builtins.list[FileEvent]:
        """Return the changes since the last poll without waiting: deletions first, then by path."""
        return await self._turns.call(self._blocking.poll)

    def __aiter__(self) -> AsyncIterator[FileEvent]:
        return self._stream

    async def close(self) -> None:
        """End the watch and every iteration over it. Calling it again does nothing."""
        await call(self._blocking.close)

    async def __aenter__(self) -> AsyncFileWatch:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncFiles:
    """Read and write a sandbox's files without running a command.

    Example:
        await sandbox.files.write("a.txt", "hello\\n")
        async for piece in sandbox.files.read_stream("a.txt"):
            print(len(piece))

    A relative path starts at the sandbox's working directory.
    """

    def __init__(self, blocking: Files) -> None:
        self._blocking = blocking

    async def read(self, path: GuestPath) -> bytes:
        """Return the whole content of a file, as it is at one moment.

        Raises `FileError` (EFBIG) for a sparse file that is larger than the sandbox's file
        system: read it with `read_stream`.
        """
        return await call(self._blocking.read, path)

    async def read_text(
        self, path: GuestPath, *, encoding: str = "utf-8", errors: str = "strict"
    ) -> str:
        """Return the whole content of a file as text, decoded as with `bytes.decode`."""
        return await call(self._blocking.read_text, path, encoding=encoding, errors=errors)

    def read_stream(self, path: GuestPath, *, chunk_size: int = CHUNK) -> AsyncIterator[bytes]:
        """Yield the content of a large file in pieces of `chunk_size` bytes.

        If the file changes meanwhile, old and new content may be mixed.
        """
        return Stream(lambda: self._blocking.read_stream(path, chunk_size=chunk_size))

    async def write(
        self, path: GuestPath, data: bytes | str | BinaryIO, *, mode: int | None = None
    ) -> None:
        """Create or replace a file, and create missing directories.

        Text is encoded as UTF-8; a binary file object is read to its end. `mode` are the permission
        bits, such as 0o755; without it a new file has 0o644, and an existing one keeps its own. An
        existing file keeps its owner. It is replaced atomically: programs that have it open keep
        the old content, and after a failure the old file remains.

        Raises `NoSpaceError`, and changes nothing, if the file does not fit into `fs_limit_bytes`.
        """
        await call(self._blocking.write, path, data, mode=mode)

    async def write_many(
        self, files: Mapping[str, bytes | str], *, mode: int | None = None
    ) -> None:
        """Create or replace several files, and create missing directories, in one request.

        Either all files are written or none: if one cannot be written, those written before get
        their old content back, and the exception names the file. Programs that run meanwhile may
        see some of the new files before the others. `mode` is that of `write`, for all files.
        """
        await call(self._blocking.write_many, files, mode=mode)

    async def append(self, path: GuestPath, data: bytes | str) -> None:
        """Append to a file, which is created if it does not exist. Either all of `data` is
        appended or nothing, unless a program writes to the same file meanwhile.
        """
        await call(self._blocking.append, path, data)

    async def list(
        self, path: GuestPath = ".", *, recursive: bool = False, glob: str | None = None
    ) -> builtins.list[FileInfo]:
        """List the entries of a directory, sorted by name, without `.` and `..`.

        With `recursive`, the list contains everything below the directory; links to directories
        are not followed. `glob` selects entries: a pattern without a slash is compared with names,
        one with a slash with paths below `path`. `*` and `?` match anything except a slash, `**`
        matches any number of directories.
        """
        return await call(self._blocking.list, path, recursive=recursive, glob=glob)

    async def mkdir(self, path: GuestPath, *, parents: bool = True, exist_ok: bool = False) -> None:
        """Create a directory, and with `parents` also the missing directories above it.

        Raises `AlreadyExistsError` if the path exists; with `exist_ok`, an existing directory is
        not an error.
        """
        await call(self._blocking.mkdir, path, parents=parents, exist_ok=exist_ok)

    async def rm(
        self, path: GuestPath, *, recursive: bool = False, missing_ok: bool = False
    ) -> None:
        """Remove a file or an empty directory; with `recursive`, a directory with everything
        below it. With `missing_ok`, a path that does not exist is not an error.
        """
        await call(self._blocking.rm, path, recursive=recursive, missing_ok=missing_ok)

    async def rename(self, source: GuestPath, target: GuestPath) -> None:
        """Rename or move a file or directory. A file or an empty directory at `target` is
        replaced.
        """
        await call(self._blocking.rename, source, target)

    async def copy(self, source: GuestPath, target: GuestPath) -> None:
        """Copy a file, or a directory with everything below it, to the path `target`.

        Modes are kept, links are copied as links, and missing directories are created. A file at
        `target` is replaced. If `source` and `target` are directories, the entries of `source` are
        copied into `target`.
        """
        await call(self._blocking.copy, source, target)

    async def symlink(self, target: str, path: GuestPath) -> None:
        """Create the symbolic link `path` to `target`, which need not exist."""
        await call(self._blocking.symlink, target, path)

    async def readlink(self, path: GuestPath) -> str:
        """Return the target of a symbolic link. Raises `InvalidPathError` for any other file."""
        return await call(self._blocking.readlink, path)

    async def stat(self, path: GuestPath, *, follow: bool = True) -> FileInfo:
        """Describe the file at a path. Symbolic links are followed unless `follow` is false."""
        return await call(self._blocking.stat, path, follow=follow)

    async def exists(self, path: GuestPath) -> bool:
        """Return whether `stat` would succeed."""
        return await call(self._blocking.exists, path)

    async def chmod(self, path: GuestPath, mode: int) -> None:
        """Set the permission bits; a symbolic link is followed."""
        await call(self._blocking.chmod, path, mode)

    async def upload(
        self,
        host_path: str | os.PathLike[str],
        path: GuestPath,
        *,
        exclude: Iterable[str] = (),
        gitignore: bool = False,
    ) -> None:
        """Copy a file, or a directory with everything below it, from this machine to `path`.

        `exclude` are patterns of files that are left out, in the syntax of `.gitignore` files. With
        `gitignore`, the `.gitignore` files of the directory and of its repository apply too. Modes
        and times are kept, and links are copied as links.

        Raises `OSError` for a file that cannot be read, and `NoSpaceError` if the files do not fit,
        before anything is copied. A directory that is new in the sandbox appears complete or not at
        all; in an existing one, files are replaced one by one.
        """
        await call(self._blocking.upload, host_path, path, exclude=exclude, gitignore=gitignore)

    async def download(
        self, path: GuestPath, host_path: str | os.PathLike[str]
    ) -> builtins.list[str]:
        """Copy a file, or a directory with everything below it, to `host_path` on this machine.

        Nothing is written outside `host_path`, whatever the sandbox contains. Returns the names
        that were left out: links that may lead outside, FIFOs, sockets and devices. Hard links and
        holes are kept. Raises `OSError` for a file that cannot be written.
        """
        return await call(self._blocking.download, path, host_path)

    def export_tar(self, path: GuestPath = ".") -> AsyncIterator[bytes]:
        """Yield a directory with everything below it, or one file, as pieces of a tar archive.

        Names in the archive are relative to `path`. The archive is not compressed. The content of
        a file with several names is stored once; large holes are not stored. File systems mounted
        below `path`, such as `/proc`, are left out.
        """
        return Stream(lambda: self._blocking.export_tar(path))

    async def import_tar(
        self, archive: bytes | BinaryIO | Iterable[bytes], path: GuestPath = "."
    ) -> None:
        """Unpack a tar archive, plain or gzip-compressed, into a directory, which is created.

        Nothing is written outside `path`. Existing files are replaced. Raises `ArchiveError` if
        the archive is invalid; members that were already unpacked stay.
        """
        await call(self._blocking.import_tar, archive, path)

    async def watch(
        self, path: GuestPath = ".", *, recursive: bool = True, interval_ms: float = 100
    ) -> AsyncFileWatch:
        """Watch a file, or everything below a directory, for changes from now on.

        `poll` does not wait. Iterating waits, and checks for changes every `interval_ms`.
        """
        return AsyncFileWatch(
            await obtain(
                FileWatch.close,
                self._blocking.watch,
                path,
                recursive=recursive,
                interval_ms=interval_ms,
            )
        )

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncPackages:
    """The Python packages of one sandbox: `sandbox.packages`.

    Example:
        await sandbox.packages.install("numpy", "humanize>=4")
        [package.name for package in await sandbox.packages.list()]

    If a task is cancelled in `install`, the installation continues.
    """

    def __init__(self, blocking: Packages) -> None:
        self._blocking = blocking

    async def install(
        self,
        *requirements: str,
        timeout_ms: float | None = INSTALL_TIMEOUT_MS,
        on_progress: AsyncTextSink | None = None,
    ) -> builtins.list[PackageInfo]:
        """Install packages and what they need, all or none; return those that are new.

        A requirement is a name with an optional version, as for pip. A package that is installed
        already is not changed if its version matches. `timeout_ms` bounds the search and the
        download, and `on_progress` receives lines about them, except for a sandbox on a server.
        Raises `PackageError`.
        """
        return await call(
            self._blocking.install,
            *requirements,
            timeout_ms=timeout_ms,
            on_progress=in_loop(on_progress),
        )

    async def uninstall(self, *names: str) -> None:
        """Uninstall packages, all or none; packages that they need stay.

        Raises `PackageNotFoundError` if one of them is not installed.
        """
        await call(self._blocking.uninstall, *names)

    async def list(self) -> builtins.list[PackageInfo]:
        """Return the installed packages, sorted by name."""
        return await call(self._blocking.list)

    async def available(self) -> builtins.list[PackageInfo]:
        """Return the packages of the image, which are installed at once, sorted by name."""
        return await call(self._blocking.available)

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncSandboxNetwork:
    """The network of one sandbox: `sandbox.network`.

    Example:
        await sandbox.network.allow("api.example.com:443")
        [event.host for event in await sandbox.network.log()]
    """

    def __init__(self, blocking: SandboxNetwork) -> None:
        self._blocking = blocking

    async def allow(self, *rules: str) -> None:
        """Allow more, from now on. The form of rules is that of `Network.allow`. The same rule is
        taken out of `deny`; other rules there still win.
        """
        await call(self._blocking.allow, *rules)

    async def deny(self, *rules: str) -> None:
        """Deny something, from now on; connections that are open are reset. The same rule is taken
        out of `allow`.
        """
        await call(self._blocking.deny, *rules)

    async def rules(self) -> NetworkRules:
        """Return the rules as they are now."""
        return await call(self._blocking.rules)

    async def log(self) -> builtins.list[NetworkEvent]:
        """Return the newest look-ups, connections and requests, allowed or not, oldest first."""
        return await call(self._blocking.log)

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncPortStream:
    """A connection to a server in the sandbox: `sandbox.ports.connect(port)`.

    Example:
        async with await sandbox.ports.connect(7000) as stream:
            await stream.write(b"hello\\n")
            await stream.read()

    If a task is cancelled in `read` or `write`, bytes may be lost: close the stream then.
    """

    def __init__(self, blocking: PortStream) -> None:
        self._blocking = blocking
        self._turns = Turns()

    @property
    def port(self) -> int:
        """The port of the sandbox."""
        return self._blocking.port

    async def read(self, count: int = READ_BYTES, *, timeout_ms: float | None = None) -> bytes:
        """Wait for data, and return up to `count` bytes of it; empty at the end of the stream.

        Raises `PortTimeoutError` if there is no data within `timeout_ms`.
        """
        return await self._turns.call(self._blocking.read, count, timeout_ms=timeout_ms)

    async def write(self, data: bytes | str, *, timeout_ms: float | None = None) -> None:
        """Send all of `data`; wait while the server does not read. Text is sent as UTF-8.

        Raises `PortTimeoutError` if `timeout_ms` passes first; then a part of `data` may have
        been sent.
        """
        await call(self._blocking.write, data, timeout_ms=timeout_ms)

    async def finish(self) -> None:
        """Send no more data: the server reads the end of the stream, and may still answer."""
        await call(self._blocking.finish)

    async def close(self) -> None:
        """Close the stream. Calling it again does nothing."""
        await call(self._blocking.close)

    async def __aenter__(self) -> AsyncPortStream:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncPorts:
    """Servers in one sandbox: `sandbox.ports`.

    Example:
        await sandbox.commands.start("python3 -m http.server 8000")
        await sandbox.ports.wait(8000)
        await sandbox.ports.url(8000)
    """

    def __init__(self, blocking: Ports) -> None:
        self._blocking = blocking

    async def url(self, port: int, *, host_port: int | None = None) -> str:
        """Make a port of the sandbox reachable for programs on this machine; return its URL.

        This opens a port on 127.0.0.1: a free one, or `host_port`. Any protocol over TCP can use it
        until `close(port)` or the end of the sandbox. The program may start to listen later (see
        `wait`). For a sandbox on a server, the URL is one of the server's, and requests need the
        server's token; with `host_port` (0 for a free one), it is a port of this machine that leads
        through the server. Raises `PortError`.
        """
        return await call(self._blocking.url, port, host_port=host_port)

    async def connect(
        self, port: int, *, timeout_ms: float | None = CONNECT_TIMEOUT_MS
    ) -> AsyncPortStream:
        """Connect to a server in the sandbox.

        No port of this machine is opened. Raises `PortError`: ECONNREFUSED if no program listens on
        the port.
        """
        return AsyncPortStream(
            await obtain(PortStream.close, self._blocking.connect, port, timeout_ms=timeout_ms)
        )

    async def wait(self, port: int, *, timeout_ms: float | None = WAIT_TIMEOUT_MS) -> None:
        """Wait until a program listens on a port of the sandbox.

        Raises `PortTimeoutError` if none does within `timeout_ms`.
        """
        await call(self._blocking.wait, port, timeout_ms=timeout_ms)

    async def list(self) -> builtins.list[PortInfo]:
        """Return the ports on which programs of the sandbox listen, sorted."""
        return await call(self._blocking.list)

    async def close(self, port: int) -> bool:
        """Close the port of this machine that `url` has opened; False if there is none.

        Open connections stay open. The program in the sandbox is not told.
        """
        return await call(self._blocking.close, port)

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncShell:
    """A bash session: working directory, variables, functions and background jobs persist.

    Example:
        async with await sandbox.shell() as shell:
            await shell.run("cd /tmp; name=world")
            (await shell.run("echo $name; pwd")).stdout

    If a task is cancelled in `run`, its command is ended; the shell remains.
    """

    kind = Shell.kind

    def __init__(self, blocking: Shell) -> None:
        self._blocking = blocking
        remember_twin(blocking, self)

    @property
    def identity(self) -> str:
        """By which a session is known again in copies of its sandbox."""
        return self._blocking.identity

    @property
    def pid(self) -> int:
        """The process ID of the session's interpreter in the sandbox."""
        return self._blocking.pid

    @property
    def closed(self) -> bool:
        """Whether the session is known to have ended: through `close`, through its own code (`exit`
        in a shell, `os._exit` in Python), or with the sandbox.
        """
        return self._blocking.closed

    @property
    def exit_code(self) -> int | None:
        """The exit code of the session's interpreter, once it is known to have ended by itself."""
        return self._blocking.exit_code

    async def close(self) -> None:
        """End the session and everything that it started. Calling it again does nothing."""
        await call(self._blocking.close)

    async def __aenter__(self) -> AsyncShell:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)

    async def run(
        self,
        command: str,
        *,
        stdin: bytes | str | None = None,
        timeout_ms: float | SandboxTimeout | None = SANDBOX_TIMEOUT,
        on_stdout: AsyncTextSink | None = None,
        on_stderr: AsyncTextSink | None = None,
    ) -> CommandResult:
        """Run a script in this shell, wait for its end and return its result.

        Arguments and result are those of `sandbox.commands.run`. After `timeout_ms` the script
        is interrupted, as with Ctrl-C, and the result has exit code 124; the shell, its state and
        its background jobs remain. If the script ignores the interrupt (`trap '' INT`), the shell
        is ended about six seconds later: then standard error says so, and `closed` is true.

        Output of background jobs belongs to the result of the command during which it is read.
        Redirections of standard files with `exec` last until the end of `command`. A script that
        ends the shell (`exit 3`) returns a result too; the next `run` raises `CommandError`
        (ESRCH).

        One command runs at a time; other threads wait.
        """
        return await call(
            self._blocking.run,
            command,
            stdin=stdin,
            timeout_ms=timeout_ms,
            on_stdout=in_loop(on_stdout),
            on_stderr=in_loop(on_stderr),
        )


class AsyncPythonSession:
    """A Python session: variables, functions and imports persist.

    Example:
        async with await sandbox.python() as session:
            await session.run("import math; radius = 2")
            (await session.run("math.pi * radius ** 2")).value

    If a task is cancelled in `run`, its program is interrupted; the interpreter remains.
    """

    kind = PythonSession.kind

    def __init__(self, blocking: PythonSession) -> None:
        self._blocking = blocking
        remember_twin(blocking, self)

    @property
    def identity(self) -> str:
        """By which a session is known again in copies of its sandbox."""
        return self._blocking.identity

    @property
    def pid(self) -> int:
        """The process ID of the session's interpreter in the sandbox."""
        return self._blocking.pid

    @property
    def closed(self) -> bool:
        """Whether the session is known to have ended: through `close`, through its own code (`exit`
        in a shell, `os._exit` in Python), or with the sandbox.
        """
        return self._blocking.closed

    @property
    def exit_code(self) -> int | None:
        """The exit code of the session's interpreter, once it is known to have ended by itself."""
        return self._blocking.exit_code

    async def close(self) -> None:
        """End the session and everything that it started. Calling it again does nothing."""
        await call(self._blocking.close)

    async def __aenter__(self) -> AsyncPythonSession:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)

    async def run(
        self,
        code: str,
        *,
        timeout_ms: float | SandboxTimeout | None = SANDBOX_TIMEOUT,
        on_stdout: AsyncTextSink | None = None,
        on_stderr: AsyncTextSink | None = None,
        on_result: AsyncResultSink | None = None,
        on_input: AsyncInputSource | None = None,
    ) -> PythonResult:
        """Run statements in this interpreter. Return their output, what they displayed, and the
        value of the last statement if it is an expression.

        `on_stdout` and `on_stderr` get text as it is printed, and `on_result` what is displayed, on
        the calling thread. `on_input` answers the program's `input()`: it gets the prompt, and
        returns a line; the time that it takes does not count towards the timeout. Without it,
        `input()` raises EOFError.

        If the program raises an exception, including `SystemExit`, the result contains it with its
        traceback. After `timeout_ms` (by default the sandbox's; None: never) the program gets a
        KeyboardInterrupt, as with Ctrl-C; the interpreter and its state remain. If the program
        ignores the interrupt, the interpreter is ended about six seconds later. Then, or if the
        program ends the interpreter itself, `closed` is true and the next `run` raises
        `CommandError` (ESRCH).

        One call runs at a time; other threads wait.
        """
        return await call(
            self._blocking.run,
            code,
            timeout_ms=timeout_ms,
            on_stdout=in_loop(on_stdout),
            on_stderr=in_loop(on_stderr),
            on_result=in_loop(on_result),
            on_input=in_loop(on_input),
        )

    async def finish(
        self, *, timeout_ms: float | SandboxTimeout | None = SANDBOX_TIMEOUT
    ) -> CommandResult:
        """End the interpreter as a program ends: wait for its threads, call its `atexit` functions,
        write what its files have buffered. Return its last output and its exit code.

        After `timeout_ms` (by default the sandbox's; None: never) it is killed. `close` kills it
        at once.
        """
        return await call(self._blocking.finish, timeout_ms=timeout_ms)


class AsyncTerminal:
    """A program on a pseudo-terminal: type, read the screen's bytes, change the window's size.

    Example:
        async with await sandbox.pty() as terminal:
            await terminal.write("stty size; exit\\n")
            async for data in terminal:
                print(data)

    If a task is cancelled in `read`, output may be lost: use `timeout_ms`, or iterate.
    """

    def __init__(self, blocking: Terminal) -> None:
        self._blocking = blocking
        self._stream = Stream(lambda: iter(blocking))
        self._turns = Turns()

    @property
    def pid(self) -> int:
        """The process ID of the program in the sandbox."""
        return self._blocking.pid

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the window."""
        return self._blocking.size

    @property
    def exit_code(self) -> int | None:
        """The program's exit code, once `wait`, `poll` or the end of the output has shown it."""
        return self._blocking.exit_code

    @property
    def closed(self) -> bool:
        """Whether the terminal was closed, by `close` or with its sandbox."""
        return self._blocking.closed

    async def write(self, data: bytes | str, *, timeout_ms: float | None = None) -> None:
        """Type `data`; text is encoded as UTF-8. Enter is `\\r` or `\\n`, Ctrl-C is `\\x03`, Ctrl-D
        is `\\x04`. Waits while the program does not read what was typed before.

        Raises `InputTimeoutError` if not all of `data` is typed after `timeout_ms`: its `written`
        is the number of bytes typed. Raises `CommandError` with EPIPE if the program has ended, and
        with EBADF after `close`.
        """
        await call(self._blocking.write, data, timeout_ms=timeout_ms)

    async def read(self, *, timeout_ms: float | None = None) -> bytes:
        """Wait for output, and return it; empty when the program has ended and all its output was
        read.

        Raises `TimeoutError` if there is none for `timeout_ms`. One thread reads at a time. With
        `on_data`, output cannot be read.
        """
        return await self._turns.call(self._blocking.read, timeout_ms=timeout_ms)

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the output as it arrives, until the program has ended."""
        return self._stream

    async def resize(self, cols: int, rows: int) -> None:
        """Change the size of the window; the programs get SIGWINCH."""
        await call(self._blocking.resize, cols, rows)

    async def wait(self, *, timeout_ms: float | None = None) -> int:
        """Wait for the end of the program, and return its exit code.

        A program whose output nobody reads may wait forever: read it first, or use `on_data`; then
        `wait` returns after the last call of `on_data`, and raises what it raised. Raises
        `TimeoutError` if the program is still running after `timeout_ms`.
        """
        return await call(self._blocking.wait, timeout_ms=timeout_ms)

    async def poll(self) -> int | None:
        """Return the exit code, or None while the program is running."""
        return await call(self._blocking.poll)

    async def kill(self) -> None:
        """End every process that was started on the terminal, at once. Output that was not read
        can still be read. Calling it again does nothing.
        """
        await call(self._blocking.kill)

    async def close(self) -> None:
        """Hang up: the programs get SIGHUP, as when a terminal's window is closed. A program that
        ignores SIGHUP (`nohup`) keeps running. Calling it again does nothing.
        """
        await call(self._blocking.close)

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.end()

    async def end(self) -> None:
        """`kill` and `close`. The end of a `with` block does this."""
        await call(self._blocking.end)

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncSandbox:
    """A private Linux-like computer.

    Example:
        async with AsyncSandbox() as sandbox:
            await sandbox.files.write("a.txt", "hello\\n")
            result = await sandbox.commands.run("wc -c < a.txt")

        sandbox = await AsyncSandbox.create()  # without a block, `kill` ends it
        await sandbox.kill()

    The options are those of `Sandbox`. Every method that may wait is a coroutine, and callbacks may
    be coroutine functions.
    """

    commands: AsyncCommands
    "Run programs."
    files: AsyncFiles
    "Read and write files without running a program."
    env: Environment
    "Environment variables that every later command gets."
    packages: AsyncPackages
    "Install Python packages."
    network: AsyncSandboxNetwork
    "Change what the sandbox may reach, and see what it did."
    ports: AsyncPorts
    "Reach servers in the sandbox."
    snapshots: Snapshots
    "The snapshots that were taken of the sandbox."

    @property
    def id(self) -> str:
        """The id of the sandbox. `Sandbox.connect(url, id=...)` finds a sandbox on a server by
        it.
        """
        return self._blocking.id

    @property
    def name(self) -> str | None:
        """The name in its store, if the sandbox was opened with `open`."""
        return self._blocking.name

    @staticmethod
    async def list(
        url: str,
        *,
        token: str | None = None,
        metadata: Mapping[str, str] | None = None,
        state: str | None = None,
    ) -> builtins.list[SandboxInfo]:
        """The sandboxes of `token` on the server at `url`, oldest first: all, or those that have
        `metadata`, or those in a `state` (`"running"`, `"paused"`).
        """
        return await call(Sandbox.list, url, token=token, metadata=metadata, state=state)

    @staticmethod
    async def kill_by_id(url: str, id: str, *, token: str | None = None) -> bool:
        """Kill a sandbox of the server at `url`, paused or not. Returns False if it has none with
        this id.
        """
        return await call(Sandbox.kill_by_id, url, id, token=token)

    async def info(self) -> SandboxInfo:
        """What the sandbox is: its id, state and metadata, and when it ends."""
        return await call(self._blocking.info)

    async def set_timeout(self, seconds: float) -> None:
        """Let a sandbox on a server end in `seconds` from now, even in use; later calls replace
        earlier ones. It is then killed, and removed from the server's store. The server's own
        limits of age and idleness still apply.
        """
        await call(self._blocking.set_timeout, seconds)

    async def flush(self) -> None:
        """Write a sandbox that was opened with `open` to its store now.

        Raises `StateError` if a session runs a request, `StoreError` if the store cannot be
        written.
        """
        await call(self._blocking.flush)

    async def pause(self, *, running: Running = "refuse") -> None:
        """Write a sandbox to its store, and free its memory: one that was opened with `open`, or
        one on a server that has a store. Its next use resumes it, with its sessions.

        What runs is refused (`StateError`) or, with `running="drop"`, ended.
        """
        await call(self._blocking.pause, running=running)

    async def resume(self) -> None:
        """Resume a paused sandbox now; otherwise, its next use does."""
        await call(self._blocking.resume)

    @property
    def paused(self) -> bool:
        """Whether the sandbox is paused: its next use resumes it. For a sandbox on a server, `info`
        tells.
        """
        return self._blocking.paused

    async def disconnect(self) -> None:
        """Leave a sandbox on a server as it is: it goes on there, and this object ends.
        `Sandbox.connect(url, id=...)` finds it again.
        """
        await call(self._blocking.disconnect)

    async def kill(self, *, discard: bool = False) -> None:
        """End every process and delete every file. Calling it again does nothing.

        A sandbox that was opened with `open` is written to its store first, unless `discard`. If
        that fails, `kill` raises `StoreError`, and the sandbox stays. A sandbox on a server is also
        removed from the server's store.
        """
        await call(self._blocking.kill, discard=discard)

    async def close(self) -> None:
        """What happens at the end of a `with` block: `kill`, or `disconnect` for a sandbox on a
        server that was found by its id.
        """
        await call(self._blocking.close)

    async def mount(
        self,
        path: str,
        source: str | os.PathLike[str] | None = None,
        *,
        mode: MountMode | None = None,
        read_only: bool = True,
        limit_bytes: int | None = None,
        max_inodes: int | None = None,
    ) -> MountInfo:
        """Make a directory of this machine appear at `path`. This takes the same time for any
        size: files are read when a program uses them.

        `mode` is `"read-only"`, `"read-write"`, `"overlay"` (changes stay in the sandbox, see
        `diff` and `apply`) or `"memory"`; without it, `read_only` decides. `limit_bytes` and
        `max_inodes` bound what the sandbox may write (`read-write`) or store (`memory`); the
        default is that of the sandbox's own files. Raises `MountError`, `FileError`;
        `UnsupportedError` for a sandbox in a process of its own or on a server.
        """
        return await call(
            self._blocking.mount,
            path,
            source,
            mode=mode,
            read_only=read_only,
            limit_bytes=limit_bytes,
            max_inodes=max_inodes,
        )

    async def unmount(self, path: str, *, force: bool = False) -> None:
        """Remove a mount. The changes of an overlay and the files of a mount in memory are lost.

        Raises `FileError` (EBUSY) if a process uses it; with `force`, its files fail from then on.
        """
        await call(self._blocking.unmount, path, force=force)

    @property
    def mounts(self) -> builtins.list[MountInfo]:
        """What was mounted, oldest first."""
        return self._blocking.mounts

    async def diff(self, path: str | None = None, *, patch: bool = True) -> MountDiff:
        """Compare an overlay with the directory of this machine.

        Without `path`, the only overlay is meant. With `patch=False`, no patch is made, which is
        faster.
        """
        return await call(self._blocking.diff, path, patch=patch)

    async def apply(self, path: str | None = None, *, force: bool = False) -> MountDiff:
        """Write the changes of an overlay to the directory of this machine, and return them.

        Raises `MountConflictError`, and writes nothing, if files were changed on this machine too;
        `force` replaces them. A symbolic link that leads outside of the directory is refused.
        """
        return await call(self._blocking.apply, path, force=force)

    def __init__(
        self,
        *,
        timeout_ms: float | None = DEFAULTS.timeout_ms,
        fs_limit_bytes: int = DEFAULTS.fs_limit_bytes,
        max_inodes: int = DEFAULTS.max_inodes,
        memory_limit_bytes: int = DEFAULTS.memory_limit_bytes,
        max_processes: int = DEFAULTS.max_processes,
        max_open_files: int = DEFAULTS.max_open_files,
        max_output_bytes: int = DEFAULTS.max_output_bytes,
        env: Mapping[str, str] | None = None,
        cwd: str = HOME,
        wasm_dir: str | os.PathLike[str] | None = None,
        packages: Sequence[str] = (),
        network: Network | Sequence[str] | None = None,
        mounts: Mapping[str, Mount | str | os.PathLike[str]] | None = None,
        isolation: Isolation = "none",
        mode: Mode = "simple",
    ) -> None:
        self._make: Callable[[], Sandbox] | None = lambda: Sandbox(
            timeout_ms=timeout_ms,
            fs_limit_bytes=fs_limit_bytes,
            max_inodes=max_inodes,
            memory_limit_bytes=memory_limit_bytes,
            max_processes=max_processes,
            max_open_files=max_open_files,
            max_output_bytes=max_output_bytes,
            env=env,
            cwd=cwd,
            wasm_dir=wasm_dir,
            packages=packages,
            network=network,
            mounts=mounts,
            isolation=isolation,
            mode=mode,
        )

    @classmethod
    async def create(
        cls,
        *,
        timeout_ms: float | None = DEFAULTS.timeout_ms,
        fs_limit_bytes: int = DEFAULTS.fs_limit_bytes,
        max_inodes: int = DEFAULTS.max_inodes,
        memory_limit_bytes: int = DEFAULTS.memory_limit_bytes,
        max_processes: int = DEFAULTS.max_processes,
        max_open_files: int = DEFAULTS.max_open_files,
        max_output_bytes: int = DEFAULTS.max_output_bytes,
        env: Mapping[str, str] | None = None,
        cwd: str = HOME,
        wasm_dir: str | os.PathLike[str] | None = None,
        packages: Sequence[str] = (),
        network: Network | Sequence[str] | None = None,
        mounts: Mapping[str, Mount | str | os.PathLike[str]] | None = None,
        isolation: Isolation = "none",
        mode: Mode = "simple",
    ) -> AsyncSandbox:
        """Create a sandbox without a `with` block. The caller has to `kill` it."""
        return await cls(
            timeout_ms=timeout_ms,
            fs_limit_bytes=fs_limit_bytes,
            max_inodes=max_inodes,
            memory_limit_bytes=memory_limit_bytes,
            max_processes=max_processes,
            max_open_files=max_open_files,
            max_output_bytes=max_output_bytes,
            env=env,
            cwd=cwd,
            wasm_dir=wasm_dir,
            packages=packages,
            network=network,
            mounts=mounts,
            isolation=isolation,
            mode=mode,
        ).__aenter__()

    @classmethod
    def _around(cls, blocking: Sandbox) -> AsyncSandbox:
        sandbox = cls.__new__(cls)
        sandbox._make = None
        sandbox._adopt(blocking)
        return sandbox

    def _adopt(self, blocking: Sandbox) -> None:
        self._blocking = blocking
        self.env = blocking.env
        self.snapshots = blocking.snapshots
        self.commands = AsyncCommands(blocking.commands)
        self.files = AsyncFiles(blocking.files)
        self.packages = AsyncPackages(blocking.packages)
        self.network = AsyncSandboxNetwork(blocking.network)
        self.ports = AsyncPorts(blocking.ports)

    if not TYPE_CHECKING:  # a type checker would accept any attribute name

        def __getattr__(self, name: str) -> object:
            if name in (
                "_blocking",
                "env",
                "snapshots",
                "commands",
                "files",
                "packages",
                "network",
                "ports",
            ):
                raise RuntimeError(NOT_ENTERED)
            raise AttributeError(name)

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        id: str | None = None,
        token: str | None = None,
        options: SandboxOptions | None = None,
        metadata: Mapping[str, str] | None = None,
        lifetime_seconds: float | None = None,
    ) -> AsyncSandbox:
        """Create a sandbox on the server at `url` (see `wasmsand serve`) or on a fleet (`fleet:`,
        see `wasmsand fleet`), with the same API. With `id`, use one that exists, with its sessions.

        `token` is a token that the server accepts; `options` are those of the constructor. With
        `id`, only `network` of the options is sent, if the sandbox is paused: a server does not
        store secrets. `metadata` are names and values by which `Sandbox.list` finds sandboxes.
        After `lifetime_seconds` the server kills the sandbox; see `set_timeout`. A sandbox that was
        found by its `id` is not killed at the end of a `with` block, nor when it is collected.
        Raises `SandboxClosedError` if the server has no sandbox with this `id`.
        """
        return cls._around(
            await obtain(
                Sandbox.kill,
                Sandbox.connect,
                url,
                id=id,
                token=token,
                options=options,
                metadata=metadata,
                lifetime_seconds=lifetime_seconds,
            )
        )

    @classmethod
    async def from_backend(
        cls, backend: Backend, options: SandboxOptions | None = None
    ) -> AsyncSandbox:
        """Create a sandbox on your own `Backend` (see `wasmsand.sdk.backend`)."""
        return cls._around(await obtain(Sandbox.kill, Sandbox.from_backend, backend, options))

    @property
    def options(self) -> SandboxOptions:
        """The options that the sandbox was created with."""
        return self._blocking.options

    async def shell(
        self,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        user: SandboxUser = "user",
    ) -> AsyncShell:
        """Open a bash session that keeps its state from command to command.

        The shell starts with the sandbox's variables and working directory; `env` adds
        variables, and `cwd` replaces the directory. Later changes of `sandbox.env` do not affect
        the shell. `user` is that of `commands.run`.
        """
        return AsyncShell(
            await obtain(Shell.close, self._blocking.shell, env=env, cwd=cwd, user=user)
        )

    async def python(
        self,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: bytes | str = b"",
        user: SandboxUser = "user",
    ) -> AsyncPythonSession:
        """Open a Python session that keeps its state from call to call.

        The interpreter starts with the sandbox's variables and working directory; `env` adds
        variables, and `cwd` replaces the directory. `stdin` is its standard input. `user` is that
        of `commands.run`. Several sessions can be open at a time.
        """
        return AsyncPythonSession(
            await obtain(
                PythonSession.close, self._blocking.python, env=env, cwd=cwd, stdin=stdin, user=user
            )
        )

    async def pty(
        self,
        command: str | Sequence[str] | None = None,
        *,
        cols: int = COLUMNS,
        rows: int = ROWS,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        user: SandboxUser = "user",
        on_data: AsyncDataSink | None = None,
    ) -> AsyncTerminal:
        """Start a program on a pseudo-terminal: an interactive bash, or `command`, which is a
        script for bash, or a program and its arguments.

        Read the output, or get it by `on_data`, which is called on another thread. `TERM` is
        `xterm-256color` unless `env` says otherwise. There is no time limit. A terminal that nobody
        refers to any more hangs up. Raises `CommandError`.
        """
        return AsyncTerminal(
            await obtain(
                Terminal.end,
                self._blocking.pty,
                command,
                cols=cols,
                rows=rows,
                env=env,
                cwd=cwd,
                user=user,
                on_data=in_loop(on_data),
            )
        )

    @property
    def sessions(self) -> builtins.list[AsyncShell | AsyncPythonSession]:
        """The sessions that have not ended, in the order in which they were opened. A copy of the
        sandbox has its own at the same positions.
        """
        return [_session_twin(session) for session in self._blocking.sessions]

    async def snapshot(self, name: str | None = None, *, running: Running = "refuse") -> Snapshot:
        """Remember the sandbox as it is now: files, variables, and live sessions with all they have
        in memory. Takes the same time whatever the number and size of the files.

        Commands that are running cannot be remembered: they raise `StateError`, or are left out
        with `running="drop"`. The same holds for sessions that run a request, have threads, child
        processes or connections.
        """
        return await call(self._blocking.snapshot, name, running=running)

    async def restore(self, snapshot: Snapshot | str) -> None:
        """Make the sandbox what it was when `snapshot` was taken, in this or another sandbox.
        Everything that runs is ended. `snapshot` may be the name of one of `snapshots`.

        A session object that the snapshot contains goes on from there; others are closed.
        """
        await call(self._blocking.restore, snapshot)

    @overload
    async def fork(self, count: None = None, *, running: Running = "refuse") -> AsyncSandbox: ...

    @overload
    async def fork(
        self, count: int, *, running: Running = "refuse"
    ) -> builtins.list[AsyncSandbox]: ...

    async def fork(
        self, count: int | None = None, *, running: Running = "refuse"
    ) -> AsyncSandbox | builtins.list[AsyncSandbox]:
        """Make a copy of the whole sandbox, or a list of `count` copies, with live sessions. They
        share everything until one of them writes, and none sees what another does.

        For what cannot be copied, see `snapshot`. Whoever forks has to end the copies.
        """
        wanted = 1 if count is None else count
        made = await obtain(_kill_all, self._blocking.fork, wanted, running=running)
        twins = [AsyncSandbox._around(sandbox) for sandbox in made]
        return twins[0] if count is None else twins

    @classmethod
    async def from_snapshot(cls, snapshot: Snapshot) -> AsyncSandbox:
        """Create a sandbox from a snapshot, any number of times."""
        return cls._around(await obtain(Sandbox.kill, Sandbox.from_snapshot, snapshot))

    async def save(self, target: FileOrStream, *, running: Running = "refuse") -> None:
        """Write the sandbox as it is now to a file, or to a binary stream: files, variables, and
        live sessions with all they have in memory. `Sandbox.load` makes a sandbox of it, on any
        host with the same version of wasmsand.

        A file is replaced completely or not at all. Only what differs from a new sandbox is
        written, compressed. The network's rules and secrets, and `wasm_dir`, are not; environment
        variables are. For what cannot be saved, see `snapshot`.
        """
        await call(self._blocking.save, target, running=running)

    @classmethod
    async def load(
        cls,
        source: FileOrStream,
        *,
        options: SandboxOptions | None = None,
        only_files: bool = False,
        isolation: Isolation = "none",
        url: str | None = None,
        token: str | None = None,
    ) -> AsyncSandbox:
        """Create a sandbox from a file of `save`, or from a binary stream: in this process, in a
        separate one (`isolation="process"`), or on the server at `url`.

        The file may come from anybody: it grants nothing. Its limits are used as far as they are
        not above the default ones. With `options`, these are used instead, for example to allow
        more memory or a network; variables and working directory are always the saved ones. With
        `only_files`, sessions are left out, and the file may come from another version.

        Raises `StateFileError` if the file is not a saved sandbox or is damaged,
        `StateVersionError` if it is too new, `StateImageError` if it needs another image, and
        `StateLimitError` if it does not fit.
        """
        return cls._around(
            await obtain(
                Sandbox.kill,
                Sandbox.load,
                source,
                options=options,
                only_files=only_files,
                isolation=isolation,
                url=url,
                token=token,
            )
        )

    @classmethod
    async def open(
        cls,
        name: str,
        *,
        store: Store | str | os.PathLike[str] | None = None,
        options: SandboxOptions | None = None,
        only_files: bool = False,
    ) -> AsyncSandbox:
        """Open the sandbox with this name in a store, or create it there. It outlives this process:
        its changes are written to the store in the background, and when it ends.

        `store` is a directory or a `Store`, by default a directory below the user's data directory.
        After a crash of the host, the sandbox is what it was when it was last written, at most a
        few seconds before. Commands that ran then have ended; live sessions go on.

        `options` are those of the constructor; by default those that the sandbox was created with,
        without `network`, `mounts` and `wasm_dir`, which have to be given each time. For
        `only_files` see `load`.

        Raises `StoreBusyError` if the sandbox is open already, in this or another process.
        """
        return cls._around(
            await obtain(
                Sandbox.kill,
                Sandbox.open,
                name,
                store=store,
                options=options,
                only_files=only_files,
            )
        )

    async def allow_network(self, rules: Sequence[str]) -> None:
        """Allow more hosts: `sandbox.network.allow(*rules)`."""
        await call(self._blocking.allow_network, rules)

    async def usage(self) -> Usage:
        """Return what the sandbox uses now, each value beside its limit."""
        return await call(self._blocking.usage)

    async def __aenter__(self) -> AsyncSandbox:
        if self._make is not None:
            make, self._make = self._make, None
            self._adopt(await obtain(Sandbox.kill, make))
        await call(self._blocking.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        if self._make is not None:
            return "<AsyncSandbox not entered>"
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncSandboxPool:
    """Keeps `size` sandboxes ready.

    Example:
        async with AsyncSandboxPool(4) as pool:
            async with await pool.take() as sandbox:
                await sandbox.commands.run("uname -a")

    `make` returns a `Sandbox`, and `setup` gets one: both run in advance, on another thread.
    """

    def __init__(
        self,
        size: int = 4,
        *,
        make: Callable[[], Sandbox] = Sandbox,
        setup: Callable[[Sandbox], object] | None = None,
    ) -> None:
        self._blocking = SandboxPool(size, make=make, setup=setup)

    async def take(self) -> AsyncSandbox:
        """Take a sandbox that is ready, or create one now. The caller has to `kill` it. Raises
        what `make` or `setup` raises.
        """
        return AsyncSandbox._around(await obtain(Sandbox.kill, self._blocking.take))

    @property
    def ready(self) -> int:
        """The number of sandboxes that are ready to be taken."""
        return self._blocking.ready

    async def close(self) -> None:
        """End the sandboxes that were not taken. Calling it again does nothing."""
        await call(self._blocking.close)

    async def __aenter__(self) -> AsyncSandboxPool:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)
