"""`wasmsand restore`: makes a sandbox of a server what it was when a snapshot was taken."""

from __future__ import annotations

import argparse

from wasmsand.cli import options, remote

HELP = "make a sandbox of a server what it was at a snapshot"
DESCRIPTION = (
    "Make a sandbox of a server what it was when a snapshot was taken. Everything that runs in it "
    "ends."
)
EXAMPLES = """\
example (with the server's address in WASMSAND_URL, or with --connect URL):
  wasmsand restore sbx-5a0ed1a2 before
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("sandbox", metavar="ID", help="a sandbox of the server")
    parser.add_argument("snapshot", metavar="SNAPSHOT", help="name or ID of a snapshot")
    options.add_server_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Restore the sandbox."""
    with options.failures(), remote.copying(arguments) as copies:
        copies.restore(arguments.snapshot)
    return 0
