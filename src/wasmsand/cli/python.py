"""`wasmsand python`: runs the sandbox's Python as if it were a local program.

Rules: after the options of wasmsand, all arguments are those of `python3`. A script is a file of
this machine and is copied into the sandbox first; no other file of this machine is copied
unless the user names it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from wasmsand.cli import options, run
from wasmsand.cli.failure import EXIT_NOT_FOUND, NotRun, UsageError
from wasmsand.cli.splitting import suggestion

HELP = "run Python code in a new sandbox"
DESCRIPTION = (
    "Run python3 in a new sandbox. A script is a file on this machine. Without a script, -c or -m, "
    "Python is interactive on a terminal, and otherwise reads code from standard input. Options of "
    "wasmsand come before those of Python, and all others are Python's."
)
BEFORE_COMMAND = 0
EXAMPLES = """\
examples:
  wasmsand python                             the interactive interpreter; Ctrl-D ends it
  wasmsand python -c 'import sys; print(sys.version)'
  wasmsand python script.py one two           copies script.py into the sandbox and runs it
  wasmsand python -i script.py                interactive after the script
  echo '{"a": 1}' | wasmsand python -m json.tool
  cat numbers.txt | wasmsand python -c 'import sys; print(sum(map(int, sys.stdin)))'
  wasmsand python -p numpy --file data.csv script.py
"""

_LONG_OPTIONS: Final = (
    "--check-hash-based-pycs",
    "--help-all",
    "--help-env",
    "--help-xoptions",
    "--version",
)
"""Options of Python that begin with two dashes; `--help` is ours."""
_ENDING: Final = "cm"
"""Options of Python with a value after which its program's arguments begin."""
_WITH_VALUE: Final = "WX"


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.usage = "wasmsand python [OPTIONS] [PYTHON OPTIONS] [SCRIPT | -c CODE | -m MODULE] ..."
    run.add_command_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run Python and return its exit status."""
    words: list[str] = arguments.command
    _refuse_unknown(words)
    at = script_index(words)
    if at is not None:
        path = Path(words[at])
        if not path.exists():
            raise UsageError(f"{words[at]}: no such file on this machine")
        name = path.resolve().name
        arguments.file.append(options.Copy(words[at], name))
        words = [*words[:at], name, *words[at + 1 :]]
    try:
        return run.run_command(arguments, ["python3", *words])
    except NotRun as failure:
        if failure.status == EXIT_NOT_FOUND:
            raise NotRun(
                "python3 was not found in the sandbox; "
                "`wasmsand doctor` lists the installed programs",
                EXIT_NOT_FOUND,
            ) from None
        raise


def script_index(words: Sequence[str]) -> int | None:
    """Where the script is in the arguments of Python; None if there is none."""
    at = 0
    while at < len(words):
        word = words[at]
        if word == "-":
            return None
        if not word.startswith("-"):
            return at
        if word.startswith("--"):
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        at += 1
        for position, letter in enumerate(word[1:], start=2):
            if letter in _ENDING:
                return None
            if letter in _WITH_VALUE:
                at += position == len(word)  # the value is the next word
                break
    return None


def _refuse_unknown(words: Sequence[str]) -> None:
    """Raise `UsageError` for a misspelt option of wasmsand."""
    if words and words[0].startswith("--"):
        name = words[0].partition("=")[0]
        if name not in _LONG_OPTIONS:
            from wasmsand.cli import make_parser, options_of_command

            known = [*options_of_command(make_parser(("python",)), "python"), *_LONG_OPTIONS]
            raise UsageError(f"unknown option {name}{suggestion(name, known)}")
