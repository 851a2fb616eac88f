"""`wasmsand python`: runs the sandbox's Python as if it were a local program.

Rules: arguments are those of `python3`; a script is a file on this machine and is copied into
the sandbox first; no other file of this machine is copied unless the user names it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from wasmsand.cli import options, run
from wasmsand.cli.failure import CliError

HELP = "run Python code in a new sandbox"
DESCRIPTION = (
    "Run python3 in a new sandbox. A script is a file on this machine. Without a "
    "script and without -c, Python reads code from standard input."
)
EXAMPLES = """\
examples:
  wasmsand python -c 'import sys; print(sys.version)'
  wasmsand python script.py one two           copies script.py into the sandbox and runs it
  cat numbers.txt | wasmsand python -c 'import sys; print(sum(map(int, sys.stdin)))'
  wasmsand python --file data.csv script.py   options of wasmsand come before those of Python
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("-c", metavar="CODE", dest="code", default=None, help="code to run")
    run.add_command_options(parser)
    parser.add_argument(
        "words", metavar="...", nargs=argparse.REMAINDER, help="a script and its arguments"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run Python and return its exit status."""
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if arguments.code is not None:
        command = ["python3", "-c", arguments.code, *words]
    elif words and words[0] != "-":
        name = Path(words[0]).name
        arguments.file.append(options.Copy(words[0], name))
        command = ["python3", name, *words[1:]]
    else:
        command = ["python3", "-", *words[1:]]
    try:
        return run.run_command(arguments, command)
    except CliError as failure:
        if str(failure).startswith("cannot run python3: ENOENT"):
            raise CliError(
                "python3 was not found in the sandbox; "
                "`wasmsand doctor` lists the installed programs"
            ) from None
        raise
