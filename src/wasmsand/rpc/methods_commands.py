"""Methods that run commands.

Rules: `run` belongs to the original protocol; the other methods are ours, and use base64 for
bytes. A started command has a number until it is released.
"""

from __future__ import annotations

import threading

from wasmsand.rpc import values
from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession, captured_identity
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import STDIN, BackendProcess, CommandRequest
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, SandboxTimeout, SandboxUser
from wasmsand.sdk.errors import SandboxClosedError
from wasmsand.wire.channel import PeerGone


def timeout_of(params: Params) -> float | SandboxTimeout | None:
    """How long a command may run: null is no limit; if the parameter is missing, the sandbox's
    `timeoutMs` applies."""
    if not params.is_given("timeoutMs"):
        return SANDBOX_TIMEOUT
    return params.optional(Params.number, "timeoutMs")


def user_of(params: Params) -> SandboxUser:
    """As whom a command runs."""
    name = arguments.user_name("user", params.optional(Params.text, "user"))
    return "root" if name == "root" else "user"


def _run(session: RpcSession, params: Params) -> Result:
    result = session.sandbox.commands.run(
        params.text("command"),
        stdin=params.optional(Params.data, "stdin"),
        env=params.optional(Params.variables, "env"),
        cwd=params.optional(Params.text, "cwd"),
        timeout_ms=timeout_of(params),
        user=user_of(params),
    )
    return {
        "exitCode": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "executionTimeMs": round(result.execution_time_ms, 3),
    }


_REQUEST = ("stdin", "env", "environ", "cwd", "timeoutMs", "user")


def _request(
    session: RpcSession, params: Params, *, stdin: bytes | None, timeout_ms: object
) -> CommandRequest:
    """The command in `params`; `stdin` and `timeout_ms` are the defaults."""
    if params.is_given("timeoutMs"):
        timeout_ms = params.optional(Params.number, "timeoutMs")
    return session.builder.request(
        params.command("command"),
        stdin=params.data("stdin") if params.has("stdin") else stdin,
        env=params.optional(Params.variables, "env"),
        environ=params.optional(Params.variables, "environ"),
        cwd=params.optional(Params.text, "cwd"),
        timeout_ms=timeout_ms,
        user=user_of(params),
        inputs=values.descriptors_in(params, "extraInputs"),
        outputs=values.descriptors_in(params, "extraOutputs"),
    )


def _commands_run(session: RpcSession, params: Params) -> Result:
    request = _request(session, params, stdin=b"", timeout_ms=SANDBOX_TIMEOUT)
    return values.completed_out(session.backend.run(request, params.cancellation))


def _start(session: RpcSession, params: Params) -> Result:
    streams = params.flag("stream")
    process = session.backend.start(_request(session, params, stdin=None, timeout_ms=None))
    number = session.commands.add(process)
    if streams:
        session.family.after_response.append(lambda: _stream(session, number, process))
    return {"command": number, "pid": process.pid}


def _stream(session: RpcSession, number: int, process: BackendProcess) -> None:
    """Notify the client of a command's output and of its end."""

    def work() -> None:
        try:
            while outputs := process.read():
                for output in values.outputs_out(outputs):
                    session.notify("commands.output", {"command": number, **output})
            ended = process.wait()
            if ended is not None:
                session.notify("commands.exit", {"command": number, **values.ended_out(ended)})
        except (PeerGone, SandboxClosedError):
            pass  # the client has disconnected, or the sandbox has ended
        finally:
            session.commands.drop(number)

    threading.Thread(target=work, name="wasmsand-output", daemon=True).start()


def _command(session: RpcSession, params: Params) -> BackendProcess:
    return session.commands.get(params.integer("command"))


def _read(session: RpcSession, params: Params) -> Result:
    process, timeout = _command(session, params), params.wait_seconds()
    try:
        outputs, timed_out = process.read(timeout), False
    except TimeoutError:
        outputs, timed_out = (), True
    result: Result = {"outputs": values.outputs_out(outputs), "timedOut": timed_out}
    if uncounted := process.uncounted_seconds():
        result["uncountedMs"] = uncounted * 1000
    return result


def _write(session: RpcSession, params: Params) -> Result:
    data, fd = params.data("data"), params.integer("fd", STDIN)
    return {**OK, "written": _command(session, params).write(data, fd, params.wait_seconds())}


def _close_input(session: RpcSession, params: Params) -> Result:
    _command(session, params).close_input(params.integer("fd", STDIN))
    return OK


def _wait(session: RpcSession, params: Params) -> Result:
    ended = _command(session, params).wait(params.wait_seconds())
    return {"ended": None if ended is None else values.ended_out(ended)}


def _notices(session: RpcSession, params: Params) -> Result:
    return {"notices": list(_command(session, params).take_notices())}


def _kill(session: RpcSession, params: Params) -> Result:
    _command(session, params).kill()
    return OK


def _release(session: RpcSession, params: Params) -> Result:
    number = params.integer("command")
    session.commands.drop(number)
    session.captures.drop(captured_identity(number))
    return OK


def _cancel(session: RpcSession, params: Params) -> Result:
    cancellation = session.family.cancellations.get(params.request_id("request"))
    if cancellation is not None:  # otherwise the request has ended
        cancellation.cancel()
    return OK


def _list(session: RpcSession, _: Params) -> Result:
    return {"processes": [values.record_out(info) for info in session.backend.processes()]}


def _signal(session: RpcSession, params: Params) -> Result:
    session.backend.signal(params.integer("pid"), params.integer("signal"))
    return OK


def _kill_process(session: RpcSession, params: Params) -> Result:
    return {"killed": session.backend.kill_process(params.integer("pid"))}


COMMAND_METHODS = (
    Method("run", _run, ("command",), ("stdin", "env", "cwd", "timeoutMs", "user")),
    Method("commands.run", _commands_run, ("command",), _REQUEST, waits=True),
    Method(
        "commands.start",
        _start,
        ("command",),
        (*_REQUEST, "extraInputs", "extraOutputs", "stream"),
    ),
    Method("commands.read", _read, ("command",), ("timeoutMs",), waits=True),
    Method("commands.write", _write, ("command", "data"), ("fd", "timeoutMs"), waits=True),
    Method("commands.closeInput", _close_input, ("command",), ("fd",)),
    Method("commands.wait", _wait, ("command",), ("timeoutMs",), waits=True),
    Method("commands.notices", _notices, ("command",)),
    Method("commands.kill", _kill, ("command",)),
    Method("commands.release", _release, ("command",)),
    Method("commands.cancel", _cancel, ("request",)),
    Method("commands.list", _list),
    Method("commands.signal", _signal, ("pid", "signal")),
    Method("commands.killProcess", _kill_process, ("pid",)),
)
