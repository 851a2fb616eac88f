"""Methods that run commands.

Rules: `run` is the first protocol's; the others are ours, and give and take bytes as base64. A
command that was started is known by a number until it is released.
"""

from __future__ import annotations

import threading

from wasmsand.rpc import values
from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import Session
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import STDIN, BackendProcess, CommandRequest
from wasmsand.sdk.commands import SHELL
from wasmsand.sdk.environment import command_environment
from wasmsand.sdk.errors import SandboxClosedError
from wasmsand.wire.channel import PeerGone


def _run(session: Session, params: Params) -> Result:
    result = session.sandbox.commands.run(
        params.text("command"),
        stdin=params.data("stdin") if params.has("stdin") else None,
        env=params.variables("env") if params.has("env") else None,
        cwd=params.text("cwd") if params.has("cwd") else None,
        timeout_ms=params.number("timeoutMs") if params.has("timeoutMs") else None,
    )
    return {
        "exitCode": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "executionTimeMs": round(result.execution_time_ms, 3),
    }


_REQUEST = ("stdin", "env", "environ", "cwd", "timeoutMs")


def _request(session: Session, params: Params, *, default_timeout: float | None) -> CommandRequest:
    cwd = session.sandbox.options.cwd
    if params.has("cwd"):
        cwd = arguments.guest_path("cwd", params.text("cwd"), cwd)
    if params.has("environ"):
        environ = arguments.variables("environ", params.variables("environ"))
    else:
        extra = params.variables("env") if params.has("env") else {}
        environ = command_environment(
            session.sandbox.env.chosen(), arguments.variables("env", extra), cwd=cwd
        )
    timeout_ms = default_timeout
    if params.is_given("timeoutMs"):
        timeout_ms = params.number("timeoutMs") if params.has("timeoutMs") else None
    return CommandRequest(
        argv=arguments.command_line(params.command("command"), SHELL),
        environ=environ,
        cwd=cwd,
        timeout_seconds=arguments.timeout_seconds("timeoutMs", timeout_ms),
        stdin=params.data("stdin") if params.has("stdin") else None,
        extra_inputs=values.descriptors_in(params, "extraInputs"),
        extra_outputs=values.descriptors_in(params, "extraOutputs"),
    )


def _commands_run(session: Session, params: Params) -> Result:
    request = _request(session, params, default_timeout=session.sandbox.options.timeout_ms)
    return values.completed_out(session.backend.run(request, params.cancellation))


def _start(session: Session, params: Params) -> Result:
    streams = params.flag("stream")
    process = session.backend.start(_request(session, params, default_timeout=None))
    try:
        number = session.commands.add(process)
    except BaseException:
        process.kill()
        raise
    if streams:
        session.after_response.append(lambda: _stream(session, number, process))
    return {"command": number, "pid": process.pid}


def _stream(session: Session, number: int, process: BackendProcess) -> None:
    """Tell the client of everything that a command prints, and of its end."""

    def work() -> None:
        try:
            while outputs := process.read():
                for output in values.outputs_out(outputs):
                    session.notify("commands.output", {"command": number, **output})
            ended = process.wait()
            if ended is not None:
                session.notify("commands.exit", {"command": number, **values.ended_out(ended)})
        except (PeerGone, SandboxClosedError):
            pass  # nobody is there, or nothing is left, to be told
        finally:
            session.commands.drop(number)

    threading.Thread(target=work, name="wasmsand-output", daemon=True).start()


def _command(session: Session, params: Params) -> BackendProcess:
    return session.commands.get(params.integer("command"))


def _timeout(params: Params) -> float | None:
    """A time that may be 0: then nothing is waited for."""
    if not params.has("timeoutMs"):
        return None
    milliseconds = params.number("timeoutMs")
    return 0.0 if milliseconds <= 0 else arguments.timeout_seconds("timeoutMs", milliseconds)


def _read(session: Session, params: Params) -> Result:
    process, timeout = _command(session, params), _timeout(params)
    try:
        return {"outputs": values.outputs_out(process.read(timeout)), "timedOut": False}
    except TimeoutError:
        return {"outputs": [], "timedOut": True}


def _write(session: Session, params: Params) -> Result:
    data, fd = params.data("data"), params.integer("fd", STDIN)
    return {**OK, "written": _command(session, params).write(data, fd, _timeout(params))}


def _close_input(session: Session, params: Params) -> Result:
    _command(session, params).close_input(params.integer("fd", STDIN))
    return OK


def _wait(session: Session, params: Params) -> Result:
    ended = _command(session, params).wait(_timeout(params))
    return {"ended": None if ended is None else values.ended_out(ended)}


def _kill(session: Session, params: Params) -> Result:
    _command(session, params).kill()
    return OK


def _release(session: Session, params: Params) -> Result:
    session.commands.drop(params.integer("command"))
    return OK


def _cancel(session: Session, params: Params) -> Result:
    cancellation = session.cancellations.get(params.request_id("request"))
    if cancellation is not None:  # else it has ended already
        cancellation.cancel()
    return OK


def _list(session: Session, _: Params) -> Result:
    return {"processes": [values.process_info_out(info) for info in session.backend.processes()]}


def _signal(session: Session, params: Params) -> Result:
    session.backend.signal(params.integer("pid"), params.integer("signal"))
    return OK


COMMAND_METHODS = (
    Method("run", _run, ("command",), ("stdin", "env", "cwd", "timeoutMs")),
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
    Method("commands.kill", _kill, ("command",)),
    Method("commands.release", _release, ("command",)),
    Method("commands.cancel", _cancel, ("request",)),
    Method("commands.list", _list),
    Method("commands.signal", _signal, ("pid", "signal")),
)
