"""How the command line uses files of saved sandboxes: `--load` and `--save`.

Rules: the options of the command line apply to a loaded sandbox, except for its variables and its
working directory. The sandbox is saved when the command has ended, whatever its exit status.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from wasmsand.cli.failure import UsageError

if TYPE_CHECKING:
    from wasmsand.sdk.options import SandboxOptions
    from wasmsand.sdk.sandbox import Sandbox


def add_save_option(parser: argparse.ArgumentParser) -> None:
    """Add `--save`."""
    parser.add_argument(
        "--save",
        metavar="FILE",
        type=Path,
        default=None,
        help="save the sandbox to this file of this machine at the end",
    )


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add `--load` and `--save`."""
    parser.add_argument(
        "--load",
        metavar="FILE",
        type=Path,
        default=None,
        help="begin with the sandbox that --save has saved in this file, not with a new one",
    )
    add_save_option(parser)


@contextmanager
def local_sandbox(arguments: argparse.Namespace, made_from: SandboxOptions) -> Iterator[Sandbox]:
    """A sandbox in this process, new or loaded; it is saved if the block ends without an error."""
    from wasmsand.cli.compile_notice import show_compilations
    from wasmsand.sdk.local import LocalBackend
    from wasmsand.sdk.opening import open_backend
    from wasmsand.sdk.sandbox import Sandbox

    show_compilations()
    if arguments.load is not None:
        if arguments.mode != "simple":
            raise UsageError("--load is for sandboxes of --mode simple")
        sandbox = Sandbox.load(arguments.load, options=made_from)
    else:
        is_v86 = arguments.mode == "v86"
        backend = open_backend(made_from, mode="v86") if is_v86 else LocalBackend(made_from)
        sandbox = Sandbox.from_backend(backend, made_from)
    with sandbox:
        yield sandbox
        save(arguments, sandbox)


def save(arguments: argparse.Namespace, sandbox: Sandbox) -> None:
    """Save the sandbox if the user wants it."""
    if arguments.save is not None:
        sandbox.save(arguments.save, running="drop")


def check_not_loaded(arguments: argparse.Namespace) -> None:
    """Raises `UsageError` if a sandbox of a server shall be loaded."""
    if arguments.load is not None:
        raise UsageError("--load is for sandboxes of this machine, not of a server")
