"""How the command line uses sandboxes of a server: `--connect` and `ID:PATH`.

Rules: a sandbox that the command creates ends with the command, unless the user keeps it; an
existing sandbox keeps running.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wasmsand.cli import options
from wasmsand.cli.failure import UsageError

if TYPE_CHECKING:
    from wasmsand.http.client_copies import SandboxCopies
    from wasmsand.sdk.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class GuestPath:
    """`ID:PATH`: a path in a sandbox of the server."""

    sandbox: str
    path: str


def guest_path(word: str) -> GuestPath | None:
    """Parse `ID:PATH`; None if `word` is a path on this machine, such as `./a:b`."""
    identity, colon, path = word.partition(":")
    if not colon or not identity or "/" in identity:
        return None
    return GuestPath(identity, path or ".")


def server_url(arguments: argparse.Namespace) -> str:
    """The server that the user named."""
    if arguments.connect is None:
        raise UsageError(
            "this command works with sandboxes of a server (see `wasmsand serve --help`): give its "
            f"address with --connect or in the environment variable {options.URL_VARIABLE}"
        )
    return str(arguments.connect)


@contextmanager
def attached(url: str, identity: str) -> Iterator[Sandbox]:
    """An existing sandbox of the server, which keeps running afterwards."""
    from wasmsand.sdk.sandbox import Sandbox

    with Sandbox.connect(url, id=identity, token=options.server_token()) as sandbox:
        yield sandbox


@contextmanager
def copying(arguments: argparse.Namespace) -> Iterator[SandboxCopies]:
    """The requests that copy the sandbox that the user named."""
    from wasmsand.http.client_copies import SandboxCopies

    url = server_url(arguments)
    copies = SandboxCopies(url, options.server_token(), arguments.sandbox)
    try:
        yield copies
    finally:
        copies.close()
