"""`AsyncSandbox` and its parts: the SDK for asynchronous programs.

Made from the blocking classes by scripts/make_async.py: change those, and run it.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO

from wasmsand.sdk.async_calls import AsyncTextSink, Stream, Turns, call, in_loop, obtain
from wasmsand.sdk.backend import Backend
from wasmsand.sdk.command_handle import CommandHandle, OutputChunk
from wasmsand.sdk.commands import Commands
from wasmsand.sdk.environment import Environment
from wasmsand.sdk.files import CHUNK, Files, GuestPath
from wasmsand.sdk.options import HOME, Isolation, SandboxOptions
from wasmsand.sdk.pool import SandboxPool
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.results import CommandResult, FileInfo, ProcessInfo, PythonResult, Usage
from wasmsand.sdk.sandbox import DEFAULTS, Sandbox
from wasmsand.sdk.shell import Shell
from wasmsand.sdk.watching import FileEvent, FileWatch

NOT_ENTERED = (
    "the sandbox is not there yet: use `async with AsyncSandbox(...) as sandbox`, or "
    "`await AsyncSandbox.create(...)`"
)


class AsyncCommandHandle:
    """One command that was started: talk to it, wait for it, end it.

    Example:
        async with await sandbox.commands.start("cat -n") as cat:
            await cat.write_stdin("hello\\n")
            await cat.close_stdin()
            async for chunk in cat:
                print(chunk.text)

    A task that is cancelled in `wait`, or while it iterates, leaves the command running, and
    what it would have got to the next.
    """

    def __init__(self, blocking: CommandHandle) -> None:
        self._blocking = blocking
        self._stream = Stream(lambda: iter(blocking))
        self._turns = Turns()

    @property
    def pid(self) -> int:
        """The process id in the sandbox; `kill PID` there works."""
        return self._blocking.pid

    def __aiter__(self) -> AsyncIterator[OutputChunk]:
        """Output as it is printed, on both streams, in the order in which it was written.

        Ends when the command has ended. What was taken here is not in the result of `wait`.
        """
        return self._stream

    async def write_stdin(self, data: bytes | str, *, timeout_ms: float | None = None) -> None:
        """Write to the command's input; text is encoded as UTF-8. Waits while the command does
        not read.

        Raises `InputTimeoutError` when the command has not taken all of it after `timeout_ms`:
        `written` is how many bytes it has taken, and the rest may be written again. Raises
        `CommandError`: EPIPE if it has ended or closed its input, EBADF after `close_stdin`, or
        if `stdin` was given to `start`.
        """
        await call(self._blocking.write_stdin, data, timeout_ms=timeout_ms)

    async def close_stdin(self) -> None:
        """The end of the command's input. Calling it again does nothing."""
        await call(self._blocking.close_stdin)

    async def wait(
        self,
        *,
        timeout_ms: float | None = None,
        on_stdout: AsyncTextSink | None = None,
        on_stderr: AsyncTextSink | None = None,
    ) -> CommandResult:
        """Wait for the end, and return what was printed and not taken by iterating.

        Raises `TimeoutError` when the command still runs after `timeout_ms`; it goes on, and
        may be waited for again. The input stays open: a command that reads to its end needs
        `close_stdin` first.
        """
        return await self._turns.call(
            self._blocking.wait,
            timeout_ms=timeout_ms,
            on_stdout=in_loop(on_stdout),
            on_stderr=in_loop(on_stderr),
        )

    async def poll(self) -> int | None:
        """The exit code, or None while the command runs."""
        return await call(self._blocking.poll)

    async def send_signal(self, number: int) -> None:
        """Send a signal, as 2 (SIGINT) or 15 (SIGTERM), to the command's first process.

        Raises `CommandError` (ESRCH) if it has ended.
        """
        await call(self._blocking.send_signal, number)

    async def kill(self) -> None:
        """End every process of the command, also those that it left in the background.
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

    A task that is cancelled in `run` ends its command.
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
        timeout_ms: float | None = None,
        on_stdout: AsyncTextSink | None = None,
        on_stderr: AsyncTextSink | None = None,
    ) -> CommandResult:
        """Run `command` to its end and return what it printed.

        A str is a script for bash; a sequence is a program, found by PATH, and its
        arguments, with no shell between. `env` is added to the sandbox's variables for
        this command; `cwd` and `timeout_ms` replace the sandbox's own. `on_stdout` and
        `on_stderr` get text as it is printed, on the calling thread; what they raise ends
        the command, and leaves `run`.

        The result is there when the command has ended. A process that it left in the
        background goes on; what that prints later is dropped.

        After `timeout_ms` every process of the command is killed, and the result has
        exit code 124, `command timed out` on stderr and what was printed until then.
        The sandbox goes on working.
        """
        return await call(
            self._blocking.run,
            command,
            stdin=stdin,
            env=env,
            cwd=cwd,
            timeout_ms=timeout_ms,
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
    ) -> AsyncCommandHandle:
        """Start `command` and return while it runs.

        Arguments are those of `run`, with two differences. Without `stdin` the command's
        input is open until `close_stdin`. Without `timeout_ms` there is no time limit: the
        sandbox's own is for commands that somebody waits for.

        A command whose output nobody reads waits when a buffer (256 KiB) is full, as at a
        pipe.
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
            )
        )

    async def list(self) -> builtins.list[ProcessInfo]:
        """Every process that there is in the sandbox, by pid: those of commands, and those
        that commands left in the background.
        """
        return await call(self._blocking.list)

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncFileWatch:
    """Changes below a path since the watch began.

    Example:
        async with await sandbox.files.watch("src") as watch:
            async for event in watch:
                print(event.type, event.path)
    """

    def __init__(self, blocking: FileWatch) -> None:
        self._blocking = blocking
        self._stream = Stream(lambda: iter(blocking))
        self._turns = Turns()

    async def poll(self) -> list[FileEvent]:
        """What has changed since the last look, without waiting: removals first, then by path."""
        return await self._turns.call(self._blocking.poll)

    def __aiter__(self) -> AsyncIterator[FileEvent]:
        return self._stream

    async def close(self) -> None:
        """End the watch, and whoever iterates over it. Calling it again does nothing."""
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
        """The whole content of a file, as it is at one moment.

        Raises `FileError` (EFBIG) for a file of holes that is larger than the sandbox's file
        system: read it with `read_stream`.
        """
        return await call(self._blocking.read, path)

    async def read_text(
        self, path: GuestPath, *, encoding: str = "utf-8", errors: str = "strict"
    ) -> str:
        """The whole content of a file as text, decoded as `bytes.decode` does."""
        return await call(self._blocking.read_text, path, encoding=encoding, errors=errors)

    def read_stream(self, path: GuestPath, *, chunk_size: int = CHUNK) -> AsyncIterator[bytes]:
        """The content of a file in pieces of `chunk_size` bytes, for one that is large.

        A file that is written meanwhile may be seen half old and half new.
        """
        return Stream(lambda: self._blocking.read_stream(path, chunk_size=chunk_size))

    async def write(self, path: GuestPath, data: bytes | str | BinaryIO) -> None:
        """Make or replace a file; missing directories are made.

        Text is encoded as UTF-8; a binary file object is read to its end. A file that is
        there keeps its mode and owner. It is replaced in one step: whoever has it open goes
        on with the old content, and a failure leaves what was there.

        Raises `NoSpaceError`, and changes nothing, if it would not fit `fs_limit_bytes`.
        """
        await call(self._blocking.write, path, data)

    async def append(self, path: GuestPath, data: bytes | str) -> None:
        """Add to the end of a file, which is made if it is missing; all of `data` or nothing,
        unless a program writes to the same file meanwhile.
        """
        await call(self._blocking.append, path, data)

    async def list(
        self, path: GuestPath = ".", *, recursive: bool = False, glob: str | None = None
    ) -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name, without `.` and `..`.

        With `recursive` also all that is below; links to directories are not followed. `glob`
        chooses: a pattern without a slash is matched with names, one with a slash with paths
        below `path`; `*` and `?` stand for anything but a slash, `**` for any directories.
        """
        return await call(self._blocking.list, path, recursive=recursive, glob=glob)

    async def mkdir(self, path: GuestPath, *, parents: bool = True, exist_ok: bool = False) -> None:
        """Make a directory, and with `parents` those above it.

        Raises `AlreadyExistsError` if the path exists; with `exist_ok` a directory may.
        """
        await call(self._blocking.mkdir, path, parents=parents, exist_ok=exist_ok)

    async def rm(
        self, path: GuestPath, *, recursive: bool = False, missing_ok: bool = False
    ) -> None:
        """Remove a file or an empty directory; with `recursive`, a directory with all it
        holds. With `missing_ok` it is no error if there is nothing.
        """
        await call(self._blocking.rm, path, recursive=recursive, missing_ok=missing_ok)

    async def rename(self, source: GuestPath, target: GuestPath) -> None:
        """Give a file or directory another path. A file, or an empty directory, that is at
        `target` is replaced.
        """
        await call(self._blocking.rename, source, target)

    async def copy(self, source: GuestPath, target: GuestPath) -> None:
        """Copy a file, or a directory with all it holds, to the path `target`.

        Modes are kept, links are copied as links, missing directories are made. A file at
        `target` is replaced; a directory there gets the entries of a directory `source`.
        """
        await call(self._blocking.copy, source, target)

    async def symlink(self, target: str, path: GuestPath) -> None:
        """Make `path` a symbolic link that holds `target`, which need not exist."""
        await call(self._blocking.symlink, target, path)

    async def readlink(self, path: GuestPath) -> str:
        """What a symbolic link holds. Raises `InvalidPathError` for anything else."""
        return await call(self._blocking.readlink, path)

    async def stat(self, path: GuestPath, *, follow: bool = True) -> FileInfo:
        """What is at a path; symbolic links are followed, unless `follow` is false."""
        return await call(self._blocking.stat, path, follow=follow)

    async def exists(self, path: GuestPath) -> bool:
        """Whether `stat` would find something."""
        return await call(self._blocking.exists, path)

    async def chmod(self, path: GuestPath, mode: int) -> None:
        """Set the permission bits; a symbolic link is followed."""
        await call(self._blocking.chmod, path, mode)

    async def upload(self, host_path: str | os.PathLike[str], path: GuestPath) -> None:
        """Copy a file, or a directory with all it holds, of this machine to `path`.

        Modes and times are kept, links are copied as links; what is there already is replaced
        file by file. Raises `OSError` for what cannot be read.
        """
        await call(self._blocking.upload, host_path, path)

    async def download(
        self, path: GuestPath, host_path: str | os.PathLike[str]
    ) -> builtins.list[str]:
        """Copy a file, or a directory with all it holds, to `host_path` of this machine.

        Nothing is written outside `host_path`, whatever the sandbox holds. Returns what was
        left out: links that may lead outside, FIFOs, sockets and devices. Hard links and holes
        stay what they are. Raises `OSError` for what cannot be written.
        """
        return await call(self._blocking.download, path, host_path)

    def export_tar(self, path: GuestPath = ".") -> AsyncIterator[bytes]:
        """A directory with all it holds, or one file, as pieces of a tar archive.

        Names in it are relative to `path`. It is not compressed. A file with several names is
        in it once, and large holes are not; nor is what is mounted below `path`, as `/proc`.
        """
        return Stream(lambda: self._blocking.export_tar(path))

    async def import_tar(
        self, archive: bytes | BinaryIO | Iterable[bytes], path: GuestPath = "."
    ) -> None:
        """Unpack a tar archive, plain or compressed by gzip, below a directory, which is made.

        Nothing is written outside `path`. Files that are there are replaced. Raises
        `ArchiveError` for what is no archive; what was unpacked before stays.
        """
        await call(self._blocking.import_tar, archive, path)

    async def watch(
        self, path: GuestPath = ".", *, recursive: bool = True, interval_ms: float = 100
    ) -> AsyncFileWatch:
        """Changes to a file, or below a directory, from now on.

        `poll` does not wait; iterating does, and looks every `interval_ms`.
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


