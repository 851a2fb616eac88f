"""Methods of programs on pseudo-terminals.

Rules: a terminal has a number until it is released; bytes are base64; with `stream`, the client is
notified of output and of the end instead of asking for them. A client that does not read its
responses stops the program, because a bounded amount of output waits.
"""

from __future__ import annotations

import threading
from typing import Final

from wasmsand.rpc import values
from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import BackendTerminal
from wasmsand.sdk.errors import SandboxClosedError
from wasmsand.sdk.terminal import COLUMNS, ROWS, terminal_request
from wasmsand.wire.channel import PeerGone

_READ_MAX: Final = 1024 * 1024


def _open(session: RpcSession, params: Params) -> Result:
    streams = params.flag("stream")
    columns = arguments.window_size("cols", params.integer("cols", COLUMNS))
    rows = arguments.window_size("rows", params.integer("rows", ROWS))
    request = terminal_request(
        session.builder,
        params.command("command") if params.has("command") else None,
        env=params.optional(Params.variables, "env"),
        environ=params.optional(Params.variables, "environ"),
        cwd=params.optional(Params.text, "cwd"),
        user=params.optional(Params.text, "user"),
    )
    terminal = session.backend.open_terminal(request, rows, columns)
    number = session.terminals.add(terminal)
    if streams:
        session.family.after_response.append(lambda: _stream(session, number, terminal))
    return {"terminal": number, "pid": terminal.pid}


def _stream(session: RpcSession, number: int, terminal: BackendTerminal) -> None:
    """Notify the client of a terminal's output and of its end."""

    def work() -> None:
        try:
            while data := terminal.read():
                output = {"terminal": number, "data": values.data_out(data)}
                session.notify("terminals.output", output)
            code = terminal.wait(0)
            session.notify("terminals.exit", {"terminal": number, "exitCode": code})
        except (PeerGone, SandboxClosedError):
            pass  # the client has disconnected, or the sandbox has ended

    threading.Thread(target=work, name="wasmsand-terminal", daemon=True).start()


def _terminal(session: RpcSession, params: Params) -> BackendTerminal:
    return session.terminals.get(params.integer("terminal"))


def _read(session: RpcSession, params: Params) -> Result:
    terminal, timeout = _terminal(session, params), params.wait_seconds()
    count = arguments.positive_integer("count", params.integer("count", 65536))
    try:
        data = terminal.read(min(count, _READ_MAX), timeout)
    except TimeoutError:
        return {"data": "", "timedOut": True}
    return {"data": values.data_out(data), "timedOut": False}


def _write(session: RpcSession, params: Params) -> Result:
    data = params.data("data")
    return {**OK, "written": _terminal(session, params).write(data, params.wait_seconds())}


def _resize(session: RpcSession, params: Params) -> Result:
    columns = arguments.window_size("cols", params.integer("cols"))
    rows = arguments.window_size("rows", params.integer("rows"))
    _terminal(session, params).resize(rows, columns)
    return OK


def _wait(session: RpcSession, params: Params) -> Result:
    return {"exitCode": _terminal(session, params).wait(params.wait_seconds())}


def _kill(session: RpcSession, params: Params) -> Result:
    _terminal(session, params).kill()
    return OK


def _close(session: RpcSession, params: Params) -> Result:
    _terminal(session, params).close()
    return OK


def _release(session: RpcSession, params: Params) -> Result:
    session.terminals.end(params.integer("terminal"))
    return OK


TERMINAL_METHODS = (
    Method(
        "terminals.open",
        _open,
        (),
        ("command", "cols", "rows", "env", "environ", "cwd", "user", "stream"),
    ),
    Method("terminals.read", _read, ("terminal",), ("count", "timeoutMs"), waits=True),
    Method("terminals.write", _write, ("terminal", "data"), ("timeoutMs",), waits=True),
    Method("terminals.resize", _resize, ("terminal", "cols", "rows")),
    Method("terminals.wait", _wait, ("terminal",), ("timeoutMs",), waits=True),
    Method("terminals.kill", _kill, ("terminal",)),
    Method("terminals.close", _close, ("terminal",)),
    Method("terminals.release", _release, ("terminal",)),
)
