"""Methods of shell and Python sessions.

Rules: a session has a number until it is closed; `run` responds when the code has finished; the
value of an expression is sent if JSON can represent it, otherwise only its `repr`.
"""

from __future__ import annotations

from typing import TypedDict

from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession
from wasmsand.sdk.results import PythonError
from wasmsand.wire import strict_json


class _Begin(TypedDict):
    env: dict[str, str] | None
    cwd: str | None


def _timeout(params: Params) -> float | None:
    return params.optional(Params.number, "timeoutMs")


def _begin(params: Params) -> _Begin:
    """The common parameters of new sessions."""
    return {
        "env": params.optional(Params.variables, "env"),
        "cwd": params.optional(Params.text, "cwd"),
    }


def _shell_open(session: RpcSession, params: Params) -> Result:
    shell = session.sandbox.shell(**_begin(params))
    return {"shell": session.shells.add(shell), "pid": shell.pid}


def _shell_run(session: RpcSession, params: Params) -> Result:
    shell = session.shells.get(params.integer("shell"))
    result = shell.run(
        params.text("command"),
        stdin=params.optional(Params.data, "stdin"),
        timeout_ms=_timeout(params),
    )
    return {
        "exitCode": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "executionTimeMs": round(result.execution_time_ms, 3),
        "timedOut": result.timed_out,
        "truncated": result.truncated,
    }


def _shell_close(session: RpcSession, params: Params) -> Result:
    session.shells.end(params.integer("shell"))
    return OK


def _python_open(session: RpcSession, params: Params) -> Result:
    interpreter = session.sandbox.python(**_begin(params))
    return {"python": session.interpreters.add(interpreter), "pid": interpreter.pid}


def _python_run(session: RpcSession, params: Params) -> Result:
    interpreter = session.interpreters.get(params.integer("python"))
    result = interpreter.run(params.text("code"), timeout_ms=_timeout(params))
    return {
        "stdout": result.stdout,
        "stderr": result.stderr,
        "value": _sendable(result.value),
        "repr": result.repr,
        "error": None if result.error is None else _error_out(result.error),
        "executionTimeMs": round(result.execution_time_ms, 3),
        "timedOut": result.timed_out,
        "truncated": result.truncated,
    }


def _sendable(value: object) -> object:
    """`value`, or None if JSON cannot represent it, such as NaN or a number with thousands of
    digits."""
    try:
        strict_json.encode(value)
    except (ValueError, RecursionError):
        return None
    return value


def _error_out(error: PythonError) -> dict[str, object]:
    return {"type": error.type, "message": error.message, "traceback": error.traceback}


def _python_close(session: RpcSession, params: Params) -> Result:
    session.interpreters.end(params.integer("python"))
    return OK


SESSION_METHODS = (
    Method("shell.open", _shell_open, (), ("env", "cwd"), waits=True),
    Method("shell.run", _shell_run, ("shell", "command"), ("stdin", "timeoutMs"), waits=True),
    Method("shell.close", _shell_close, ("shell",)),
    Method("python.open", _python_open, (), ("env", "cwd"), waits=True),
    Method("python.run", _python_run, ("python", "code"), ("timeoutMs",), waits=True),
    Method("python.close", _python_close, ("python",)),
)
