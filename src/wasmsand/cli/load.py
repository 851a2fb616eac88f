"""`wasmsand load`: goes on with a sandbox that was saved in a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from wasmsand.cli import run, saved, shell

HELP = "run a command or an interactive bash in a saved sandbox"
DESCRIPTION = (
    "Load a sandbox that was saved in a file, and run a command in it; without a command, an "
    "interactive bash. The file is not changed unless --save names it."
)
BEFORE_COMMAND = 1
EXAMPLES = """\
examples:
  wasmsand run --save m.wsand 'echo hello > a.txt'
  wasmsand load m.wsand 'cat a.txt'
  wasmsand load m.wsand                       an interactive bash
  wasmsand load --save m.wsand m.wsand 'date >> a.txt'

From Python: Sandbox.load("m.wsand"), sandbox.save("m.wsand")
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument(
        "load", metavar="FILE", type=Path, help="a file of `--save` or of `Sandbox.save`"
    )
    parser.usage = "wasmsand load [OPTIONS] FILE [SCRIPT | PROGRAM [ARGUMENT ...]]"
    run.add_local_options(parser)
    saved.add_save_option(parser)
    parser.set_defaults(connect=None, sandbox=None, keep=False)


def execute(arguments: argparse.Namespace) -> int:
    """Run the command, or bash, and return its exit status."""
    if arguments.command:
        return run.execute(arguments)
    arguments.command = shell.SCRIPT_COMMAND
    return shell.execute(arguments)
