"""`wasmsand ls`: lists the sandboxes of a server, and their files."""

from __future__ import annotations

import argparse
import stat
import time

from wasmsand.cli import options, remote

HELP = "list the sandboxes of a server, or the files of one"
DESCRIPTION = "List the sandboxes of a server, or the files of one of them."
EXAMPLES = """\
examples (with the server's address in WASMSAND_URL, or with --connect URL):
  wasmsand ls                     all sandboxes
  wasmsand ls sbx-5a0ed1a2:       files in the working directory
  wasmsand ls -l sbx-5a0ed1a2:/etc

Without a server, a sandbox exists only while its command runs. In that case use
`wasmsand run --file IN --out OUT CMD`, or `wasmsand run 'ls -l /etc'`.
"""

_KINDS = {"dir": "d", "symlink": "l", "fifo": "p", "socket": "s", "device": "c"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument(
        "-l", dest="long", action="store_true", help="also show mode, size and time"
    )
    parser.add_argument("path", metavar="ID[:PATH]", nargs="?", default=None)
    options.add_server_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    url = remote.server_url(arguments)
    with options.failures():
        if arguments.path is None:
            _list_sandboxes(url)
        else:
            place = remote.guest_path(arguments.path) or remote.GuestPath(arguments.path, ".")
            _list_files(url, place, long=arguments.long)
    return 0


def _list_sandboxes(url: str) -> None:
    from wasmsand.http.finding import list_sandboxes

    for state in list_sandboxes(url, options.server_token()):
        created = time.strftime("%F %T", time.localtime(state["created_at"]))
        print(f"{state['id']}  {created}  expires in {state['expires_in_seconds']:.0f} s")


def _list_files(url: str, place: remote.GuestPath, *, long: bool) -> None:
    with remote.attached(url, place.sandbox) as sandbox:
        entries = sandbox.files.list(place.path)
    for entry in entries:
        name = entry.name.encode("utf-8", "replace").decode("utf-8")
        if long:
            mode = _KINDS.get(entry.type, "-") + stat.filemode(entry.mode)[1:]
            changed = time.strftime("%F %T", time.localtime(entry.mtime_ns / 1e9))
            print(f"{mode} {entry.size:>10} {changed} {name}")
        else:
            print(name)
