"""Options that `run` and `shell` share, and what they make of them.

Rules: a host file is read here and nowhere else in the command line, and only when the
user named it; the directory of tools is the machine's to read.
"""

from __future__ import annotations

import argparse
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wasmsand.cli import values
from wasmsand.cli.failure import Failure
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.sdk.environment import command_environment
from wasmsand.sdk.options import HOME

if TYPE_CHECKING:
    from wasmsand.machine import Machine


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A host file to copy into the sandbox before it starts."""

    host: Path
    guest: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--env`, `--cwd`, `--file` and `--wasm-dir`."""
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
        type=_absolute,
        help="working directory in the sandbox, made if missing (default: %(default)s)",
    )
    parser.add_argument(
        "--file",
        metavar="HOST[:GUEST]",
        type=_copied_file,
        action="append",
        default=[],
        help="copy a file of this machine into the sandbox; GUEST is relative to the "
        "working directory and defaults to the file's name (repeatable)",
    )
    parser.add_argument(
        "--wasm-dir",
        metavar="DIR",
        type=Path,
        default=None,
        help="make every *.wasm file of this directory a command, named by its file",
    )


def environment(arguments: argparse.Namespace, terminal: str | None = None) -> dict[str, str]:
    """The guest's environment."""
    extra = {} if terminal is None else {"TERM": terminal}
    return command_environment(extra, dict(arguments.env), cwd=arguments.cwd)


@contextmanager
def machine(arguments: argparse.Namespace, limits: Limits) -> Iterator[Machine]:
    """A machine with its working directory and files in place, closed at the end."""
    from wasmsand.machine import ImageMissing, Machine, MachineOptions, ToolRejected

    directory = arguments.wasm_dir.absolute() if arguments.wasm_dir is not None else None
    try:
        machine = Machine(MachineOptions(limits=limits, wasm_dir=directory))
    except ImageMissing as missing:
        raise Failure(str(missing)) from None
    except ToolRejected as rejected:
        raise Failure(f"--wasm-dir: {rejected}") from None
    try:
        _prepare(machine, arguments)
        yield machine
    finally:
        machine.close()


def _prepare(machine: Machine, arguments: argparse.Namespace) -> None:
    try:
        machine.files.mkdir(arguments.cwd)
    except KernelError as error:
        raise Failure(f"--cwd {arguments.cwd}: {error}") from None
    for file in arguments.file:
        try:
            data = file.host.read_bytes()
            mode = 0o755 if file.host.stat().st_mode & 0o100 else 0o644
            machine.files.write(posixpath.join(arguments.cwd, file.guest), data, mode=mode)
        except OSError as error:
            raise Failure(f"--file {file.host}: {error.strerror}") from None
        except KernelError as error:
            raise Failure(f"--file {file.host}: {error}") from None


def _absolute(word: str) -> str:
    if not word.startswith("/"):
        raise argparse.ArgumentTypeError(f"{word!r} is not an absolute path")
    return word


def _copied_file(word: str) -> CopiedFile:
    host, _, guest = word.partition(":")
    if not host:
        raise argparse.ArgumentTypeError(f"{word!r} is not HOST or HOST:GUEST")
    return CopiedFile(Path(host), guest or Path(host).name)
