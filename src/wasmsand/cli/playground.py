"""`wasmsand playground`: serves the page in which the sandbox runs without a server.

Owns finding both pages: `web/site`, which has the programs and needs a checkout, and the front end
alone, which is part of the package and belongs to `wasmsand serve --playground`. Rules: a page that
was not built is an error that names the command which builds it. The page's policy lets the browser
connect to its own origin and to the hosts of `--allow-net`, and to nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from wasmsand.cli.checkout import repository_root
from wasmsand.cli.failure import CliError
from wasmsand.cli.options import add_network_options, network_of
from wasmsand.cli.values import port_number
from wasmsand.machine.network.rules import EVERY, parse_rule
from wasmsand.serving.page_server import page_server
from wasmsand.serving.pages import Pages, PagesMissing

if TYPE_CHECKING:
    from wasmsand.sdk.network import Network

HELP = "serve the playground: a sandbox that runs in a web page"
DESCRIPTION = (
    "Serve the playground on this machine: a page with a terminal, files and Python, whose sandbox "
    "runs in the browser itself. For a page with sandboxes of this machine: `wasmsand serve "
    "--playground`."
)
EXAMPLES = """\
examples:
  make web                         build it, in a source checkout
  wasmsand playground --open       serve it on http://127.0.0.1:8765/ and open a browser
  wasmsand playground --allow-net api.example.com
                                   let its programs reach a host, if that allows pages by CORS
"""

_PORT = 8765
_NETWORK_FILE = "network.json"
_KERNEL_WORKER = "kernel-worker.js"
"""It makes the requests of programs."""
_FRONT_END = Path(__file__).resolve().parent.parent / "_playground"


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument(
        "--port",
        type=port_number,
        default=_PORT,
        help=f"port to listen on; 0 chooses a free port (default: {_PORT})",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--directory",
        metavar="DIR",
        type=Path,
        help="the built playground (default: web/site of the source checkout)",
    )
    add_network_options(parser, "hosts that programs of the page may reach, by HTTP and CORS")


def execute(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    directory = arguments.directory or _site()
    try:
        pages = Pages(directory)
    except PagesMissing as missing:
        raise CliError(f"the playground is not built ({missing}): run `make web`") from None
    network = network_of(arguments)
    if network is not None:
        _allow(pages, network)
    try:
        server = page_server(pages, arguments.port)
    except OSError as error:
        raise CliError(
            f"cannot listen on port {arguments.port}: {error.strerror}; choose another with --port"
        ) from None
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    print(f"wasmsand: playground at {url}", file=sys.stderr, flush=True)
    if arguments.open and not webbrowser.open(url):
        print("wasmsand: no browser could be started; open the page yourself", file=sys.stderr)
    with server:
        server.serve_forever()
    return 0


def _allow(pages: Pages, network: Network) -> None:
    """Let the page's programs, and the browser, reach these hosts."""
    rules = {"allow": list(network.allow), "deny": list(network.deny)}
    pages.replace(_NETWORK_FILE, json.dumps(rules).encode())
    sources = " ".join(dict.fromkeys(source for text in network.allow for source in _sources(text)))
    pages.change_header(
        _KERNEL_WORKER,
        "Content-Security-Policy",
        lambda policy: policy.replace("connect-src 'self'", f"connect-src 'self' {sources}"),
    )


def _sources(text: str) -> tuple[str, ...]:
    """What a rule means in the policy of a page, which has no methods, paths or networks."""
    rule = parse_rule(text)
    if rule.is_address and rule.network().num_addresses > 1:
        raise CliError(f"--allow-net {text}: a page knows names, not networks; name the hosts")
    host = f"[{rule.host}]" if rule.is_address and ":" in rule.host else rule.host
    if host == EVERY:
        ports = "" if rule.port is None else f"//*:{rule.port}"
        return (f"https:{ports}", f"http:{ports}")
    port = ":*" if rule.port is None else f":{rule.port}"
    return (f"https://{host}{port}", f"http://{host}{port}")


def _site() -> Path:
    root = repository_root()
    if root is None:
        raise CliError(
            "the programs of the page are not part of the installed package: clone the repository "
            "and run `make web` there, or use `wasmsand serve --playground`, whose page uses "
            "sandboxes of this machine"
        )
    return root / "web" / "site"


def front_end() -> Path:
    """The directory with the page of `wasmsand serve --playground`. Raises `CliError`."""
    if not _FRONT_END.is_dir():
        raise CliError(
            "this package was built without the playground: run `make web` in a source checkout"
        )
    return _FRONT_END
