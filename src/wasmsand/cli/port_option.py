"""`--port`: ports of this machine that lead to servers in the sandbox.

Rules: ports are opened before the command starts, so that one that is in use is an error at once;
the URL is printed when a program in the sandbox listens. Everything closes with the sandbox.
"""

from __future__ import annotations

import argparse
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wasmsand.cli.failure import CliError
from wasmsand.sdk.errors import SandboxError

if TYPE_CHECKING:
    from wasmsand.sdk.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class PortPair:
    """A port of the sandbox, and the one of this machine that leads to it; None: a free one."""

    host: int | None
    guest: int


def add_port_option(parser: argparse.ArgumentParser) -> None:
    """Add `--port`."""
    parser.add_argument(
        "--port",
        metavar="[HOST:]GUEST",
        type=_pair,
        action="append",
        default=[],
        help="let programs on this machine reach port GUEST of the sandbox at port HOST of "
        "127.0.0.1, or at a free port; the URL is printed to standard error when a program "
        "listens (repeatable)",
    )


def open_ports(sandbox: Sandbox, pairs: list[PortPair], *, newline: str = "\n") -> None:
    """Open the ports of `--port`. `newline` ends a line on the user's terminal."""
    for pair in pairs:
        try:
            url = sandbox.ports.url(pair.guest, host_port=pair.host)
        except SandboxError as error:
            raise CliError(f"--port {_text(pair)}: {error}") from None
        arguments = (sandbox, pair.guest, url, newline)
        threading.Thread(target=_announce, args=arguments, name="port", daemon=True).start()


def _announce(sandbox: Sandbox, port: int, url: str, newline: str) -> None:
    """Print the URL when a program listens."""
    try:
        sandbox.ports.wait(port, timeout_ms=None)
    except SandboxError:
        return  # the sandbox has ended
    sys.stderr.write(f"wasmsand: port {port} of the sandbox is at {url}{newline}")
    sys.stderr.flush()


def _text(pair: PortPair) -> str:
    return str(pair.guest) if pair.host is None else f"{pair.host}:{pair.guest}"


def _pair(word: str) -> PortPair:
    host, colon, guest = word.rpartition(":")
    if not _is_port(guest) or (colon and not _is_port(host)):
        raise argparse.ArgumentTypeError(
            f"{word!r} is not HOST:GUEST or GUEST, with ports from 1 to 65535"
        )
    return PortPair(int(host) if colon else None, int(guest))


def _is_port(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= 5 and 0 < int(word) < 65536
