"""`wasmsand run`: runs one command in a sandbox as if it were a local command.

Rules: standard input, standard output, standard error and the exit status pass through unchanged,
byte for byte, as they arrive, without a size limit. If all three are a terminal, the command gets a
terminal too; if only standard input is one, the command's input is empty.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from wasmsand.cli import options, remote, saved, user_terminal, values
from wasmsand.cli.failure import EXIT_CANNOT_RUN, EXIT_NOT_FOUND, NotRun, UsageError
from wasmsand.cli.port_option import add_port_option, open_ports
from wasmsand.sdk.errors import CommandError, SandboxError

if TYPE_CHECKING:
    from wasmsand.sdk.command_handle import CommandHandle
    from wasmsand.sdk.sandbox import Sandbox

_HINTS = "/usr/share/wasmsand/hints"
"""The file of the image from which bash tells what to use instead of absent programs."""
_ADVICE_LENGTH = 500
_BROKEN_PIPE_EXIT_CODE = 141
"""128 + SIGPIPE, as a shell reports it."""
_CHUNK = 65536

HELP = "run one command in a new sandbox"
DESCRIPTION = (
    "Run one command in a new sandbox. One word is a script for bash; several words are a program "
    "and its arguments. Options of wasmsand come before the command. On a terminal, programs such "
    "as vim, less and top work."
)
BEFORE_COMMAND = 0
EXAMPLES = """\
examples:
  wasmsand run 'for i in 1 2 3; do echo $i; done | tac'
  wasmsand run ls -la /usr/bin                several words are a program and its arguments
  wasmsand run vim notes.txt                  on a terminal, the program has one too
  cat names.txt | wasmsand run 'sort | uniq -c'
  wasmsand run --timeout 2 'sleep 10'         exit status 124
  wasmsand run --memory-limit 1G --fs-limit 512M 'make test'
  wasmsand run --env NAME=you 'echo "hello $NAME"'
  wasmsand run --file notes.txt:/tmp/n 'wc /tmp/n'
  wasmsand run --port 8000:8000 'python3 -m http.server 8000'
  wasmsand run --file src --out src/app.tar 'cd src && tar -cf app.tar *.py'

a sandbox in a file, for later or for another machine:
  wasmsand run --save m.wsand 'echo hi > a.txt'
  wasmsand run --load m.wsand --save m.wsand 'date >> a.txt'

with a server (`wasmsand serve`), which can keep a sandbox for later:
  wasmsand run --connect http://127.0.0.1:8750 --keep 'echo hi > a.txt'
  wasmsand run --connect http://127.0.0.1:8750 --sandbox sbx-... 'cat a.txt'
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.usage = "wasmsand run [OPTIONS] SCRIPT | PROGRAM [ARGUMENT ...]"
    add_command_options(parser)


