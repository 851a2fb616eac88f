"""`wasmsand fork`: copies a sandbox of a server."""

from __future__ import annotations

import argparse

from wasmsand.cli import options, remote
from wasmsand.cli.snapshot import add_running_option
from wasmsand.cli.values import positive_integer

HELP = "copy a sandbox of a server"
DESCRIPTION = (
    "Copy a sandbox of a server, with all its files and Python sessions, and print the ID of each "
    "copy. With --snapshot, copy what it was when the snapshot was taken."
)
EXAMPLES = """\
examples (with the server's address in WASMSAND_URL, or with --connect URL):
  wasmsand fork sbx-5a0ed1a2
  wasmsand fork --count 3 sbx-5a0ed1a2
  wasmsand run --sandbox "$(wasmsand fork sbx-5a0ed1a2)" 'make test'
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("sandbox", metavar="ID", help="a sandbox of the server")
    parser.add_argument(
        "--count", metavar="N", type=positive_integer, default=1, help="number of copies"
    )
    parser.add_argument(
        "--snapshot", metavar="SNAPSHOT", default=None, help="ID of a snapshot to copy instead"
    )
    add_running_option(parser)
    options.add_server_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Copy the sandbox."""
    with options.failures(), remote.copying(arguments) as copies:
        if arguments.snapshot is None:
            made = copies.fork(arguments.count, arguments.running)
        else:
            made = [copies.open(arguments.snapshot) for _ in range(arguments.count)]
    for copy in made:
        print(copy["id"])
    return 0
