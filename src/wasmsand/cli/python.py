"""`wasmsand python`: the sandbox's Python, as if it were a local one.

Rules: arguments are those of `python3`; a script that is a file of this machine is copied
into the sandbox first, and nothing else of this machine is there.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from wasmsand.cli import options, run
from wasmsand.cli.failure import CliError

_EXAMPLES = """\
examples:
  wasmsand python -c 'import sys; print(sys.version)'
  wasmsand python script.py one two           script.py of this machine, copied into the sandbox
  cat numbers.txt | wasmsand python -c 'import sys; print(sum(map(int, sys.stdin)))'
  wasmsand python --file data.csv script.py   options of wasmsand come before those of Python
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `python`."""
    parser = subparsers.add_parser(
        "python",
        help="run Python code in a fresh sandbox",
        description="Run python3 in a fresh sandbox. A script is read from this machine; "
        "without a script and -c, code is read from standard input.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-c", metavar="CODE", dest="code", default=None, help="code to run")
    run.add_options(parser)
    parser.add_argument(
        "words", metavar="...", nargs=argparse.REMAINDER, help="a script, and its arguments"
    )
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Run Python; its exit status is ours."""
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
                "the programs that are installed here have no python3 among them; "
                "`wasmsand doctor` lists them"
            ) from None
        raise
