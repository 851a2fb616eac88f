"""`wasmsand mcp`: serves sandboxes to clients of the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

from wasmsand import __version__
from wasmsand.cli import options
from wasmsand.cli.failure import CliError
from wasmsand.cli.values import address, positive_integer, seconds, whole_number
from wasmsand.sdk.options import HOME, Isolation, SandboxOptions

TOKEN_VARIABLE = "WASMSAND_MCP_TOKEN"
PROJECT = "/project"

HELP = "serve sandboxes to clients of the Model Context Protocol"
DESCRIPTION = (
    "Serve tools for commands and files of a sandbox with the Model Context "
    "Protocol: to one client on standard input and output, or to many over streamable HTTP."
)
EXAMPLES = f"""\
for one client, which starts this command and talks to its standard input and output. Most
clients are configured like this:
  {{"mcpServers": {{"sandbox": {{"command": "wasmsand", "args": ["mcp"]}}}}}}

with a project of this machine; changes stay in the sandbox, and the model can show them:
  wasmsand mcp --project ~/src/app
  wasmsand mcp --project ~/src/app --allow-apply    the model may write them back

for many clients over HTTP, with one sandbox per session:
  wasmsand mcp --http 127.0.0.1:8765
  {TOKEN_VARIABLE}=$TOKEN wasmsand mcp --http 0.0.0.0:8765    for clients with the token
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        type=address,
        default=None,
        help="serve streamable HTTP at /mcp; if other machines can reach the address, a token in "
        f"the environment variable {TOKEN_VARIABLE} is required",
    )
    parser.add_argument(
        "--idle-timeout",
        metavar="SECONDS",
        type=seconds,
        default=1800.0,
        help="HTTP: end a session that has been idle for this time (default: 1800)",
    )
    parser.add_argument(
        "--max-sessions",
        metavar="N",
        type=positive_integer,
        default=64,
        help="HTTP: maximum number of sessions (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=30.0,
        help="end a command after this time, unless the call sets its own timeout (default: 30)",
    )
    parser.add_argument(
        "--output-limit",
        metavar="CHARACTERS",
        type=positive_integer,
        default=30_000,
        help="give the model at most this much of one output; the whole output is saved in the "
        "sandbox (default: %(default)s)",
    )
    parser.add_argument(
        "--max-copies",
        metavar="N",
        type=whole_number,
        default=4,
        help="copies of its sandbox that a session may have at a time; 0 offers no tools for "
        "copies and snapshots (default: %(default)s)",
    )
    parser.add_argument(
        "--index-installs",
        action="store_true",
        help="offer a tool that installs Python packages from the package index, with this "
        "machine's settings of pip; otherwise only packages of the image can be installed",
    )
    parser.add_argument(
        "--project",
        metavar="DIR[:ro|rw|overlay]",
        default=None,
        help=f"mount this directory of this machine at {PROJECT}, where commands then start. "
        "overlay (the default): changes stay in the sandbox, and the model can show them as a "
        "diff; ro: read-only; rw: changes are made in DIR itself",
    )
    parser.add_argument(
        "--allow-apply",
        action="store_true",
        help="offer a tool that writes the changes of an overlay to this machine; otherwise the "
        "model can only show them",
    )
    parser.add_argument(
        "--isolation",
        choices=("none", "process"),
        default=None,
        help="run each sandbox in this process, or in a separate one with fewer rights, which "
        "cannot have mounts (default: a separate one if other machines can reach the address of "
        "--http and there are no mounts)",
    )
    options.add_copy_in_option(parser)
    options.add_sandbox_options(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Serve until the input ends or a signal arrives."""
    from wasmsand.sdk.errors import SandboxError
    from wasmsand.sdk.opening import open_backend
    from wasmsand.sdk.sandbox import Sandbox
    from wasmsand.tools import SandboxTools
    from wasmsand.tools.surroundings import Observation

    try:
        from wasmsand.mcp.sessions import Sessions
        from wasmsand.mcp.stdio import serve_stdio
        from wasmsand.mcp.streamable_http import HttpOptions, UnsafeOptions, serve_http
    except ModuleNotFoundError as missing:
        raise CliError(
            f"the package {missing.name} is not installed: pip install 'wasmsand[mcp]'"
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
            raise CliError(
                f"--http: {error} (set the environment variable {TOKEN_VARIABLE})"
            ) from None
    made_from = _sandbox_options(arguments)
    isolation = _isolation(arguments, made_from)

    def create() -> Sandbox:
        sandbox = Sandbox.from_backend(open_backend(made_from, isolation), made_from)
        try:
            options.copy_in(sandbox, arguments.file)
        except CliError as error:  # a client waits for this sandbox
            sandbox.kill()
            raise SandboxError(str(error)) from None
        return sandbox

    try:
        # Report wrong options or a broken installation now, not at the first request.
        with create() as sandbox:
            SandboxTools(sandbox, output_limit=arguments.output_limit)
            surroundings = Observation(sandbox).take(with_packages=False)
    except (SandboxError, ValueError) as error:
        raise CliError(str(error)) from None
    sessions = Sessions(
        create,
        output_limit=arguments.output_limit,
        max_sessions=1 if http is None else http.max_sessions,
        index_installs=arguments.index_installs,
        max_copies=arguments.max_copies,
        apply_changes=arguments.allow_apply,
        has_network=made_from.network is not None,
        surroundings=surroundings,
    )
    if http is None:
        serve_stdio(sessions, __version__)
        return 0
    try:
        serve_http(sessions, __version__, http)
    except OSError as error:
        raise CliError(f"--http {http.host}:{http.port}: {error.strerror}") from None
    return 0


def _isolation(arguments: argparse.Namespace, made_from: SandboxOptions) -> Isolation:
    """Where each sandbox runs."""
    from wasmsand.serving.hosts import is_loopback

    chosen: Isolation | None = arguments.isolation
    if chosen is not None:
        return chosen
    is_for_others = arguments.http is not None and not is_loopback(arguments.http[0])
    return "process" if is_for_others and not made_from.mounts else "none"


def _sandbox_options(arguments: argparse.Namespace) -> SandboxOptions:
    """The options of each sandbox, with the project."""
    made_from = replace(options.sandbox_options(arguments), timeout_ms=arguments.timeout * 1000)
    if arguments.project is None:
        return made_from
    from wasmsand.sdk.mounts import mount_from_word

    directory, _, mode = arguments.project.rpartition(":")
    if not directory or mode not in ("ro", "rw", "overlay"):
        directory, mode = arguments.project, "overlay"
    if PROJECT in made_from.mounts:
        raise CliError(f"--project uses {PROJECT}: mount the other directory elsewhere")
    try:
        path, mount = mount_from_word(f"{directory}:{PROJECT}:{mode}")
    except ValueError as error:
        raise CliError(f"--project: {error}") from None
    cwd = made_from.cwd if arguments.cwd != HOME else PROJECT
    # Compiled files would be among the changes that the model shows or applies.
    env = {"PYTHONDONTWRITEBYTECODE": "1", **made_from.env}
    return replace(made_from, mounts={**made_from.mounts, path: mount}, cwd=cwd, env=env)
