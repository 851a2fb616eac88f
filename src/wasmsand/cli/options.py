"""Options that several subcommands share, and the sandbox that they ask for.

Rules: a host file is read or written only because the user named it; nothing of the host's
own environment enters a sandbox. A sandbox of this process ends with the command; one of a
server ends too, unless the user keeps it.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wasmsand.cli import values
from wasmsand.cli.failure import CliError
from wasmsand.kernel.limits import Limits
from wasmsand.sdk.errors import FileError, SandboxError
from wasmsand.sdk.options import HOME, SandboxOptions

if TYPE_CHECKING:
    from wasmsand.sdk.sandbox import Sandbox

URL_VARIABLE = "WASMSAND_URL"
TOKEN_VARIABLE = "WASMSAND_TOKEN"


@dataclass(frozen=True, slots=True)
class Copy:
    """A file or directory to copy, and to where."""

    source: str
    target: str


def add_sandbox_options(parser: argparse.ArgumentParser) -> None:
    """Add what a sandbox is made from: `--env`, `--cwd`, `--wasm-dir` and limits."""
    limits = Limits()
    parser.add_argument(
        "--env",
        metavar="NAME=VALUE",
        type=values.variable,
        action="append",
        default=[],
        help="set an environment variable (repeatable)",
    )
    parser.add_argument(
        "--cwd",
        metavar="DIR",
        default=HOME,
        type=values.absolute_path,
        help="working directory in the sandbox, made if missing (default: %(default)s)",
    )
    parser.add_argument(
        "--wasm-dir",
        metavar="DIR",
        type=Path,
        default=None,
        help="make every *.wasm file of this directory a command, named by its file",
    )
    parser.add_argument(
        "--fs-limit",
        metavar="BYTES",
        type=values.positive_integer,
        default=limits.fs_limit_bytes,
        help="size of all files that may be written (default: %(default)s)",
    )
    parser.add_argument(
        "--memory-limit",
        metavar="BYTES",
        type=values.positive_integer,
        default=limits.memory_limit_bytes,
        help="memory of all processes together (default: %(default)s)",
    )


def add_copy_options(parser: argparse.ArgumentParser) -> None:
    """Add `--file` and `--out`."""
    parser.add_argument(
        "--file",
        metavar="HOST[:GUEST]",
        type=_copy_in,
        action="append",
        default=[],
        help="copy a file or directory of this machine into the sandbox first; GUEST is "
        "relative to the working directory and defaults to the name (repeatable)",
    )
    parser.add_argument(
        "--out",
        metavar="GUEST[:HOST]",
        type=_copy_out,
        action="append",
        default=[],
        help="copy a file or directory of the sandbox to this machine at the end; HOST "
        "defaults to the name, in the current directory (repeatable)",
    )


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Add `--connect`."""
    parser.add_argument(
        "--connect",
        metavar="URL",
        default=os.environ.get(URL_VARIABLE) or None,
        help="use a sandbox of this server (see `wasmsand serve`) instead of one in this "
        f"process; default: ${URL_VARIABLE}. The server's token is taken from ${TOKEN_VARIABLE}",
    )


def sandbox_options(arguments: argparse.Namespace) -> SandboxOptions:
    """What `add_sandbox_options` was told; no timeout."""
    try:
        return SandboxOptions(
            timeout_ms=None,
            fs_limit_bytes=arguments.fs_limit,
            memory_limit_bytes=arguments.memory_limit,
            env=dict(arguments.env),
            cwd=arguments.cwd,
            wasm_dir=None if arguments.wasm_dir is None else str(arguments.wasm_dir.absolute()),
        )
    except ValueError as error:
        raise CliError(str(error)) from None


def server_token() -> str | None:
    """The token for a server, from the environment: words of a command line are no secrets."""
    return os.environ.get(TOKEN_VARIABLE) or None


@contextmanager
def failures() -> Iterator[None]:
    """What the sandbox or its server says is one line for the user."""
    try:
        yield
    except (SandboxError, ValueError) as error:
        raise CliError(str(error)) from None


def copy_in(sandbox: Sandbox, copies: list[Copy]) -> None:
    """Do what `--file` says."""
    for copy in copies:
        try:
            sandbox.files.upload(copy.source, copy.target)
        except OSError as error:
            raise CliError(f"--file {copy.source}: {error.strerror or error}") from None
        except (FileError, ValueError) as error:
            raise CliError(f"--file {copy.source}: {error}") from None


def copy_out(sandbox: Sandbox, copies: list[Copy]) -> None:
    """Do what `--out` says."""
    for copy in copies:
        try:
            left_out = sandbox.files.download(copy.source, copy.target)
        except OSError as error:
            raise CliError(
                f"--out {copy.source}: {copy.target}: {error.strerror or error}"
            ) from None
        except (FileError, ValueError) as error:
            raise CliError(f"--out {copy.source}: {error}") from None
        report_left_out(left_out)


def report_left_out(names: list[str]) -> None:
    """Say what a copy to this machine left out."""
    for name in names:
        print(f"wasmsand: left out, as it is no file of its own: {name}", file=sys.stderr)


def _copy_in(word: str) -> Copy:
    host, _, guest = word.partition(":")
    name = Path(host).name
    if not host or not (guest or name):
        raise argparse.ArgumentTypeError(f"{word!r} is not HOST or HOST:GUEST")
    return Copy(host, guest or name)


def _copy_out(word: str) -> Copy:
    guest, _, host = word.partition(":")
    name = posixpath.basename(guest.rstrip("/"))
    if not guest or not (host or name) or name in (".", ".."):
        raise argparse.ArgumentTypeError(f"{word!r} is not GUEST or GUEST:HOST")
    return Copy(guest, host or name)
