"""`wasmsand serve`: serves sandboxes to programs in any language over HTTP."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from wasmsand import __version__
from wasmsand.cli.failure import CliError
from wasmsand.cli.logging_format import LogFormat, set_up_logging
from wasmsand.cli.options import add_network_options, network_of
from wasmsand.cli.values import byte_count, port_number
from wasmsand.sdk.options import Isolation

if TYPE_CHECKING:
    from wasmsand.http.settings import Settings

HELP = "serve sandboxes over HTTP"
DESCRIPTION = (
    "Serve sandboxes over HTTP: REST, streams of events, a reference for browsers at /docs, an "
    "OpenAPI document at /openapi.json, metrics for Prometheus at /metrics. Without tokens the "
    "server listens only on loopback addresses. After SIGTERM it lets running requests finish."
)
EXAMPLES = """\
examples:
  wasmsand serve                                on http://127.0.0.1:8750, for this machine only
  WASMSAND_TOKENS=me:$TOKEN wasmsand serve --host 0.0.0.0
  wasmsand serve --tokens-file tokens.toml      several tokens, each with its quotas:

    [[token]]
    name = "alice"
    token = "at least sixteen characters"
    max_sandboxes = 10                # also: max_memory_bytes, max_running_commands
    max_stored_bytes = 1000000000     # with --store; also: max_stored_sandboxes
    requests_per_second = 20          # also: sandbox_seconds_per_day
    trusted = true                    # its sandboxes run in the server's own process
    all_metrics = true                # /metrics shows this token the whole server
    network = ["*.wikipedia.org:443"] # what its sandboxes may reach at most

  wasmsand serve --playground                   with a web page for people
  wasmsand serve --store /var/lib/wasmsand      sandboxes survive the server

  http://127.0.0.1:8750/docs                    describes every request and response
  curl -s -X POST http://127.0.0.1:8750/v1/sandboxes

