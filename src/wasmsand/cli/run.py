"""`wasmsand run`: one command in a fresh sandbox, as if it were a local one.

Rules: standard input (unless it is a terminal), both outputs and the exit status pass
through unchanged, byte by byte and as they come.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import BinaryIO

from wasmsand.cli import options
from wasmsand.cli.failure import Failure
from wasmsand.sdk.commands import SHELL, TIMEOUT_EXIT_CODE

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
        type=_seconds,
        default=None,
        help="kill it after this time, exit status 124 (default: none)",
    )
    options.add_options(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command; its exit status is ours."""
    from wasmsand.kernel.errno import KernelError
    from wasmsand.machine import Machine

    words = [*SHELL, *arguments.command] if len(arguments.command) == 1 else arguments.command
    machine = Machine()
    try:
        options.prepare(machine, arguments)
        completed = machine.run(
            [word.encode("utf-8", "surrogateescape") for word in words],
            environ=options.environment(arguments),
            cwd=arguments.cwd,
            stdin=_standard_input(),
            timeout_seconds=arguments.timeout,
            on_stdout=_sink(sys.stdout.buffer),
            on_stderr=_sink(sys.stderr.buffer),
        )
    except KernelError as error:
        raise Failure(f"cannot run {words[0]}: {error}") from None
    finally:
        machine.close()
    if completed.truncated:
        print("wasmsand: output limit reached", file=sys.stderr)
    if completed.timed_out:
        print("wasmsand: command timed out", file=sys.stderr)
        return TIMEOUT_EXIT_CODE
    return completed.exit_code


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    return sys.stdin.buffer.read()


def _sink(stream: BinaryIO) -> Callable[[bytes], None]:
    """Pass bytes on at once; when nobody reads them any more, drop them."""
    broken = False

    def receive(data: bytes) -> None:
        nonlocal broken
        if broken:
            return
        try:
            stream.write(data)
            stream.flush()
        except BrokenPipeError:
            broken = True

    return receive


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number of seconds") from None
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError("must be a positive number of seconds")
    return seconds
