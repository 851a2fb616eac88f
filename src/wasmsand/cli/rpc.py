"""`wasmsand rpc`: serves one sandbox to a program in any language, with JSON-RPC on standard
input and output."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from wasmsand.cli import values
from wasmsand.cli.failure import CliError

HELP = "serve one sandbox with JSON-RPC 2.0 on standard input and output"
DESCRIPTION = (
    "Serve one sandbox with JSON-RPC 2.0: each request is a line on standard "
    "input, each response a line on standard output. The command ends after `kill`, or when "
    "standard input ends."
)
EXAMPLES = """\
example (`wasmsand rpc`, then one request per line):
  {"jsonrpc":"2.0","id":1,"method":"create"}
  {"jsonrpc":"2.0","id":2,"method":"run","params":{"command":"echo hello"}}
  {"jsonrpc":"2.0","id":3,"method":"kill"}

The reference is docs/protocols/json-rpc.md.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument(
        "--max-line-bytes",
        metavar="SIZE",
        type=values.byte_count,
        default=None,
        help="refuse longer requests (default: 384M, enough for a file of 256M)",
    )
    parser.add_argument(
        "--confine",
        action="store_true",
        help="give up access to everything that the sandbox does not need, as far as the operating "
        "system supports it: files, the network, other processes, memory beyond the sandbox's "
        "limits",
    )
    parser.add_argument(
        "--readable",
        metavar="PATH",
        action="append",
        default=[],
        help="with --confine: a file or directory that stays readable, for example for wasmDir",
    )
    parser.add_argument(
        "--network",
        action="store_true",
        help="with --confine: keep the right to make connections, for `network` of `create`",
    )
    parser.add_argument(
        "--parent", metavar="PID", type=_positive, default=None, help=argparse.SUPPRESS
    )
    parser.add_argument(
        "--template", metavar="FD", type=_positive, default=None, help=argparse.SUPPRESS
    )
    parser.add_argument(
        "--descriptors", metavar="FD", type=_positive, default=None, help=argparse.SUPPRESS
    )


def execute(arguments: argparse.Namespace) -> int:
    """Serve until `kill`, the end of input or a signal."""
    if arguments.template is not None:
        return _be_template(arguments.template, arguments.parent)
    from wasmsand.cli.confining import confine_server
    from wasmsand.confinement import Barriers, ParentGone
    from wasmsand.rpc.server import serve_stdio
    from wasmsand.wire.channel import leave
    from wasmsand.wire.lines import MAX_LINE_BYTES

    try:
        barriers = Barriers()
        if arguments.confine:
            barriers = confine_server(
                arguments.readable, arguments.parent, network=arguments.network
            )
    except OSError as error:
        raise CliError(f"--confine: {error.strerror}") from None
    except ParentGone:
        raise CliError("--parent: the process that started this one has ended") from None
    try:
        status = serve_stdio(
            arguments.max_line_bytes or MAX_LINE_BYTES, barriers, arguments.descriptors
        )
    except OSError as error:
        raise CliError(f"standard input or output: {error.strerror}") from None
    leave(status)


def _be_template(descriptor: int, parent: int) -> int:
    """See `wasmsand.rpc.template`."""
    # What the process of a sandbox needs.
    import wasmsand.cli.confining
    import wasmsand.rpc.server
    import wasmsand.wire.channel  # noqa: F401
    from wasmsand.confinement import ParentGone
    from wasmsand.confinement.confining import end_with_parent
    from wasmsand.engine.choosing import import_engine
    from wasmsand.machine import ImageMissing, base_image
    from wasmsand.rpc.template import serve_template, threads_are_absent

    try:
        end_with_parent(parent)
        import_engine()
        base_image()
    except (ParentGone, ImageMissing):
        return 1
    if not threads_are_absent():
        return 1
    parser = argparse.ArgumentParser()
    add_options(parser)

    def begin(words: Sequence[str]) -> int:
        return execute(parser.parse_args([*words, "--parent", str(os.getppid())]))

    return serve_template(descriptor, begin)


def _positive(word: str) -> int:
    if not word.isdecimal() or int(word) == 0:
        raise argparse.ArgumentTypeError(f"{word!r} is not a positive number")
    return int(word)
