"""`wasmsand ps`: lists the sandboxes of a server with their state and metadata."""

from __future__ import annotations

import argparse
import time
from typing import Final

from wasmsand.cli import options, remote, values

HELP = "list the sandboxes of a server"
DESCRIPTION = (
    "List your sandboxes on a server: ID, state, creation, when it expires if it is not used "
    "again, metadata."
)
EXAMPLES = """\
examples (with the server's address in WASMSAND_URL, or with --connect URL):
  wasmsand ps
  wasmsand ps --metadata user=alice --state paused
  wasmsand kill $(wasmsand ps -q)             all of them
"""
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"))


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument(
        "--metadata",
        "-m",
        metavar="NAME=VALUE",
        type=values.variable,
        action="append",
        default=[],
        help="only sandboxes with this metadata (repeatable)",
    )
    parser.add_argument(
        "--state", choices=("running", "paused"), default=None, help="only sandboxes in this state"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="print only IDs")
    options.add_server_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from wasmsand.sdk.sandbox import Sandbox

    url = remote.server_url(arguments)
    with options.failures():
        found = Sandbox.list(
            url,
            token=options.server_token(),
            metadata=dict(arguments.metadata),
            state=arguments.state,
        )
    if not arguments.quiet:
        print(f"{'ID':<28}  {'STATE':<7}  {'CREATED':<19}  {'EXPIRES':<9}  METADATA")
    for info in found:
        if arguments.quiet:
            print(info.id)
            continue
        created = time.strftime("%F %T", time.localtime(info.created or 0))
        shown = " ".join(f"{name}={value}" for name, value in sorted(info.metadata.items()))
        ends = _duration(info.expires_in_seconds or 0)
        line = f"{info.id:<28}  {info.state:<7}  {created}  {ends:<9}  {_printable(shown)}"
        print(line.rstrip())
    return 0


def _duration(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _printable(text: str) -> str:
    """Text that cannot change the terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)
