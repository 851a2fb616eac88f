"""`wasmsand cp`: copies files between this machine and a sandbox of a server."""

from __future__ import annotations

import argparse
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING

from wasmsand.cli import options, remote
from wasmsand.cli.failure import CliError, UsageError

if TYPE_CHECKING:
    from wasmsand.sdk.sandbox import Sandbox

HELP = "copy files to or from a sandbox of a server"
DESCRIPTION = (
    "Copy a file, or a directory with everything below it, to or from a sandbox of "
    "a server. Either FROM or TO is ID:PATH. If TO is a directory, the copy is placed in it."
)
EXAMPLES = """\
examples (with the server's address in WASMSAND_URL, or with --connect URL):
  wasmsand cp data.csv sbx-5a0ed1a2:            to the working directory of the sandbox
  wasmsand cp src sbx-5a0ed1a2:/tmp/project     a directory with everything below it
  wasmsand cp sbx-5a0ed1a2:result.json .

Without a server, a sandbox exists only while its command runs. In that case use
`wasmsand run --file IN --out OUT CMD`.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("source", metavar="FROM", help="a path on this machine, or ID:PATH")
    parser.add_argument("target", metavar="TO", help="ID:PATH, or a path on this machine")
    options.add_server_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Copy."""
    source, target = remote.guest_path(arguments.source), remote.guest_path(arguments.target)
    if (source is None) == (target is None):
        raise UsageError(
            "either FROM or TO must be a path in a sandbox (ID:PATH), the other a path on this "
            "machine (write ./a:b for a file name with a colon)"
        )
    url = remote.server_url(arguments)
    with options.failures():
        try:
            if target is not None:
                with remote.attached(url, target.sandbox) as sandbox:
                    _upload(sandbox, Path(arguments.source), target.path)
            elif source is not None:
                with remote.attached(url, source.sandbox) as sandbox:
                    _download(sandbox, source.path, Path(arguments.target))
        except OSError as error:
            raise CliError(f"{error.filename or 'this machine'}: {error.strerror}") from None
    return 0


def _upload(sandbox: Sandbox, source: Path, target: str) -> None:
    files = sandbox.files
    if target.endswith("/") or (files.exists(target) and files.stat(target).type == "dir"):
        target = posixpath.join(target, source.absolute().name)
    files.upload(source, target)


def _download(sandbox: Sandbox, source: str, target: Path) -> None:
    name = posixpath.basename(source.rstrip("/"))
    if target.is_dir() and name not in ("", ".", ".."):
        target = target / name
    options.report_left_out(sandbox.files.download(source, target))
