"""Methods of shell and Python sessions.

Rules: a session has a number until it is closed; `run` responds when the code has finished; the
value of an expression is sent if JSON can represent it, otherwise only its `repr`. With `stream`,
the client is also notified of output and results while the code runs.
"""

from __future__ import annotations

from typing import TypedDict

from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.methods_commands import timeout_of, user_of
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import RpcSession
from wasmsand.rpc.values import item_out, python_result_out
from wasmsand.sdk.backend import STDERR, STDOUT
from wasmsand.sdk.command_builder import SandboxUser
from wasmsand.sdk.results import DisplayItem


class _Begin(TypedDict):
    env: dict[str, str] | None
    cwd: str | None
    user: SandboxUser


def _begin(params: Params) -> _Begin:
    """The common parameters of new sessions."""
    return {
        "env": params.optional(Params.variables, "env"),
        "cwd": params.optional(Params.text, "cwd"),
        "user": user_of(params),
    }


def _shell_open(session: RpcSession, params: Params) -> Result:
    shell = session.sandbox.shell(**_begin(params))
    return {"shell": session.shells.add(shell), "pid": shell.pid}


def _shell_run(session: RpcSession, params: Params) -> Result:
    shell = session.shells.get(params.integer("shell"))
    result = shell.run(
        params.text("command"),
        stdin=params.optional(Params.data, "stdin"),
        timeout_ms=timeout_of(params),
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
    stdin = params.data("stdin") if params.has("stdin") else b""
    interpreter = session.sandbox.python(**_begin(params), stdin=stdin)
    return {"python": session.interpreters.add(interpreter), "pid": interpreter.pid}


def _python_run(session: RpcSession, params: Params) -> Result:
    interpreter = session.interpreters.get(params.integer("python"))
    lines = iter(params.texts("inputs") if params.has("inputs") else ())
    streaming = _Streaming(session, params.integer("python")) if params.flag("stream") else None
    result = interpreter.run(
        params.text("code"),
        timeout_ms=timeout_of(params),
        on_stdout=None if streaming is None else streaming.on_stdout,
        on_stderr=None if streaming is None else streaming.on_stderr,
        on_result=None if streaming is None else streaming.on_result,
        on_input=(lambda _prompt: next(lines, None)) if params.has("inputs") else None,
    )
    return python_result_out(result)


class _Streaming:
    """Notifies the client of what a run prints and displays."""

    def __init__(self, session: RpcSession, number: int) -> None:
        self._session = session
        self._number = number

    def on_stdout(self, text: str) -> None:
        """Called with output."""
        self._notify("python.output", fd=STDOUT, text=text)

    def on_stderr(self, text: str) -> None:
        """Called with error output."""
        self._notify("python.output", fd=STDERR, text=text)

    def on_result(self, item: DisplayItem) -> None:
        """Called with what is displayed."""
        self._notify("python.result", **item_out(item))

    def _notify(self, method: str, **params: object) -> None:
        self._session.notify(method, {"python": self._number, **params})


def _python_close(session: RpcSession, params: Params) -> Result:
    session.interpreters.end(params.integer("python"))
    return OK


SESSION_METHODS = (
    Method("shell.open", _shell_open, (), ("env", "cwd", "user"), waits=True),
    Method("shell.run", _shell_run, ("shell", "command"), ("stdin", "timeoutMs"), waits=True),
    Method("shell.close", _shell_close, ("shell",)),
    Method("python.open", _python_open, (), ("env", "cwd", "stdin", "user"), waits=True),
    Method(
        "python.run",
        _python_run,
        ("python", "code"),
        ("timeoutMs", "inputs", "stream"),
        waits=True,
    ),
    Method("python.close", _python_close, ("python",)),
)
