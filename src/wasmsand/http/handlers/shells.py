"""Shell sessions: open one, run scripts in it, close it. Rules: see `session_runs`."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from wasmsand.http import long_answers
from wasmsand.http.handlers import session_runs
from wasmsand.http.handlers.session_runs import Publish, SessionRun, on_text
from wasmsand.http.messages import CommandEnd, Done
from wasmsand.http.routing import Call
from wasmsand.http.served_sessions import ServedSession
from wasmsand.http.session_messages import OpenShell, RunShell, SessionOpened
from wasmsand.sdk.backend import STDERR, STDOUT
from wasmsand.sdk.results import CommandResult
from wasmsand.sdk.shell import Shell


async def open_session(call: Call[None, OpenShell]) -> SessionOpened:
    """`POST /v1/sandboxes/{sandbox}/shells`"""
    sessions, wanted = call.entry.sandbox.sessions, call.body
    with sessions.opening("shell"), call.running_command():
        shell = await call.in_command_thread(
            lambda: sessions.open_shell(wanted.env, wanted.cwd, wanted.user)
        )
        return SessionOpened(id=sessions.remember(shell).id, pid=shell.pid)


async def close(call: Call[None, None]) -> Done:
    """`DELETE /v1/sandboxes/{sandbox}/shells/{shell}`"""
    served = _named(call)
    call.entry.sandbox.sessions.forget(served)
    await call.in_file_thread(served.session.close)
    return Done()


async def interrupt(call: Call[None, None]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/shells/{shell}/interrupt`"""
    return await session_runs.interrupt(call, _named(call))


async def run(call: Call[None, RunShell]) -> Response:
    """`POST /v1/sandboxes/{sandbox}/shells/{shell}/run`"""
    wanted, served = call.body, _named(call)
    if wanted.stdin is not None and wanted.stdin_base64 is not None:
        raise ValueError("give either stdin or stdin_base64, not both")
    stdin = wanted.stdin_base64 if wanted.stdin is None else wanted.stdin
    seconds = call.entry.sandbox.timeout_seconds(wanted.timeout_ms)
    shell = served.session
    assert isinstance(shell, Shell)

    def work(publish: Publish | None) -> CommandResult:
        return shell.run(
            wanted.command,
            stdin=stdin,
            timeout_ms=None if seconds is None else seconds * 1000,
            on_stdout=on_text(publish, STDOUT),
            on_stderr=on_text(publish, STDERR),
        )

    return await session_runs.answer(
        call,
        SessionRun(
            served,
            seconds,
            work,
            _end,
            _outcome,
            lambda result: (result.exit_code, result.timed_out, result.execution_time_ms),
        ),
    )


def _end(result: CommandResult) -> CommandEnd:
    return CommandEnd(
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        execution_time_ms=result.execution_time_ms,
        notices=[],
    )


def _outcome(result: CommandResult) -> list[bytes]:
    """The JSON of a `CommandOutcome`."""
    plain = msgspec.to_builtins(_end(result))
    plain["truncated"] = result.truncated
    output = {"stdout": result.stdout.encode(), "stderr": result.stderr.encode()}
    return long_answers.object_with_bytes(plain, output)


def _named(call: Call[Any, Any]) -> ServedSession:
    return call.entry.sandbox.sessions.find("shell", call.part("shell"))