def add_command_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command and its sandbox, here or on a server."""
    add_local_options(parser)
    saved.add_file_options(parser)
    options.add_server_options(parser)
    parser.add_argument(
        "--sandbox",
        "--id",
        metavar="ID",
        default=None,
        help="with --connect: use this existing sandbox of the server, and keep it running",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="with --connect: keep the sandbox on the server and print its ID to standard error",
    )


def add_local_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command and its sandbox."""
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=values.seconds,
        default=None,
        help="kill the command after this time; exit status 124 (default: no timeout)",
    )
    parser.add_argument(
        "--mode",
        choices=("simple", "v86"),
        default="simple",
        help="v86: a whole Linux for i386 in an emulator, without a terminal (default: simple)",
    )
    options.add_sandbox_options(parser)
    options.add_copy_options(parser)
    add_port_option(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    words = arguments.command
    if not words:
        raise UsageError("what to run? For example: wasmsand run 'echo hello'")
    return run_command(arguments, words[0] if len(words) == 1 else words)


def run_command(arguments: argparse.Namespace, command: str | Sequence[str] | None) -> int:
    """Run `command` in the sandbox that the options describe, and return its exit status. None is
    an interactive bash, which needs a terminal."""
    has_terminal = user_terminal.has_terminal() and arguments.mode == "simple"
    with options.failures(), _sandbox(arguments) as sandbox:
        options.copy_in(sandbox, arguments.file)
        # The terminal is in raw mode when the first connection is announced.
        open_ports(sandbox, arguments.port, newline="\r\n" if has_terminal else "\n")
        try:
            if has_terminal:
                status = user_terminal.attach(
                    sandbox,
                    command,
                    env=dict(arguments.env),
                    cwd=None if command is None else arguments.cwd,
                    timeout_seconds=arguments.timeout,
                )
            else:
                if command is None:
                    raise UsageError("an interactive shell needs a terminal and --mode simple")
                status = _pass_through(sandbox, command, arguments)
        except CommandError as error:
            raise _not_run(error, command, arguments, sandbox) from None
        options.copy_out(sandbox, arguments.out)
    return status


def _not_run(
    error: CommandError,
    command: str | Sequence[str] | None,
    arguments: argparse.Namespace,
    sandbox: Sandbox,
) -> NotRun:
    """What to tell about a program that could not be started, with the status of shells."""
    program = command[0] if isinstance(command, list) and command else "bash"
    if error.errno_name != "ENOENT":
        return NotRun(f"cannot run {program:.200}: {error}", EXIT_CANNOT_RUN)
    if arguments.cwd and not sandbox.files.exists(arguments.cwd):
        return NotRun(f"cannot run {program:.200}: {error}", EXIT_CANNOT_RUN)
    hint = ""
    if any(character in program for character in " ;|&"):
        hint = " (a script is one word; options of wasmsand come before it)"
    elif advice := _advice(sandbox, program):
        hint = f"\nhint: {advice}"
    return NotRun(f"{program:.200}: command not found{hint}", EXIT_NOT_FOUND)


def _advice(sandbox: Sandbox, program: str) -> str:
    """What the sandbox's shell would say to use instead of a program, or an empty text. The
    sandbox's programs may have written it."""
    try:
        lines = sandbox.files.read_text(_HINTS).splitlines()
    except (SandboxError, UnicodeDecodeError):
        return ""
    found = (
        text
        for names, _, text in (line.partition("\t") for line in lines)
        if program in names.split()
    )
    return "".join(filter(str.isprintable, next(found, "")))[:_ADVICE_LENGTH]


@contextmanager
def _sandbox(arguments: argparse.Namespace) -> Iterator[Sandbox]:
    """A new sandbox in this process, a new one on a server, or an existing one there."""
    from wasmsand.sdk.sandbox import Sandbox

    if arguments.connect is None and (arguments.keep or arguments.sandbox):
        raise UsageError("--keep and --sandbox need a server: give --connect URL")
    made_from = options.sandbox_options(arguments)
    if arguments.mode != "simple" and arguments.connect is not None:
        raise UsageError("--mode is for sandboxes of this machine, not of a server")
    if arguments.connect is None:
        with saved.local_sandbox(arguments, made_from) as sandbox:
            yield sandbox
        return
    saved.check_not_loaded(arguments)
    if arguments.sandbox is not None:
        with remote.attached(arguments.connect, arguments.sandbox) as sandbox:
            yield sandbox
            saved.save(arguments, sandbox)
    else:
        from wasmsand.http.backend import open_http_backend

        backend = open_http_backend(arguments.connect, options.server_token(), made_from)
        sandbox = Sandbox.from_backend(backend, made_from)
        try:
            yield sandbox
            saved.save(arguments, sandbox)
        except BaseException:
            sandbox.kill()
            raise
        if arguments.keep:
            print(f"wasmsand: sandbox {backend.id}", file=sys.stderr)
            backend.leave()
        else:
            sandbox.kill()


def _pass_through(
    sandbox: Sandbox, command: str | Sequence[str], arguments: argparse.Namespace
) -> int:
    """Run `command` with our own standard streams."""
    has_input = sys.stdin is not None and not sys.stdin.isatty()
    handle = sandbox.commands.start(
        command,
        stdin=None if has_input else "",
        env=dict(arguments.env),
        cwd=arguments.cwd,
        timeout_ms=None if arguments.timeout is None else arguments.timeout * 1000,
    )
    if has_input:
        feeder = threading.Thread(target=_feed, args=(handle, sys.stdin.fileno()), daemon=True)
        feeder.start()
    streams = {"stdout": sys.stdout.buffer, "stderr": sys.stderr.buffer}
    for chunk in handle:
        if not _write(streams[chunk.stream], chunk.data):
            # A local command would get SIGPIPE here.
            handle.kill()
            return _BROKEN_PIPE_EXIT_CODE
    result = handle.wait()
    for line in result.stderr_bytes.splitlines(keepends=True):
        if line.startswith(b"wasmsand: "):  # a notice of the sandbox
            _write(streams["stderr"], line)
    if result.timed_out:
        print("wasmsand: command timed out", file=sys.stderr)
    return result.exit_code


def _feed(handle: CommandHandle, descriptor: int) -> None:
    """Pass the bytes of `descriptor` to the command as they arrive."""
    try:
        while data := os.read(descriptor, _CHUNK):
            handle.write_stdin(data)
        handle.close_stdin()
    except (SandboxError, OSError):
        # The command ended or closed its input: drop the rest.
        pass


def _write(stream: BinaryIO, data: bytes) -> bool:
    """Pass `data` on; False if the reader has closed the pipe."""
    try:
        stream.write(data)
        stream.flush()
    except BrokenPipeError:
        # At exit Python would try to write the buffered bytes again, and fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return False
    return True
