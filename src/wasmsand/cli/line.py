"""The command `wasm-sandbox`, also available as `wasmsand line`: its options and exit status.

Rules: the options are those of the protocol's specification, so it has its own parser.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wasmsand import __version__

if TYPE_CHECKING:
    from wasmsand.sdk.options import Mode

_DESCRIPTION: Final = """\
Serve one sandbox to another program. Each request is a line of JSON on standard input, and each
answer a line of JSON on standard output."""

_EXAMPLES: Final = """\
requests:
  {"type":"shell","command":"echo 'Hello'","id":"1","time_limit_ms":1000}
  {"type":"write_file","path":"/tmp/test","content":"data","id":"2"}
  {"type":"read_file","path":"/tmp/test","id":"3"}
  {"type":"reset","id":"4"}
  {"type":"status","id":"5"}
"""

_MEBIBYTE: Final = 1024 * 1024
_USAGE_STATUS: Final = 2
_FAILURE_STATUS: Final = 1
_PEER_GONE_STATUS: Final = 141
"""128 + SIGPIPE, as a shell reports it."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `line`, so that `--help` lists it."""
    subparsers.add_parser(
        "line", help="serve one sandbox with JSON lines; the same as wasm-sandbox", add_help=False
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="wasm-sandbox",
        usage="wasm-sandbox [OPTIONS]",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    options = parser.add_argument_group("Options")
    options.add_argument(
        "--memory-limit",
        metavar="<MB>",
        type=_megabytes,
        default=64,
        help="Maximum memory limit in megabytes (default: 64)",
    )
    options.add_argument(
        "--disk-image",
        metavar="<PATH>",
        type=Path,
        help="Path to the disk image file (required for v86 mode). The sandbox starts with the "
        "files of the image, and changes are written to the image at the end; a missing image is "
        "created",
    )
    options.add_argument(
        "--mode",
        metavar="<MODE>",
        choices=("simple", "v86"),
        default="simple",
        help='Sandbox mode: "simple" or "v86" (default: "simple")',
    )
    options.add_argument("--help", action="help", help="Print help information")
    options.add_argument(
        "--version",
        action="version",
        version=f"wasm-sandbox {__version__}",
        help="Print version information",
    )
    arguments = parser.parse_args(argv)
    if arguments.mode == "v86" and arguments.disk_image is None:
        parser.error("--mode v86 needs --disk-image <PATH>")
    return _serve(arguments.memory_limit * _MEBIBYTE, arguments.disk_image, arguments.mode)


def _serve(memory_limit_bytes: int, disk_image: Path | None, mode: Mode) -> int:
    from wasmsand.line.disk import Disk, DiskError
    from wasmsand.line.sandbox import LineSandbox
    from wasmsand.line.server import LineServer
    from wasmsand.sdk.errors import ImageMissingError, SandboxError
    from wasmsand.sdk.options import SandboxOptions
    from wasmsand.wire.channel import PeerGone, Terminated, claim_stdio, ended_by_signals

    try:
        channel = claim_stdio()
    except OSError as error:
        return _fail(f"standard input or output: {error.strerror}")
    status = 0
    try:
        with ended_by_signals(), channel.watched():
            disk = None if disk_image is None else Disk(disk_image)
            options = SandboxOptions(memory_limit_bytes=memory_limit_bytes)
            sandbox = LineSandbox(options, disk, mode)
            try:
                LineServer(channel, sandbox).serve()
            except PeerGone:
                status = _PEER_GONE_STATUS
            except Terminated as ending:
                status = _PEER_GONE_STATUS if channel.gone else ending.exit_status
            finally:
                channel.unwatch()
                sandbox.close()
    except Terminated as ending:  # during start-up or shutdown
        return ending.exit_status
    except ImageMissingError as error:
        return _fail(str(error), _USAGE_STATUS)
    except (DiskError, SandboxError) as error:
        return _fail(str(error))
    except ValueError as error:  # a limit that the machine of v86 mode cannot hold
        return _fail(str(error), _USAGE_STATUS)
    return status


def _fail(message: str, status: int = _FAILURE_STATUS) -> int:
    print(f"wasm-sandbox: {message}", file=sys.stderr)
    return status


def _megabytes(word: str) -> int:
    if not (word.isascii() and word.isdecimal()) or not 0 < int(word) < 1 << 32:
        raise argparse.ArgumentTypeError(f"{word!r} is not a positive number of megabytes")
    return int(word)
