"""`wasmsand kill`: kills sandboxes of a server."""

from __future__ import annotations

import argparse
import sys

from wasmsand.cli import options, remote
from wasmsand.cli.failure import EXIT_FAILURE

HELP = "kill sandboxes of a server"
DESCRIPTION = (
    "Kill sandboxes of a server, running or paused, with all their files. Stored snapshots stay."
)
EXAMPLES = """\
examples (with the server's address in WASMSAND_URL, or with --connect URL):
  wasmsand kill sbx-5a0ed1a2...
  wasmsand kill $(wasmsand ps -q --metadata user=alice)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("sandboxes", metavar="ID", nargs="+", help="a sandbox of the server")
    options.add_server_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Kill each sandbox. One that does not exist is reported, and the others are killed."""
    from wasmsand.sdk.sandbox import Sandbox

    url, status = remote.server_url(arguments), 0
    for identity in arguments.sandboxes:
        with options.failures():
            if not Sandbox.kill_by_id(url, identity, token=options.server_token()):
                print(f"wasmsand: no sandbox {identity[:64]!r}", file=sys.stderr)
                status = EXIT_FAILURE
    return status
