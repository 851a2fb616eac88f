"""`Sandbox`: one computer, from creation to `kill()`.

Owns the options and their defaults as users see them (the numbers are those of
`wasmsand.kernel.limits`). Rules: everything is keyword-only; nothing of the host is
reachable unless an option gives it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType

from wasmsand.kernel.limits import Limits
from wasmsand.machine import ImageMissing, Machine, MachineOptions, ToolRejected
from wasmsand.sdk import arguments
from wasmsand.sdk.commands import Commands
from wasmsand.sdk.environment import HOME, Environment
from wasmsand.sdk.errors import ImageMissingError, ToolError, file_errors
from wasmsand.sdk.files import Files
from wasmsand.sdk.handle import Handle

_DEFAULT = Limits()


class Sandbox:
    """A Linux-like computer of its own, in this process.

        with Sandbox() as sandbox:
            sandbox.files.write("a.txt", "hello\\n")
            result = sandbox.commands.run("wc -c < a.txt")

    Options:

    - `timeout_ms`: wall-clock time of one command; None for no limit
    - `fs_limit_bytes`, `max_inodes`: content and number of files that may be written
    - `memory_limit_bytes`: memory of all its processes together, without their C stacks
      (at most 16 MiB each)
    - `max_processes`, `max_open_files`: processes at once; open files of each
    - `max_output_bytes`: captured stdout and stderr of one command, each
    - `env`: environment variables, added to the built-in ones
    - `cwd`: where commands and relative paths start; made if it is missing
    - `wasm_dir`: a directory of this machine whose `*.wasm` files are commands of the sandbox,
      named by their files (`true-cmd.wasm` is `true`): programs for WASI preview 1

    A sandbox may be used from several threads.
    """

    commands: Commands
    files: Files
    env: Environment

    def __init__(
        self,
        *,
        timeout_ms: float | None = 30_000,
        fs_limit_bytes: int = _DEFAULT.fs_limit_bytes,
        max_inodes: int = _DEFAULT.max_inodes,
        memory_limit_bytes: int = _DEFAULT.memory_limit_bytes,
        max_processes: int = _DEFAULT.max_processes,
        max_open_files: int = _DEFAULT.max_open_files,
        max_output_bytes: int = _DEFAULT.max_output_bytes,
        env: Mapping[str, str] | None = None,
        cwd: str = HOME,
        wasm_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self._timeout_ms = timeout_ms
        timeout = arguments.timeout_seconds("timeout_ms", timeout_ms)
        positive = arguments.positive_integer
        limits = Limits(
            fs_limit_bytes=positive("fs_limit_bytes", fs_limit_bytes),
            max_inodes=positive("max_inodes", max_inodes),
            memory_limit_bytes=positive("memory_limit_bytes", memory_limit_bytes),
            max_processes=positive("max_processes", max_processes),
            max_open_files=positive("max_open_files", max_open_files),
            max_output_bytes=positive("max_output_bytes", max_output_bytes),
        )
        variables = arguments.variables("env", env)
        directory = arguments.absolute_path("cwd", cwd)
        tools = arguments.host_path("wasm_dir", wasm_dir)

        try:
            machine = Machine(MachineOptions(limits=limits, wasm_dir=tools))
        except ImageMissing as missing:
            raise ImageMissingError(str(missing)) from None
        except ToolRejected as rejected:
            raise ToolError(str(rejected), str(rejected.path), rejected.errno_name) from None
        handle = Handle(machine, directory)
        self._handle = handle
        self.env = Environment(handle, variables)
        self.files = Files(handle)
        self.commands = Commands(handle, self.env, timeout)
        if directory != HOME and not self.files.exists(directory):
            with file_errors(directory):
                machine.files.mkdir(directory)

    def kill(self) -> None:
        """End every process and drop every file. Calling it again does nothing."""
        self._handle.close()

    def __enter__(self) -> Sandbox:
        self._handle.check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def __repr__(self) -> str:
        if self._handle.closed:
            return "<Sandbox killed>"
        return f"<Sandbox cwd={self._handle.cwd!r} timeout_ms={self._timeout_ms}>"
