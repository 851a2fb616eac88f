"""`wasmsand serve`: sandboxes for programs in any language, over HTTP."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from wasmsand import __version__
from wasmsand.cli.failure import CliError
from wasmsand.sdk.options import Isolation

if TYPE_CHECKING:
    from wasmsand.http.settings import Settings

_EXAMPLES = """\
examples:
  wasmsand serve                                on http://127.0.0.1:8750, for this machine only
  WASMSAND_TOKENS=me:$TOKEN wasmsand serve --host 0.0.0.0
  wasmsand serve --tokens-file tokens.toml      several tokens, each with quotas:

    [[token]]
    name = "alice"
    token = "at least sixteen characters"
    max_sandboxes = 10                # and max_memory_bytes, max_running_commands,
    requests_per_second = 20          # requests_per_second
    trusted = true                    # its sandboxes run in the server's own process
    all_metrics = true                # /metrics shows it the whole server

  curl -s http://127.0.0.1:8750/openapi.json    every request and answer
  curl -s -X POST http://127.0.0.1:8750/v1/sandboxes

From Python: Sandbox.connect("http://127.0.0.1:8750", token=...)
The reference is docs/protocols/http.md.
"""

_OPTIONS = (
    ("--max-sandboxes", int, "sandboxes of all tokens together"),
    ("--idle-seconds", float, "kill a sandbox that nobody has used for so long"),
    ("--lifetime-seconds", float, "kill a sandbox at this age"),
    ("--max-running-commands", int, "commands at work at the same time"),
    ("--max-waiting-commands", int, "commands that wait for their turn; others are refused"),
    ("--max-command-seconds", float, "longest timeout of one command"),
    ("--max-connections", int, "connections at the same time"),
    ("--keep-alive-seconds", float, "how long a connection may be idle"),
    ("--header-seconds", float, "for the header of a request; idle time without a token"),
    ("--max-json-bytes", int, "largest JSON body"),
    ("--max-upload-bytes", int, "largest file that one request can write"),
    ("--max-buffered-bytes", int, "bodies being received, of all requests together"),
    ("--spare-processes", int, "processes kept ready for the next sandbox with isolation"),
    ("--grace-seconds", float, "after SIGTERM: how long running requests may take"),
)
"""Options that are fields of `Settings`, which has the defaults."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `serve`."""
    parser = subparsers.add_parser(
        "serve",
        help="serve sandboxes over HTTP",
        description="Serve sandboxes over HTTP: REST, streams of events, an OpenAPI document at "
        "/openapi.json, numbers for Prometheus at /metrics. Without tokens it listens on loopback "
        "addresses only. SIGTERM lets running requests finish.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, help="port; 0 takes a free one (default: 8750)")
    parser.add_argument(
        "--tokens-file",
        metavar="FILE",
        type=Path,
        help="TOML file of tokens and their quotas; also: WASMSAND_TOKENS=NAME:TOKEN,...",
    )
    for option, kind, help_text in _OPTIONS:
        parser.add_argument(
            option, metavar="N", type=_whole if kind is int else _seconds, help=help_text
        )
    parser.add_argument(
        "--isolation",
        choices=get_args(Isolation),
        help="run every sandbox in a process of its own, or in the server's (default: a process "
        "for tokens that are not trusted; the server's for others, and without tokens)",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="log sandboxes that end, and warnings of the server"
    )
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    try:
        from wasmsand.engine.freed_memory import c_library, have_few_arenas
        from wasmsand.http.serve import CannotServe, serve
        from wasmsand.http.tokens import TokensRejected
    except ImportError as missing:
        raise CliError(f"{missing}: install it with `pip install 'wasmsand[serve]'`") from None
    have_few_arenas(c_library())
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if arguments.verbose else logging.ERROR,
        format="%(asctime)s %(name)s %(levelname)s: %(message)s",
    )
    try:
        serve(_settings(arguments), lambda url: print(f"wasmsand: serving {url}", file=sys.stderr))
    except (CannotServe, TokensRejected) as error:
        raise CliError(str(error)) from None
    return 0


def _settings(arguments: argparse.Namespace) -> Settings:
    from wasmsand.http.settings import Settings
    from wasmsand.http.tokens import read_token_file, read_token_variable

    tokens = read_token_variable(os.environ)
    if arguments.tokens_file is not None:
        tokens += read_token_file(arguments.tokens_file)
    names = [
        "host",
        "port",
        "isolation",
        *(option[2:].replace("-", "_") for option, _, _ in _OPTIONS),
    ]
    given = {name: getattr(arguments, name) for name in names}
    chosen = {name: value for name, value in given.items() if value is not None}
    return Settings(version=__version__, tokens=tokens, **chosen)


def _port(word: str) -> int:
    if not word.isdecimal() or int(word) > 65535:
        raise argparse.ArgumentTypeError(f"{word!r} is not a port")
    return int(word)


def _whole(word: str) -> int:
    if not word.isdecimal() or not 0 < int(word) < 2**53:
        raise argparse.ArgumentTypeError(f"{word!r} is not a positive number")
    return int(word)


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{word!r} is not a positive number of seconds")
    return seconds
