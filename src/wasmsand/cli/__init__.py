"""The `wasmsand` command.

Owns the list of subcommands; each has its own file, which is a `Subcommand`. Rules: only the
subcommand that is used is imported, and it imports the machine only when it is executed. A failure
of wasmsand itself is one line on standard error; its exit statuses are in `failure`. A subcommand
that needs an optional package says how to install it.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Final, Protocol, cast

from wasmsand import __version__
from wasmsand.cli import delegated, line
from wasmsand.cli.failure import EXIT_USAGE, CliError
from wasmsand.cli.splitting import options_of, refuse_options, split_at_command, suggestion

_DESCRIPTION = """\
A computer for AI agents in a Python package: real GNU bash and coreutils, compiled to
WebAssembly, on a small Unix-like kernel. It needs no container and no root, and its programs
reach no network unless --allow-net names hosts."""

_EXAMPLES = """\
examples:
  wasmsand run 'echo hello | tr a-z A-Z'      run one command in a new sandbox
  wasmsand run 'sort | uniq -c' < names.txt   pass standard input and output through
  wasmsand run --file data.csv --out sorted.csv 'sort data.csv > sorted.csv'
  wasmsand run ls -la /usr/bin                several words are a program and its arguments
  wasmsand python -c 'print(6 * 7)'           run Python; alone, it is interactive
  wasmsand shell                              open an interactive bash; exit or Ctrl-D ends it
  wasmsand rpc                                serve JSON-RPC on standard input and output
  wasmsand serve                              serve sandboxes over HTTP, on http://127.0.0.1:8750
  wasmsand fleet up --local --nodes 3         serve them on several nodes, with Ray
  wasmsand playground --open                  serve a page in which a sandbox runs
  wasmsand mcp                                serve tools to a client of the Model Context Protocol
  wasmsand doctor                             check the installation and say how to fix it
  wasmsand warm                               compile all programs now

environment:
  WASMSAND_CACHE      directory of compiled programs and unpacked packages (default:
                      ~/.cache/wasmsand); only you may write to it
  WASMSAND_COMPILE    never: fail rather than compile a program while a command waits

'wasmsand COMMAND --help' explains one command. From Python:
  from wasmsand import Sandbox
"""


_WIDTH = 90


class Subcommand(Protocol):
    """The interface of a subcommand's module."""

    HELP: str
    """One line for the list of commands."""
    DESCRIPTION: str
    EXAMPLES: str
    """Shown unchanged below the options."""
    # BEFORE_COMMAND: int, if a command of the user follows the options: how many positional
    # arguments come before it. `execute` finds it as `arguments.command`.

    def add_options(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the subcommand's options and arguments."""

    def execute(self, arguments: argparse.Namespace, /) -> int:
        """Run the subcommand and return its exit status."""


_SUBCOMMANDS: Final = (
    "run",
    "shell",
    "python",
    "load",
    "snapshot",
    "restore",
    "fork",
    "cp",
    "ls",
    "ps",
    "kill",
    "attach",
    "rpc",
    "serve",
    "fleet",
    "mcp",
    "playground",
    "doctor",
    "warm",
    "completion",
)


def _subcommand(name: str) -> Subcommand:
    return cast("Subcommand", import_module(f"wasmsand.cli.{name}"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words and words[0] in delegated.MODULES:
            return delegated.execute(words[0], words[1:])
        if words and words[0] == "line":
            return line.main(words[1:])
        known = words[:1] if words and words[0] in _SUBCOMMANDS else _SUBCOMMANDS
        arguments = _parsed(make_parser(known), words)
        return cast("Callable[[argparse.Namespace], int]", arguments.execute)(arguments)
    except CliError as failure:
        print(f"wasmsand: {failure}", file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        return 130


def _parsed(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    """What the command line says. Help, the version and mistakes end the program here."""
    if not words:
        parser.print_help()
        parser.exit()
    name, commands = words[0], _subparsers(parser)
    if not name.startswith("-") and name not in commands:
        near = suggestion(name, list(commands))
        print(
            f"wasmsand: there is no command {name!r}{near}\n"
            "`wasmsand --help` lists the commands; `wasmsand run CMD` runs one in a sandbox",
            file=sys.stderr,
        )
        parser.exit(EXIT_USAGE)
    if name not in _SUBCOMMANDS:
        return parser.parse_args(words)
    before = getattr(_subcommand(name), "BEFORE_COMMAND", None)
    if before is None:
        return parser.parse_args(words)
    own, command = split_at_command(commands[name], words[1:], before)
    arguments = parser.parse_args([name, *own])
    if name != "python":
        refuse_options(commands[name], command)
    arguments.command = command
    return arguments


def _subparsers(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return cast("Mapping[str, argparse.ArgumentParser]", action.choices)
    raise AssertionError("the parser has no subcommands")


def options_of_command(parser: argparse.ArgumentParser, name: str) -> list[str]:
    """The options of one subcommand."""
    return options_of(_subparsers(parser)[name])


def make_parser(names: Sequence[str] = _SUBCOMMANDS) -> argparse.ArgumentParser:
    """The whole command line, or that of some subcommands."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="wasmsand", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=raw
    )
    parser.add_argument("--version", action="version", version=f"wasmsand {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        command = _subcommand(name)
        subparser = subparsers.add_parser(
            name,
            help=command.HELP,
            description=textwrap.fill(command.DESCRIPTION, _WIDTH),
            epilog=command.EXAMPLES,
            formatter_class=raw,
        )
        command.add_options(subparser)
        subparser.set_defaults(execute=command.execute)
    line.add_parser(subparsers)
    delegated.add_parsers(subparsers)
    return parser
