"""The table of methods, and the methods of the sandbox as a whole.

Rules: a result has exactly the fields that docs/protocols/json-rpc.md lists for it, so that a
client can compare it as a whole.
"""

from __future__ import annotations

from typing import Final

from wasmsand.rpc import values
from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.methods_commands import COMMAND_METHODS
from wasmsand.rpc.methods_copies import COPY_METHODS
from wasmsand.rpc.methods_files import FILE_METHODS
from wasmsand.rpc.methods_loading import LOADING_METHODS
from wasmsand.rpc.methods_network import NETWORK_METHODS, with_events
from wasmsand.rpc.methods_packages import PACKAGE_METHODS
from wasmsand.rpc.methods_ports import PORT_METHODS
from wasmsand.rpc.methods_sessions import SESSION_METHODS
from wasmsand.rpc.methods_terminals import TERMINAL_METHODS
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.options import SandboxOptions


def _create(session: RpcSession, params: Params) -> Result:
    session.check_can_begin()
    options = SandboxOptions(**values.options_in(params))
    if params.flag("networkEvents"):
        options = with_events(session, options)
    session.family.allow_memory(options)
    session.begin(LocalBackend(options), options)
    return OK


def _prepare(session: RpcSession, _: Params) -> Result:
    """Load what every sandbox needs, so that `create` is fast."""
    session.check_can_begin()
    LocalBackend(SandboxOptions()).close()
    return OK


def _confinement(session: RpcSession, _: Params) -> Result:
    return {"barriers": list(session.family.barriers.names)}


def _env_set(session: RpcSession, params: Params) -> Result:
    session.sandbox.env.set(params.text("name"), params.text("value"))
    return OK


def _env_get(session: RpcSession, params: Params) -> Result:
    return {"value": session.sandbox.env.get(params.text("name"))}


def _env_unset(session: RpcSession, params: Params) -> Result:
    session.sandbox.env.unset(params.text("name"))
    return OK


def _env_all(session: RpcSession, _: Params) -> Result:
    return {"variables": session.sandbox.env.all()}


def _usage(session: RpcSession, _: Params) -> Result:
    return values.record_out(session.backend.usage())


def _kill(session: RpcSession, params: Params) -> Result:
    if params.sandbox is None:
        session.family.end()
    else:
        session.end()
    return OK


_OPTIONAL: Final = (
    *(option.json_name for option in values.options_of() if option.name != "wasm_dir"),
    "networkEvents",
)
"""The parameters of `create`. The original protocol requires `wasmDir`; without it there are only
the built-in programs."""
METHODS: Final = {
    method.name: method
    for method in (
        Method("create", _create, (), ("wasmDir", *_OPTIONAL)),
        *LOADING_METHODS,
        *COMMAND_METHODS,
        *FILE_METHODS,
        *SESSION_METHODS,
        *COPY_METHODS,
        *PACKAGE_METHODS,
        *NETWORK_METHODS,
        *PORT_METHODS,
        *TERMINAL_METHODS,
        Method("env.set", _env_set, ("name", "value")),
        Method("env.get", _env_get, ("name",)),
        Method("env.unset", _env_unset, ("name",)),
        Method("env.all", _env_all),
        Method("usage", _usage),
        Method("confinement", _confinement),
        Method("prepare", _prepare),
        Method("kill", _kill),
    )
}
