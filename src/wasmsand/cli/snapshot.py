"""`wasmsand snapshot`: takes, lists and deletes snapshots of a sandbox of a server."""

from __future__ import annotations

import argparse
import time

from wasmsand.cli import options, remote
from wasmsand.cli.failure import UsageError

HELP = "take a snapshot of a sandbox of a server"
DESCRIPTION = (
    "Take a snapshot of a sandbox of a server, and print its ID; or list or delete snapshots. A "
    "snapshot ends with its sandbox. `wasmsand restore` goes back to one."
)
EXAMPLES = """\
examples (with the server's address in WASMSAND_URL, or with --connect URL):
  wasmsand snapshot --name before sbx-5a0ed1a2
  wasmsand snapshot --list sbx-5a0ed1a2
  wasmsand snapshot --delete before sbx-5a0ed1a2
  wasmsand restore sbx-5a0ed1a2 before

For a sandbox of this machine use `wasmsand run --save FILE CMD`.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("sandbox", metavar="ID", help="a sandbox of the server")
    parser.add_argument("--name", default=None, help="name of the snapshot (default: its ID)")
    parser.add_argument("--list", action="store_true", help="list the snapshots of the sandbox")
    parser.add_argument(
        "--delete", metavar="SNAPSHOT", default=None, help="delete a snapshot, by name or ID"
    )
    add_running_option(parser)
    options.add_server_options(parser)


def add_running_option(parser: argparse.ArgumentParser) -> None:
    """Add `--drop-running`."""
    parser.add_argument(
        "--drop-running",
        dest="running",
        action="store_const",
        const="drop",
        default="refuse",
        help="leave out commands that run, and sessions that cannot be copied, instead of failing",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Take a snapshot, or do what the options say."""
    if arguments.list + (arguments.delete is not None) + (arguments.name is not None) > 1:
        raise UsageError("give only one of --name, --list and --delete")
    with options.failures(), remote.copying(arguments) as copies:
        if arguments.list:
            for found in copies.snapshots():
                created = time.strftime("%F %T", time.localtime(found["created_at"]))
                size = f"{found['size_bytes'] / 1e6:.1f} MB"
                print(f"{found['id']}  {created}  {size}  {printable(found['name'])}")
        elif arguments.delete is not None:
            copies.delete(arguments.delete)
        else:
            print(copies.snapshot(arguments.name, arguments.running)["id"])
    return 0


def printable(name: str) -> str:
    """A name that a terminal can show: other clients may have chosen it."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)
