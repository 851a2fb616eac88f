"""The interfaces through which the SDK's tests reach a sandbox.

Every test that takes the fixture `sandbox` or `make_sandbox` runs once for each name in
`INTERFACES`. To add an interface, add a name and a function that takes the keyword options of
`Sandbox` (all but `isolation`) and returns a `Sandbox`, or an object with exactly its methods. The
function itself starts what it needs once per test run, such as a server on loopback, and ends it
at exit.

A test that is only about this process (garbage collection, subclassing) uses `Sandbox` itself. A
test that an interface cannot pass is marked with the ID of the limitation:

    @pytest.mark.not_by("http", reason="L0NN")
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from tests.http.server import serving
from tests.sdk import blocking_facade
from wasmsand import Sandbox, SandboxOptions

_SERVER_OPTIONS = ("--allow-net", "*.test", "--allow-net", "127.0.0.0/8")
"""Names in `test` may be allowed, and lead to servers of the tests on loopback."""
MakeSandbox = Callable[..., Sandbox]


def _local(**options: Any) -> Sandbox:
    return Sandbox(**options)


@cache
def server() -> tuple[str, str]:
    """The URL and the token of a server that runs until the tests end."""
    token = "a-token-for-the-shared-suite"
    running = serving(*_SERVER_OPTIONS, environ={"WASMSAND_TOKENS": token})
    server = running.__enter__()
    atexit.register(running.__exit__, None, None, None)
    return server.url, token


def _http(**options: Any) -> Sandbox:
    url, token = server()
    return Sandbox.connect(url, token=token, options=SandboxOptions(**options))


@cache
def _fleet_url() -> str:
    """The address of a fleet on two Ray nodes of this machine, until the tests end."""
    from wasmsand.fleet import Fleet
    from wasmsand.fleet.local_nodes import LocalNodes

    nodes = LocalNodes(2)
    atexit.register(nodes.close)
    fleet = Fleet.up(nodes.address, serve_options=("--workers", "2", *_SERVER_OPTIONS))
    atexit.register(fleet.down)
    return fleet.url


def _fleet(**options: Any) -> Sandbox:
    return Sandbox.connect(_fleet_url(), options=SandboxOptions(**options))


def _process(**options: Any) -> Sandbox:
    return Sandbox(isolation="process", **options)


INTERFACES: dict[str, MakeSandbox] = {
    "local": _local,
    "async": blocking_facade.make,
    "http": _http,
    "process": _process,
}
if os.environ.get("WASMSAND_FLEET_TESTS"):  # it takes as long as all others together
    INTERFACES["fleet"] = _fleet
