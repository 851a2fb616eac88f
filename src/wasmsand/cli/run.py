"""`wasmsand run`: one command in a fresh sandbox, as if it were a local one.

Rules: standard input (unless it is a terminal), both outputs and the exit status pass
through unchanged, byte by byte and as they come.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO

from wasmsand.cli import options, values
from wasmsand.cli.failure import Failure
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.sdk.commands import SHELL
from wasmsand.sdk.output import TIMEOUT_EXIT_CODE

_BROKEN_PIPE_EXIT_CODE = 141
"""128 + SIGPIPE, as a shell reports it."""

_EXAMPLES = """\
examples:
  wasmsand run 'for i in 1 2 3; do echo $i; done | tac'
  wasmsand run -- ls -l /usr/bin              several words: a program and its arguments
  wasmsand run --timeout 2 'sleep 10'         exit status 124
  wasmsand run --env NAME=you 'echo "hello $NAME"'
  wasmsand run --file notes.txt:/tmp/n 'wc /tmp/n'
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `run`."""
    parser = subparsers.add_parser(
        "run",
        help="run one command in a fresh sandbox",
        description="Run one command in a fresh sandbox. One word is a script for bash; "
        "several words are a program and its arguments.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", metavar="CMD", nargs="+", help="a bash script, or a program...")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=values.seconds,
        default=None,
        help="kill it after this time, exit status 124 (default: none)",
    )
    parser.add_argument(
        "--max-output",
        metavar="BYTES",
        type=values.positive_integer,
        default=Limits().max_output_bytes,
        help="end it when it has printed more than this (default: %(default)s)",
    )
    options.add_options(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; its exit status is ours."""
    words = [*SHELL, *arguments.command] if len(arguments.command) == 1 else arguments.command
    limits = Limits(max_output_bytes=arguments.max_output)
    with options.machine(arguments, limits) as machine:
        output = _Output(sys.stdout.buffer, machine.close)
        errors = _Output(sys.stderr.buffer, machine.close)
        try:
            completed = machine.run(
                [word.encode("utf-8", "surrogateescape") for word in words],
                environ=options.environment(arguments),
                cwd=arguments.cwd,
                stdin=_standard_input(),
                timeout_seconds=arguments.timeout,
                on_stdout=output.receive,
                on_stderr=errors.receive,
            )
        except KernelError as error:
            raise Failure(f"cannot run {words[0]}: {error}") from None
    if output.broken or errors.broken:
        return _BROKEN_PIPE_EXIT_CODE
    if completed.truncated:
        raise Failure(f"output limit of {arguments.max_output} bytes reached; raise --max-output")
    if completed.timed_out:
        print("wasmsand: command timed out", file=sys.stderr)
        return TIMEOUT_EXIT_CODE
    return completed.exit_code


class _Output:
    """Passes bytes on as they come. When nobody reads them any more, the command is
    ended: it would be told by SIGPIPE if it wrote to the host's pipe itself."""

    def __init__(self, stream: BinaryIO, end: Callable[[], None]) -> None:
        self._stream = stream
        self._end = end
        self.broken = False

    def receive(self, data: bytes) -> None:
        """Called on a guest's thread in the middle of a system call: `end` must wait."""
        if self.broken:
            return
        try:
            self._stream.write(data)
            self._stream.flush()
        except BrokenPipeError:
            self.broken = True
            # What is still buffered would be written again, in vain, when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            threading.Thread(target=self._end, name="wasmsand-broken-pipe").start()


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    return sys.stdin.buffer.read()
