"""`Sandbox`: one sandbox, from creation to `kill()`.

Owns the constructor as users see it; a test checks its signature and the list of options below
against the table in `options`. Rules: everything is keyword-only; nothing of the host is
reachable unless an option grants it; all operations go through the sandbox's `Backend`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final, overload

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import Backend, BackendProcess
from wasmsand.sdk.command_builder import CommandBuilder, SandboxUser
from wasmsand.sdk.commands import Commands
from wasmsand.sdk.environment import Environment
from wasmsand.sdk.errors import StateError
from wasmsand.sdk.files import Files
from wasmsand.sdk.opening import (
    ServedLife,
    connect_backend,
    find_on_server,
    load_anywhere,
    open_backend,
)
from wasmsand.sdk.options import HOME, SETTINGS, Isolation, Mode, SandboxOptions
from wasmsand.sdk.packages import Packages
from wasmsand.sdk.ports import Ports
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.results import Usage
from wasmsand.sdk.sandbox_life import SandboxLife
from wasmsand.sdk.sandbox_mounts import SandboxMounts
from wasmsand.sdk.sandbox_network import SandboxNetwork
from wasmsand.sdk.saving import checked_options, load_state, readable, save_state
from wasmsand.sdk.served_backend import ServedBackend
from wasmsand.sdk.shell import Shell
from wasmsand.sdk.state import (
    PROGRAM,
    FileOrStream,
    Part,
    Running,
    SandboxState,
    SavedSession,
    Snapshot,
    Snapshots,
    checked_name,
    new_sandbox_id,
    take_state,
)
from wasmsand.sdk.terminal import COLUMNS, ROWS, DataSink, Terminal

if TYPE_CHECKING:
    from wasmsand.sdk.keeping import Keeper
    from wasmsand.sdk.mounts import Mount
    from wasmsand.sdk.network import Network
    from wasmsand.sdk.stores import Claim, Store

DEFAULTS: Final = SandboxOptions()


class Sandbox(SandboxLife, SandboxMounts):
    """A private Linux-like computer.

    Example:
        with Sandbox() as sandbox:
            sandbox.files.write("a.txt", "hello\\n")
            result = sandbox.commands.run("wc -c < a.txt")

    Options:

    - `timeout_ms`: maximum wall-clock time of one command; None for no limit
    - `fs_limit_bytes`: maximum total size of the files that the sandbox writes
    - `max_inodes`: maximum number of files, directories and links
    - `memory_limit_bytes`: maximum memory of all processes together, with the objects that the
      host keeps for them
    - `max_processes`: maximum number of processes
    - `max_open_files`: maximum number of open files per process
    - `max_output_bytes`: maximum captured output of one command, for stdout and stderr each
    - `env`: environment variables, added to the built-in ones
    - `cwd`: directory in which commands and relative paths start; created if it does not exist
    - `wasm_dir`: directory of this machine whose `*.wasm` files, programs for WASI preview 1,
      become commands of the sandbox, named after the files (`true-cmd.wasm` is `true`)
    - `packages`: Python packages that can be imported from the start, with their dependencies,
      such as `["numpy", "pandas>=3"]`; `"all"` for all packages of the image
    - `network`: what the sandbox may reach on the network, as a `Network` or a list of rules to
      allow such as `["api.example.com:443", "*.wikipedia.org"]`; None for nothing
    - `mounts`: directories of this machine in the sandbox, by path: a directory to be read, or a
      `Mount` such as `Mount(".", mode="overlay")`
    - `isolation`: `"none"` runs the sandbox in this process, `"process"` in a separate one, with
      the same API
    - `mode`: `"simple"` runs programs compiled to WebAssembly, `"v86"` a whole Linux for i386 in an
      emulator (`wasmsand build v86`)

    A sandbox may be used from several threads. It ends when the last reference to it is gone.
    """

    commands: Commands
    """Run programs."""
    files: Files
    """Read and write files without running a program."""
    env: Environment
    """Environment variables that every later command gets."""
    packages: Packages
    """Install Python packages."""
    network: SandboxNetwork
    """Change what the sandbox may reach, and see what it did."""
    ports: Ports
    """Reach servers in the sandbox."""
    snapshots: Snapshots
    """The snapshots that were taken of the sandbox."""

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
        # The signature is for readers and editors; the table of options has the rest.
        given = locals()
        options = SandboxOptions(**{option.name: given[option.name] for option in SETTINGS})
        self._attach(open_backend(options, isolation, mode), options)

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        id: str | None = None,
        token: str | None = None,
        options: SandboxOptions | None = None,
        metadata: Mapping[str, str] | None = None,
        lifetime_seconds: float | None = None,
    ) -> Sandbox:
        """Create a sandbox on the server at `url` (see `wasmsand serve`) or on a fleet (`fleet:`,
        see `wasmsand fleet`), with the same API. With `id`, use one that exists, with its sessions.

        Example:
            with Sandbox.connect("http://127.0.0.1:8750", token="...") as sandbox:
                sandbox.commands.run("uname -a")

        `token` is a token that the server accepts; `options` are those of the constructor. With
        `id`, only `network` of the options is sent, if the sandbox is paused: a server does not
        store secrets. `metadata` are names and values by which `Sandbox.list` finds sandboxes.
        After `lifetime_seconds` the server kills the sandbox; see `set_timeout`. A sandbox that was
        found by its `id` is not killed at the end of a `with` block, nor when it is collected.
        Raises `SandboxClosedError` if the server has no sandbox with this `id`.
        """
        place = arguments.text("url", url)
        if id is not None:
            arguments.nothing_else(id=id, metadata=metadata, lifetime_seconds=lifetime_seconds)
            state = find_on_server(place, token, arguments.text("id", id), checked_options(options))
            return cls._on_backend(state, state.backend, is_last=True)
        options = DEFAULTS if options is None else options
        life = ServedLife(
            arguments.metadata("metadata", metadata or {}),
            None
            if lifetime_seconds is None
            else arguments.seconds("lifetime_seconds", lifetime_seconds),
        )
        return cls.from_backend(connect_backend(place, token, options, life), options)

    @classmethod
    def from_backend(cls, backend: Backend, options: SandboxOptions | None = None) -> Sandbox:
        """Create a sandbox on your own `Backend` (see `wasmsand.sdk.backend`).

        Example:
            Sandbox.from_backend(LocalBackend(SandboxOptions()))
        """
        sandbox = cls.__new__(cls)
        sandbox._attach(backend, DEFAULTS if options is None else options)
        return sandbox

    def _attach(self, backend: Backend, options: SandboxOptions) -> None:
        attachment = Attachment(backend, options)
        self._attachment = attachment
        self._id = backend.id if isinstance(backend, ServedBackend) else new_sandbox_id()
        self.env = Environment(attachment)
        self.files = Files(attachment)
        self._builder = CommandBuilder(options, self.env.chosen)
        self.commands = Commands(attachment, self._builder)
        self.packages = Packages(attachment)
        self.network = SandboxNetwork(attachment)
        self.ports = Ports(attachment)
        self.snapshots = Snapshots()
        self._sessions: list[Shell | PythonSession] = []
        self._keeper: Keeper | None = None
        self._programs: dict[str, BackendProcess] = {}
        """Programs of the client that came with a copy (`client_programs`)."""
        attachment.make_working_directory()

    @property
    def options(self) -> SandboxOptions:
        """The options that the sandbox was created with."""
        return self._attachment.options

    def shell(
        self,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        user: SandboxUser = "user",
    ) -> Shell:
        """Open a bash session that keeps its state from command to command.

        Example:
            with sandbox.shell() as shell:
                shell.run("cd project && export DEBUG=1")
                shell.run("make test").exit_code

        The shell starts with the sandbox's variables and working directory; `env` adds
        variables, and `cwd` replaces the directory. Later changes of `sandbox.env` do not affect
        the shell. `user` is that of `commands.run`.
        """
        shell = Shell(self._attachment, self._builder, env=env, cwd=cwd, user=user)
        self._sessions.append(shell)
        return shell

    def python(
        self,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: bytes | str = b"",
        user: SandboxUser = "user",
    ) -> PythonSession:
        """Open a Python session that keeps its state from call to call.

        Example:
            with sandbox.python() as session:
                session.run("rows = [3, 1, 2]")
                session.run("sorted(rows)").value

        The interpreter starts with the sandbox's variables and working directory; `env` adds
        variables, and `cwd` replaces the directory. `stdin` is its standard input. `user` is that
        of `commands.run`. Several sessions can be open at a time.
        """
        session = PythonSession(
            self._attachment, self._builder, env=env, cwd=cwd, stdin=stdin, user=user
        )
        self._sessions.append(session)
        return session

    def pty(
        self,
        command: str | Sequence[str] | None = None,
        *,
        cols: int = COLUMNS,
        rows: int = ROWS,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        user: SandboxUser = "user",
        on_data: DataSink | None = None,
    ) -> Terminal:
        """Start a program on a pseudo-terminal: an interactive bash, or `command`, which is a
        script for bash, or a program and its arguments.

        Example:
            with sandbox.pty(["vim", "a.txt"]) as terminal:
                terminal.write("ihello\\x1b:wq\\r")
                screen = b"".join(terminal)

        Read the output, or get it by `on_data`, which is called on another thread. `TERM` is
        `xterm-256color` unless `env` says otherwise. There is no time limit. A terminal that nobody
        refers to any more hangs up. Raises `CommandError`.
        """
        return Terminal(
            self._attachment,
            self._builder,
            command,
            cols=cols,
            rows=rows,
            env=env,
            cwd=cwd,
            user=user,
            on_data=on_data,
        )

    @property
    def sessions(self) -> list[Shell | PythonSession]:
        """The sessions that have not ended, in the order in which they were opened. A copy of the
        sandbox has its own at the same positions."""
        self._sessions[:] = [session for session in self._sessions if not session.closed]
        return [*self._sessions]

    def snapshot(self, name: str | None = None, *, running: Running = "refuse") -> Snapshot:
        """Remember the sandbox as it is now: files, variables, and live sessions with all they have
        in memory. Takes the same time whatever the number and size of the files.

        Example:
            snapshot = sandbox.snapshot("before")
            sandbox.commands.run("rm -rf project")
            sandbox.restore(snapshot)

        Commands that are running cannot be remembered: they raise `StateError`, or are left out
        with `running="drop"`. The same holds for sessions that run a request, have threads, child
        processes or connections.
        """
        checked = checked_name(name)
        snapshot = Snapshot(self._taken(running), checked)
        self.snapshots.add(snapshot)
        return snapshot

    def restore(self, snapshot: Snapshot | str) -> None:
        """Make the sandbox what it was when `snapshot` was taken, in this or another sandbox.
        Everything that runs is ended. `snapshot` may be the name of one of `snapshots`.

        Example:
            sandbox.restore("before")

        A session object that the snapshot contains goes on from there; others are closed.
        """
        if not isinstance(snapshot, Snapshot | str):
            kind = type(snapshot).__name__
            raise TypeError(f"snapshot must be a Snapshot or its name, not {kind}")
        found = self.snapshots.get(snapshot) if isinstance(snapshot, str) else snapshot
        state, current = found.state, self._attachment.backend
        if type(state.backend) is not type(current):
            raise StateError("the snapshot is of another kind of sandbox (isolation, connect)")
        backend = current.restore_state(state.machine, state.options)
        try:
            processes = [backend.adopt(saved.captured, is_last=False) for saved in state.sessions]
            self._attachment.replace(backend)
        except BaseException:
            backend.close()
            raise
        known = {session.identity: session for session in self._sessions}
        self.env._use(backend.variables)
        self._sessions.clear()
        for session in known.values():
            session._be_left_behind()
        for saved, process in zip(state.sessions, processes, strict=True):
            known_session = known.get(saved.identity)
            if known_session is None:
                self._continue(saved, process)
            else:
                known_session._continue_as(process)
                self._sessions.append(known_session)

    @overload
    def fork(self, count: None = None, *, running: Running = "refuse") -> Sandbox: ...

    @overload
    def fork(self, count: int, *, running: Running = "refuse") -> list[Sandbox]: ...

    def fork(
        self, count: int | None = None, *, running: Running = "refuse"
    ) -> Sandbox | list[Sandbox]:
        """Make a copy of the whole sandbox, or a list of `count` copies, with live sessions. They
        share everything until one of them writes, and none sees what another does.

        Example:
            twin = sandbox.fork()
            first, second = sandbox.fork(2)
            twin.sessions[0].run("x")

        For what cannot be copied, see `snapshot`. Whoever forks has to end the copies.
        """
        wanted = 1 if count is None else arguments.positive_integer("count", count)
        state = self._taken(running)
        twins: list[Sandbox] = []
        try:
            for number in range(wanted):
                twins.append(self._of_state(state, is_last=number == wanted - 1))
        except BaseException:
            for twin in twins:
                twin.kill()
            raise
        return twins[0] if count is None else twins

    def _taken(
        self, running: Running, programs: Iterable[Part] = (), *, to_save: bool = False
    ) -> SandboxState:
        with nullcontext() if self._keeper is None else self._keeper.capturing:
            parts = [*self.sessions, *programs]
            return take_state(self._attachment, parts, running, to_save=to_save)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Sandbox:
        """Create a sandbox from a snapshot, any number of times.

        Example:
            with Sandbox.from_snapshot(snapshot) as sandbox:
                sandbox.sessions[0].run("x")
        """
        return cls._of_state(snapshot.state)

    def save(self, target: FileOrStream, *, running: Running = "refuse") -> None:
        """Write the sandbox as it is now to a file, or to a binary stream: files, variables, and
        live sessions with all they have in memory. `Sandbox.load` makes a sandbox of it, on any
        host with the same version of wasmsand.

        Example:
            sandbox.save("machine.wsand")

        A file is replaced completely or not at all. Only what differs from a new sandbox is
        written, compressed. The network's rules and secrets, and `wasm_dir`, are not; environment
        variables are. For what cannot be saved, see `snapshot`.
        """
        save_state(self._taken(running, to_save=True), target)

    @classmethod
    def load(
        cls,
        source: FileOrStream,
        *,
        options: SandboxOptions | None = None,
        only_files: bool = False,
        isolation: Isolation = "none",
        url: str | None = None,
        token: str | None = None,
    ) -> Sandbox:
        """Create a sandbox from a file of `save`, or from a binary stream: in this process, in a
        separate one (`isolation="process"`), or on the server at `url`.

        Example:
            with Sandbox.load("machine.wsand") as sandbox:
                sandbox.sessions[0].run("x")

        The file may come from anybody: it grants nothing. Its limits are used as far as they are
        not above the default ones. With `options`, these are used instead, for example to allow
        more memory or a network; variables and working directory are always the saved ones. With
        `only_files`, sessions are left out, and the file may come from another version.

        Raises `StateFileError` if the file is not a saved sandbox or is damaged,
        `StateVersionError` if it is too new, `StateImageError` if it needs another image, and
        `StateLimitError` if it does not fit.
        """
        with readable(source) as stream:
            state = load_anywhere(
                stream, checked_options(options), isolation, url, token, only_files=only_files
            )
        return cls._on_backend(state, state.backend, is_last=True)

    @classmethod
    def open(
        cls,
        name: str,
        *,
        store: Store | str | os.PathLike[str] | None = None,
        options: SandboxOptions | None = None,
        only_files: bool = False,
    ) -> Sandbox:
        """Open the sandbox with this name in a store, or create it there. It outlives this process:
        its changes are written to the store in the background, and when it ends.

        Example:
            with Sandbox.open("agent-7") as sandbox:
                sandbox.commands.run("date >> log")

        `store` is a directory or a `Store`, by default a directory below the user's data directory.
        After a crash of the host, the sandbox is what it was when it was last written, at most a
        few seconds before. Commands that ran then have ended; live sessions go on.

        `options` are those of the constructor; by default those that the sandbox was created with,
        without `network`, `mounts` and `wasm_dir`, which have to be given each time. For
        `only_files` see `load`.

        Raises `StoreBusyError` if the sandbox is open already, in this or another process.
        """
        from wasmsand.sdk.keeping import Keeper, Kept
        from wasmsand.sdk.stores import opened_store

        claim = opened_store(store).claim(name)
        try:
            sandbox = cls._of_claim(claim, options, only_files)
        except BaseException:
            claim.release()
            raise
        kept = Kept(sandbox._attachment, sandbox.env, sandbox._sessions)
        sandbox._keeper = Keeper(kept, claim, sandbox)
        return sandbox

    @classmethod
    def _of_claim(cls, claim: Claim, options: SandboxOptions | None, only_files: bool) -> Sandbox:
        stream = claim.read()
        if stream is None:
            chosen = DEFAULTS if options is None else options
            return cls.from_backend(open_backend(chosen, "none"), chosen)
        with stream:
            state, _ = load_state(stream, options, only_files=only_files, trusts_limits=True)
        return cls._on_backend(state, state.backend, is_last=True)

    @classmethod
    def _of_state(cls, state: SandboxState, *, is_last: bool = False) -> Sandbox:
        return cls._on_backend(
            state, state.backend.open_state(state.machine, state.options), is_last=is_last
        )

    @classmethod
    def _on_backend(cls, state: SandboxState, backend: Backend, *, is_last: bool) -> Sandbox:
        """The sandbox of a backend that has this state, without its sessions."""
        try:
            sandbox = cls.from_backend(backend, state.options)
            for saved in state.sessions:
                process = backend.adopt(saved.captured, is_last=is_last)
                sandbox._continue(saved, process)
        except BaseException:
            backend.close()
            raise
        return sandbox

    def _continue(self, saved: SavedSession, process: BackendProcess) -> None:
        if saved.kind == PROGRAM:
            self._programs[saved.identity] = process
            return
        kind = Shell if saved.kind == Shell.kind else PythonSession
        self._sessions.append(kind._continued(self._attachment, process, saved.identity))

    def allow_network(self, rules: Sequence[str]) -> None:
        """Allow more hosts: `sandbox.network.allow(*rules)`.

        Example:
            sandbox.allow_network(["api.example.com"])
        """
        self.network.allow(*arguments.rules("rules", rules))

    def usage(self) -> Usage:
        """Return what the sandbox uses now, each value beside its limit.

        Example:
            usage = sandbox.usage()
            usage.fs_bytes, usage.fs_limit_bytes, usage.processes, usage.cpu_time_ms
        """
        return self._attachment.backend.usage()

    def __enter__(self) -> Sandbox:
        self._attachment.check_open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._attachment.closed:
            return "<Sandbox killed>"
        return f"<Sandbox cwd={self.options.cwd!r} timeout_ms={self.options.timeout_ms}>"
