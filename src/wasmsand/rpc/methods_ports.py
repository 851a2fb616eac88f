"""Methods for servers in the sandbox.

Rules: `ports.url` opens a port of this machine, which a confined process cannot do. Then the parent
process opens it, and passes the connections (`descriptors`): `ports.receive` and `ports.attach`
are for it.
"""

from __future__ import annotations

from typing import Final

from wasmsand.rpc import values
from wasmsand.rpc.descriptors import DescriptorReceiver
from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession, sandbox_error
from wasmsand.sdk import arguments
from wasmsand.sdk.errors import UnsupportedError
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.ports import WAIT_TIMEOUT_MS


def _port(params: Params) -> int:
    return arguments.port("port", params.integer("port"))


def _list(session: RpcSession, _: Params) -> Result:
    return {"ports": [values.record_out(found) for found in session.backend.listening_ports()]}


def _wait(session: RpcSession, params: Params) -> Result:
    timeout_ms: float | None = WAIT_TIMEOUT_MS
    if params.is_given("timeoutMs"):
        timeout_ms = params.optional(Params.number, "timeoutMs")
    if timeout_ms is not None and timeout_ms <= 0:
        seconds: float | None = 0.0  # do not wait
    else:
        seconds = arguments.timeout_seconds("timeoutMs", timeout_ms)
    return {"listens": session.backend.wait_port(_port(params), seconds)}


def _url(session: RpcSession, params: Params) -> Result:
    host_port = params.optional(Params.integer, "hostPort")
    if host_port is not None:
        host_port = arguments.port("hostPort", host_port)
    if session.family.barriers.names:
        raise UnsupportedError("a confined process cannot open ports; start it without --confine")
    return {"url": session.backend.open_port(_port(params), host_port)}


def _close(session: RpcSession, params: Params) -> Result:
    return {"closed": session.backend.close_port(_port(params))}


def _local(session: RpcSession) -> tuple[LocalBackend, DescriptorReceiver]:
    backend, receiver = session.backend, session.family.descriptors
    if not isinstance(backend, LocalBackend) or receiver is None:
        raise UnsupportedError("only the process that started this one can pass sockets")
    return backend, receiver


def _receive(session: RpcSession, _: Params) -> Result:
    receiver = _local(session)[1]
    receiver.start(session.family.deliver)
    return OK


def _attach(session: RpcSession, params: Params) -> Result:
    backend, receiver = _local(session)
    port = _port(params)
    seconds = arguments.timeout_seconds("timeoutMs", params.optional(Params.number, "timeoutMs"))
    passed = receiver.claim(params.integer("socket"))
    if passed is None:
        raise sandbox_error("EBADF", "the socket did not arrive", kind="port", port=port)
    backend.attach_port(port, passed, seconds)
    return OK


PORT_METHODS: Final = (
    Method("ports.list", _list),
    Method("ports.wait", _wait, ("port",), ("timeoutMs",), waits=True),
    Method("ports.url", _url, ("port",), ("hostPort",)),
    Method("ports.close", _close, ("port",)),
    Method("ports.receive", _receive),
    Method("ports.attach", _attach, ("port", "socket"), ("timeoutMs",), waits=True),
)