class AsyncShell:
    """A bash that goes on living: directory, variables, functions and background jobs stay.

    Example:
        async with await sandbox.shell() as shell:
            await shell.run("cd /tmp; name=world")
            (await shell.run("echo $name; pwd")).stdout

    A task that is cancelled in `run` ends its command, and leaves the shell.
    """

    def __init__(self, blocking: Shell) -> None:
        self._blocking = blocking

    @property
    def pid(self) -> int:
        """The process id of the shell in the sandbox."""
        return self._blocking.pid

    @property
    def closed(self) -> bool:
        """Whether the shell is known to have ended: by `close`, by a command (`exit`), or with
        the sandbox.
        """
        return self._blocking.closed

    async def run(
        self,
        command: str,
        *,
        stdin: bytes | str | None = None,
        timeout_ms: float | None = None,
        on_stdout: AsyncTextSink | None = None,
        on_stderr: AsyncTextSink | None = None,
    ) -> CommandResult:
        """Run a script in this shell and return what it printed.

        Arguments and result are those of `sandbox.commands.run`. After `timeout_ms` the script
        is interrupted, as by Ctrl-C, and the result has exit code 124; the shell, its state and
        its background jobs stay. Only a script that resists (`trap '' INT`) takes the shell with
        it, some six seconds later: standard error says so, and `closed` is true.

        Output of background jobs is part of the result of the command during which it is read.
        Redirections of standard files by `exec` last until the end of `command`. A script that
        ends the shell (`exit 3`) is a result too; the next `run` raises `CommandError` (ESRCH).

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

    async def close(self) -> None:
        """End the shell and everything that it started. Calling it again does nothing."""
        await call(self._blocking.close)

    async def __aenter__(self) -> AsyncShell:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncPythonSession:
    """A Python interpreter that goes on living: variables, functions and imports stay.

    Example:
        async with await sandbox.python() as session:
            await session.run("import math; radius = 2")
            (await session.run("math.pi * radius ** 2")).value

    A task that is cancelled in `run` interrupts its program, and leaves the interpreter.
    """

    def __init__(self, blocking: PythonSession) -> None:
        self._blocking = blocking

    @property
    def pid(self) -> int:
        """The process id of the interpreter in the sandbox."""
        return self._blocking.pid

    @property
    def closed(self) -> bool:
        """Whether the interpreter is known to have ended: by `close`, by the program
        (`os._exit`), or with the sandbox.
        """
        return self._blocking.closed

    async def run(
        self,
        code: str,
        *,
        timeout_ms: float | None = None,
        on_stdout: AsyncTextSink | None = None,
        on_stderr: AsyncTextSink | None = None,
    ) -> PythonResult:
        """Run statements in this interpreter, and return what they printed, and the value of
        the expression that they end with.

        `on_stdout` and `on_stderr` get text as it is printed, on the calling thread. An
        exception of the program, `SystemExit` too, is a result, with its traceback. After
        `timeout_ms` (the sandbox's, if not given) the program gets a KeyboardInterrupt, as by
        Ctrl-C; the interpreter and its state stay. Only a program that resists takes the
        interpreter with it, some six seconds later: then, or when a program ends it, `closed` is
        true and the next `run` raises `CommandError` (ESRCH).

        Standard input is empty. One call runs at a time; other threads wait.
        """
        return await call(
            self._blocking.run,
            code,
            timeout_ms=timeout_ms,
            on_stdout=in_loop(on_stdout),
            on_stderr=in_loop(on_stderr),
        )

    async def close(self) -> None:
        """End the interpreter and everything that it started. Calling it again does nothing."""
        await call(self._blocking.close)

    async def __aenter__(self) -> AsyncPythonSession:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return repr(self._blocking).replace("<", "<Async", 1)


class AsyncSandbox:
    """A Linux-like computer of its own, for asynchronous programs.

    Example:
        async with AsyncSandbox() as sandbox:
            await sandbox.files.write("a.txt", "hello\\n")
            result = await sandbox.commands.run("wc -c < a.txt")

    or, without a block:

    Example:
        sandbox = await AsyncSandbox.create()
        ...
        await sandbox.kill()

    Everything is as with `Sandbox`, which explains the options; whatever may wait is a
    coroutine, and callbacks may be coroutine functions.
    """

    commands: AsyncCommands
    "Run programs."
    files: AsyncFiles
    "Read and write files without running a program."
    env: Environment
    "Environment variables that every later command gets."

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
        isolation: Isolation = "none",
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
            isolation=isolation,
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
        isolation: Isolation = "none",
    ) -> AsyncSandbox:
        """A new sandbox, without a block that ends it: `kill` does."""
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
            isolation=isolation,
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
        self.commands = AsyncCommands(blocking.commands)
        self.files = AsyncFiles(blocking.files)

    if not TYPE_CHECKING:  # a checker would take any name for an attribute

        def __getattr__(self, name: str) -> object:
            if name in ("_blocking", "commands", "env", "files"):
                raise RuntimeError(NOT_ENTERED)
            raise AttributeError(name)

    @classmethod
    async def connect(
        cls, url: str, *, token: str | None = None, options: SandboxOptions | None = None
    ) -> AsyncSandbox:
        """A new sandbox of the server at `url` (see `wasmsand serve`), behind the same API.

        `token` is what the server was told to ask for; `options` are those of the constructor.
        """
        return cls._around(
            await obtain(Sandbox.kill, Sandbox.connect, url, token=token, options=options)
        )

    @classmethod
    async def from_backend(
        cls, backend: Backend, options: SandboxOptions | None = None
    ) -> AsyncSandbox:
        """A sandbox on a `Backend` of your own (see `wasmsand.sdk.backend`)."""
        return cls._around(await obtain(Sandbox.kill, Sandbox.from_backend, backend, options))

    @property
    def options(self) -> SandboxOptions:
        """What the sandbox was made from."""
        return self._blocking.options

    async def shell(
        self, *, env: Mapping[str, str] | None = None, cwd: str | os.PathLike[str] | None = None
    ) -> AsyncShell:
        """One bash that keeps its state from command to command.

        It starts with the sandbox's variables and working directory; `env` is added, `cwd`
        replaces. Variables that are set by `sandbox.env` later do not reach it.
        """
        return AsyncShell(await obtain(Shell.close, self._blocking.shell, env=env, cwd=cwd))

    async def python(
        self, *, env: Mapping[str, str] | None = None, cwd: str | os.PathLike[str] | None = None
    ) -> AsyncPythonSession:
        """One Python interpreter that keeps its state from call to call.

        It starts with the sandbox's variables and working directory; `env` is added, `cwd`
        replaces. Several may live at a time.
        """
        return AsyncPythonSession(
            await obtain(PythonSession.close, self._blocking.python, env=env, cwd=cwd)
        )

    async def usage(self) -> Usage:
        """What the sandbox uses now, each beside its limit."""
        return await call(self._blocking.usage)

    async def kill(self) -> None:
        """End every process and drop every file. Calling it again does nothing."""
        await call(self._blocking.kill)

    async def __aenter__(self) -> AsyncSandbox:
        if self._make is not None:
            make, self._make = self._make, None
            self._adopt(await obtain(Sandbox.kill, make))
        await call(self._blocking.__enter__)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.kill()

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

    `make` and `setup` work on a `Sandbox`: they run ahead, on another thread.
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
        """A fresh sandbox: one that is ready, or else one that is made now. It is yours to
        `kill`. What `make` or `setup` raises is raised here.
        """
        return AsyncSandbox._around(await obtain(Sandbox.kill, self._blocking.take))

    @property
    def ready(self) -> int:
        """How many sandboxes wait to be taken."""
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