From Python: Sandbox.connect("http://127.0.0.1:8750", token=...)
The reference is docs/protocols/http.md.
"""

_OPTIONS = (
    ("--max-sandboxes", int, "maximum number of sandboxes, of all tokens together"),
    (
        "--host-memory",
        int,
        "refuse new sandboxes while the server's processes hold more than this of the host's "
        "memory; with --store, idle ones are put to disk first (default: no limit)",
    ),
    (
        "--max-load",
        float,
        "refuse new sandboxes while the host's load average per core is higher (default: no limit)",
    ),
    ("--max-snapshots", int, "maximum number of snapshots of one sandbox"),
    (
        "--idle-seconds",
        float,
        "kill a sandbox that has been idle for this time (default: 600; 30 days with --store)",
    ),
    (
        "--lifetime-seconds",
        float,
        "kill every sandbox after this time (default: 24 hours; 30 days with --store)",
    ),
    (
        "--idle-pause",
        float,
        "with --store: put a sandbox to disk that has been idle for this time; the next request "
        "brings it back (default: 300)",
    ),
    ("--max-stored-sandboxes", int, "with --store: maximum number of sandboxes, also paused ones"),
    ("--max-stored-bytes", int, "with --store: maximum size of all files there"),
    ("--max-running-commands", int, "maximum number of running commands"),
    ("--max-waiting-commands", int, "maximum number of commands that wait; more are refused"),
    ("--max-command-seconds", float, "longest timeout of a command"),
    ("--max-connections", int, "maximum number of connections"),
    ("--max-port-connections", int, "maximum number of connections to servers in sandboxes"),
    (
        "--port-idle-seconds",
        float,
        "close a connection to a server in a sandbox if no byte moves for this time",
    ),
    ("--max-terminals", int, "maximum number of open terminals"),
    ("--keep-alive-seconds", float, "close a connection that has been idle for this time"),
    (
        "--header-seconds",
        float,
        "time for the header of a request; also idle time of connections without a token",
    ),
    ("--max-json-bytes", int, "maximum size of a JSON body"),
    ("--max-upload-bytes", int, "maximum size of a file that one request writes"),
    (
        "--max-buffered-bytes",
        int,
        "maximum size of the bodies being received, of all requests together",
    ),
    ("--spare-processes", int, "processes kept ready for new isolated sandboxes"),
    ("--grace-seconds", float, "after SIGTERM: time for running requests to finish"),
)
"""Options that set fields of `Settings`, which has the defaults."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=port_number, help="port to listen on; 0 chooses a free port (default: 8750)"
    )
    parser.add_argument(
        "--tokens-file",
        metavar="FILE",
        type=Path,
        help="TOML file with tokens and their quotas; the environment variable "
        "WASMSAND_TOKENS=NAME:TOKEN,... adds tokens with default quotas",
    )
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="keep sandboxes in this directory: they survive a restart of the server, and idle "
        "ones are put to disk",
    )
    for option, kind, help_text in _OPTIONS:
        type_of: Callable[[str], object] = _whole if kind is int else _seconds
        metavar = "SECONDS" if option.endswith(("-seconds", "-pause")) else "N"
        if option.endswith(("-bytes", "-memory")):
            type_of, metavar = byte_count, "SIZE"
        parser.add_argument(option, metavar=metavar, type=type_of, help=help_text)
    parser.add_argument(
        "--isolation",
        choices=get_args(Isolation),
        help="run every sandbox in a separate process, or in the server's process (default: a "
        "separate process for untrusted tokens; the server's process for trusted tokens, and if "
        "there are no tokens)",
    )
    parser.add_argument(
        "--package",
        "-p",
        metavar="NAME",
        action="append",
        dest="packages",
        help="Python package of every sandbox whose client does not choose its packages "
        "(repeatable)",
    )
    parser.add_argument(
        "--index-installs",
        action="store_true",
        default=None,
        help="let clients install Python packages from the package index, with this machine's "
        "settings of pip; otherwise only packages of the image",
    )
    parser.add_argument(
        "--playground",
        action="store_true",
        help="serve a page with a terminal, files and Python at /playground/; without tokens, the "
        "server makes one and prints the page's address with it",
    )
    add_network_options(
        parser,
        "host that clients may allow their sandboxes to reach (see docs/guides/network.md), unless "
        "the token has its own list",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=_whole,
        help="worker processes, behind a front process; 1 is one process for everything (default: "
        "the number of cores)",
    )
    parser.add_argument(
        "--tenant-workers",
        action="store_true",
        default=None,
        help="give each token workers of its own, as many as --workers says (default: 1)",
    )
    parser.add_argument(
        "--otel",
        action="store_true",
        default=None,
        help="export traces and metrics by OpenTelemetry, as its variables OTEL_... say",
    )
    parser.add_argument(
        "--end-with-stdin",
        action="store_true",
        help="end, as after SIGTERM, when standard input is closed: so a server does not outlive "
        "the program that started it with a pipe",
    )
    parser.add_argument(
        "--log-format", choices=get_args(LogFormat), help="the form of the log (default: text)"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="log when sandboxes end, and warnings of the server"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Serve until a signal arrives."""
    try:
        from wasmsand.engine.freed_memory import c_library, have_few_arenas
        from wasmsand.http.serve import CannotServe, serve
        from wasmsand.http.telemetry import TelemetryMissing
        from wasmsand.http.tokens import TokensRejected
        from wasmsand.serving.shutdown import end_with
    except ImportError as missing:
        raise CliError(f"{missing}: install it with `pip install 'wasmsand[serve]'`") from None
    have_few_arenas(c_library())
    set_up_logging(arguments.log_format or "text", verbose=arguments.verbose)
    try:
        settings, fragment = _with_playground(_settings(arguments), arguments.playground)

        def listening(url: str) -> None:
            print(f"wasmsand: serving {url}", file=sys.stderr)
            if settings.playground is not None:
                print(f"wasmsand: playground at {url}/playground/{fragment}", file=sys.stderr)

        if arguments.end_with_stdin:
            end_with(sys.stdin.fileno())
        serve(settings, listening)
    except (CannotServe, TelemetryMissing, TokensRejected) as error:
        raise CliError(str(error)) from None
    return 0


def _settings(arguments: argparse.Namespace) -> Settings:
    from wasmsand.http.settings import Settings
    from wasmsand.http.tokens import read_token_file, read_token_variable

    tokens = read_token_variable(os.environ)
    if arguments.tokens_file is not None:
        tokens += read_token_file(arguments.tokens_file)
        chosen_file = str(arguments.tokens_file)
    else:
        chosen_file = None
    names = [
        "host",
        "port",
        "isolation",
        "store",
        "index_installs",
        "tenant_workers",
        "log_format",
        "otel",
        "verbose",
        *(option[2:].replace("-", "_") for option, _, _ in _OPTIONS),
    ]
    given = {name: getattr(arguments, name) for name in names}
    chosen = {name: value for name, value in given.items() if value is not None}
    chosen["workers"] = _workers(arguments)
    packages = _packages(arguments.packages or [])
    network = network_of(arguments)
    return Settings(
        version=__version__,
        tokens=tokens,
        tokens_file=chosen_file,
        packages=packages,
        network=network,
        **chosen,
    )


def _with_playground(settings: Settings, wanted: bool) -> tuple[Settings, str]:
    """The settings with the page, and the fragment of its address. Other web pages could use a
    server without tokens, so it gets one. Browsers do not send fragments to servers."""
    from wasmsand.cli.playground import front_end
    from wasmsand.http.tokens import Token

    if not wanted:
        return settings, ""
    settings = replace(settings, playground=str(front_end()))
    if settings.tokens:
        return settings, ""
    text = secrets.token_urlsafe(32)
    return replace(settings, tokens=(Token.operator("playground", text),)), f"#token={text}"


def _workers(arguments: argparse.Namespace) -> int:
    """The number of workers that the options want."""
    if os.name != "posix" and ((arguments.workers or 1) > 1 or arguments.tenant_workers):
        raise CliError("--workers and --tenant-workers need a Unix system")
    if arguments.workers is not None:
        return int(arguments.workers)
    return 1 if arguments.tenant_workers else default_workers()


def default_workers() -> int:
    """The number of workers of a server: the number of cores that this process may use; 1 where
    the system cannot pass sockets to other processes."""
    if os.name != "posix":
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _packages(requirements: list[str]) -> tuple[str, ...]:
    """The packages of `--package`, checked now and not at the first request."""
    from wasmsand.cli.options import failures
    from wasmsand.sdk.backend import PackageRequest
    from wasmsand.sdk.package_requests import prepare_packages

    if requirements:
        with failures():
            prepare_packages(PackageRequest(tuple(requirements), from_index=False), ())
    return tuple(requirements)


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
