"""Python sessions: open one, run code in it, close it. Rules: see `session_runs`."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from wasmsand.http import long_answers
from wasmsand.http.handlers import session_runs
from wasmsand.http.handlers.session_runs import Publish, SessionRun, on_text
from wasmsand.http.messages import Done
from wasmsand.http.routing import Call
from wasmsand.http.served_sessions import ServedSession
from wasmsand.http.session_messages import (
    OpenPython,
    PythonEnd,
    PythonFailure,
    PythonItem,
    RunPython,
    SessionOpened,
)
from wasmsand.sdk.backend import STDERR, STDOUT
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.python_values import fits_json
from wasmsand.sdk.results import DisplayItem, PythonResult
from wasmsand.wire import strict_json


async def open_session(call: Call[None, OpenPython]) -> SessionOpened:
    """`POST /v1/sandboxes/{sandbox}/python`"""
    sessions, wanted = call.entry.sandbox.sessions, call.body
    with sessions.opening("python"), call.running_command():
        session = await call.in_command_thread(
            lambda: sessions.open_python(wanted.env, wanted.cwd, wanted.stdin, wanted.user)
        )
        return SessionOpened(id=sessions.remember(session).id, pid=session.pid)


async def close(call: Call[None, None]) -> Done:
    """`DELETE /v1/sandboxes/{sandbox}/python/{python}`"""
    served = _named(call)
    call.entry.sandbox.sessions.forget(served)
    await call.in_file_thread(served.session.close)
    return Done()


async def interrupt(call: Call[None, None]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/python/{python}/interrupt`"""
    return await session_runs.interrupt(call, _named(call))


async def run(call: Call[None, RunPython]) -> Response:
    """`POST /v1/sandboxes/{sandbox}/python/{python}/run`"""
    wanted, served = call.body, _named(call)
    seconds = call.entry.sandbox.timeout_seconds(wanted.timeout_ms)
    lines = iter(wanted.inputs or ())
    session = served.session
    assert isinstance(session, PythonSession)

    def work(publish: Publish | None) -> PythonResult:
        return session.run(
            wanted.code,
            timeout_ms=None if seconds is None else seconds * 1000,
            on_stdout=on_text(publish, STDOUT),
            on_stderr=on_text(publish, STDERR),
            on_result=None if publish is None else (lambda item: publish("result", _item(item))),
            on_input=None if wanted.inputs is None else (lambda _: next(lines, None)),
        )

    def count(result: PythonResult) -> tuple[int, bool, float]:
        status = 0 if result.error is None else 1
        return status, result.timed_out, result.execution_time_ms

    return await session_runs.answer(call, SessionRun(served, seconds, work, _end, _outcome, count))


def _item(item: DisplayItem) -> PythonItem:
    return PythonItem(
        data=item.as_json(),
        metadata=dict(item.metadata),
        is_main=item.is_main,
        display_id=item.display_id,
    )


def _end(result: PythonResult) -> PythonEnd:
    error, has_value = result.error, result.has_value and fits_json(result.value)
    return PythonEnd(
        value=result.value if has_value else None,
        has_value=has_value,
        repr=result.repr,
        error=None
        if error is None
        else PythonFailure(type=error.type, message=error.message, traceback=error.traceback),
        execution_time_ms=result.execution_time_ms,
        timed_out=result.timed_out,
        truncated=result.truncated,
    )


def _outcome(result: PythonResult) -> list[bytes]:
    """The JSON of a `PythonOutcome`."""
    output = {"stdout": result.stdout.encode(), "stderr": result.stderr.encode()}
    pieces = long_answers.object_with_bytes(msgspec.to_builtins(_end(result)), output)
    pieces[-1] = b',"results":['
    for number, item in enumerate(result.results):
        encoded = strict_json.encode(msgspec.to_builtins(_item(item)))
        pieces.append(b"," * bool(number) + encoded.strip())
    pieces.append(b"]}\n")
    return pieces


def _named(call: Call[Any, Any]) -> ServedSession:
    return call.entry.sandbox.sessions.find("python", call.part("python"))
