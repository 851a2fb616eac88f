"""`wasmsand mcp`: sandboxes for clients of the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from wasmsand import __version__
from wasmsand.cli import options
from wasmsand.cli.failure import CliError
from wasmsand.cli.values import address, positive_integer, seconds

TOKEN_VARIABLE = "WASMSAND_MCP_TOKEN"

_EXAMPLES = f"""\
a client starts it and talks to its standard input and output; most are configured so:
  {{"mcpServers": {{"sandbox": {{"command": "wasmsand", "args": ["mcp"]}}}}}}

or it serves many clients, with a sandbox for each session:
  wasmsand mcp --http 127.0.0.1:8765
  {TOKEN_VARIABLE}=$TOKEN wasmsand mcp --http 0.0.0.0:8765    for those who know the token
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `mcp`."""
    parser = subparsers.add_parser(
        "mcp",
        help="serve sandboxes to clients of the Model Context Protocol",
        description="Serve tools for commands and files of a sandbox by the Model Context "
        "Protocol: one client on standard input and output, or many by streamable HTTP.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        type=address,
        default=None,
        help="serve by streamable HTTP at /mcp; an address that other machines can reach needs "
        f"a token in the environment variable {TOKEN_VARIABLE}",
    )
    parser.add_argument(
        "--idle-timeout",
        metavar="SECONDS",
        type=seconds,
        default=1800.0,
        help="HTTP: end a session that nobody used for this time (default: 1800)",
    )
    parser.add_argument(
        "--max-sessions",
        metavar="N",
        type=positive_integer,
        default=64,
        help="HTTP: sessions at once (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=30.0,
        help="end a command after this time, unless the call gives another (default: 30)",
    )
    parser.add_argument(
        "--output-limit",
        metavar="CHARACTERS",
        type=positive_integer,
        default=30_000,
        help="give a model at most this much of one output; the whole is saved in the sandbox "
        "(default: %(default)s)",
    )
    options.add_sandbox_options(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Serve until the end."""
    from wasmsand.sdk.errors import SandboxError
    from wasmsand.sdk.opening import open_backend
    from wasmsand.sdk.sandbox import Sandbox
    from wasmsand.tools import SandboxTools

    try:
        from wasmsand.mcp.sessions import Sessions
        from wasmsand.mcp.stdio import serve_stdio
        from wasmsand.mcp.streamable_http import HttpOptions, UnsafeOptions, serve_http
    except ModuleNotFoundError as missing:
        raise CliError(
            f"the package {missing.name} is missing: pip install 'wasmsand[mcp]'"
        ) from None
    http = None
    if arguments.http is not None:
        host, port = arguments.http
        try:
            http = HttpOptions(
                host=host,
                port=port,
                token=os.environ.get(TOKEN_VARIABLE) or None,
                idle_seconds=arguments.idle_timeout,
                max_sessions=arguments.max_sessions,
            )
        except UnsafeOptions as error:
            raise CliError(f"--http: {error} (the variable {TOKEN_VARIABLE})") from None
    made_from = replace(options.sandbox_options(arguments), timeout_ms=arguments.timeout * 1000)

    def create() -> Sandbox:
        return Sandbox.from_backend(open_backend(made_from), made_from)

    try:
        # What is wrong with the options or the installation is better said now.
        with create() as sandbox:
            SandboxTools(sandbox, output_limit=arguments.output_limit)
    except (SandboxError, ValueError) as error:
        raise CliError(str(error)) from None
    sessions = Sessions(
        create,
        output_limit=arguments.output_limit,
        max_sessions=1 if http is None else http.max_sessions,
    )
    if http is None:
        serve_stdio(sessions, __version__)
        return 0
    try:
        serve_http(sessions, __version__, http)
    except OSError as error:
        raise CliError(f"--http {http.host}:{http.port}: {error.strerror}") from None
    return 0
