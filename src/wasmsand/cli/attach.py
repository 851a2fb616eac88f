"""`wasmsand attach`: an interactive bash in a sandbox of a server that exists already."""

from __future__ import annotations

import argparse

from wasmsand.cli import options, remote, run, shell

HELP = "open an interactive bash in a sandbox of a server"
DESCRIPTION = (
    "Open an interactive bash in a sandbox of a server, which is resumed if it is paused, and "
    "keeps running afterwards. If standard input is not a terminal, bash runs the script that "
    "it reads there. It is `wasmsand shell --id ID`."
)
EXAMPLES = """\
examples (with the server's address in WASMSAND_URL, or with --connect URL):
  wasmsand attach sbx-5a0ed1a2...
  wasmsand attach $(wasmsand ps -q --metadata task=7) < script.sh
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("sandbox", metavar="ID", help="a sandbox of the server")
    options.add_server_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Run the shell and return its exit status."""
    url = remote.server_url(arguments)
    parser = argparse.ArgumentParser()
    run.add_command_options(parser)
    return shell.execute(parser.parse_args(["--connect", url, f"--id={arguments.sandbox}"]))
