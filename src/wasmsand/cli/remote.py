"""Sandboxes of a server, as the command line uses them: `--connect` and `ID:PATH`.

Rules: one that the command line made ends with it unless the user keeps it; one that it
found is left as it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wasmsand.cli import options
from wasmsand.cli.failure import CliError

if TYPE_CHECKING:
    from wasmsand.sdk.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class GuestPath:
    """`ID:PATH`: a path of one of the server's sandboxes."""

    sandbox: str
    path: str


def guest_path(word: str) -> GuestPath | None:
    """`word` as `ID:PATH`; None if it is a path of this machine, as `./a:b` is."""
    identity, colon, path = word.partition(":")
    if not colon or not identity or "/" in identity:
        return None
    return GuestPath(identity, path or ".")


def server_url(arguments: argparse.Namespace) -> str:
    """The server that the user named."""
    if arguments.connect is None:
        raise CliError(
            "this is about the sandboxes of a server (see `wasmsand serve --help`): give its "
            f"address by --connect or in the variable {options.URL_VARIABLE}"
        )
    return str(arguments.connect)


@contextmanager
def attached(url: str, identity: str) -> Iterator[Sandbox]:
    """A sandbox that the server has, and goes on having."""
    from wasmsand.http.backend import attach_http_backend
    from wasmsand.sdk.sandbox import Sandbox

    backend = attach_http_backend(url, options.server_token(), identity)
    try:
        yield Sandbox.from_backend(backend)
    finally:
        backend.leave()
