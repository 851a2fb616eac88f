"""`wasmsand shell`: an interactive bash on a pseudo-terminal of a sandbox, here or on a server.

Rules: with a terminal, see `user_terminal`; without one, bash runs the script that it reads from
standard input.
"""

from __future__ import annotations

import argparse

from wasmsand.cli import run, user_terminal

SCRIPT_COMMAND = ["/bin/bash", "-s"]
"""If there is no terminal: bash reads its script from standard input."""

HELP = "open an interactive bash in a new sandbox"
DESCRIPTION = (
    "Open an interactive bash in a new sandbox, or in one of a server. The files of a new sandbox "
    "are lost when bash ends, unless --save names a file for them, or --keep keeps it on its "
    "server. If standard input is not a terminal, bash runs the script that it reads there."
)
EXAMPLES = """\
examples:
  wasmsand shell                              exit or Ctrl-D ends it
  wasmsand shell --mount .:/mnt/repo:overlay  try something with a copy of this directory
  wasmsand shell --save m.wsand               later: wasmsand load m.wsand
  wasmsand shell --connect http://127.0.0.1:8750
  wasmsand shell --connect http://127.0.0.1:8750 --id sbx-5a0ed1a2...
  wasmsand shell < script.sh
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    run.add_command_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the shell and return its exit status."""
    command = None if user_terminal.has_terminal() else SCRIPT_COMMAND
    return run.run_command(arguments, command)
