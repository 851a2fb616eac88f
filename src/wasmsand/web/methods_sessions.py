"""Requests about shell and Python sessions.

Rules: a session has a number until it is closed. With `stream`, the page also gets output and
results as events while the code runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from wasmsand.kernel.errno import KernelError
from wasmsand.rpc.params import Params
from wasmsand.rpc.values import item_out, python_result_out
from wasmsand.sdk import arguments
from wasmsand.sdk.errors import CommandError, command_error
from wasmsand.sdk.results import CommandResult, DisplayItem, PythonResult
from wasmsand.web.service import OK, Answer, Call, Handler, Service
from wasmsand.web.sessions import (
    WebSession,
    new_python,
    new_shell,
    run_in_python,
    run_in_shell,
)

Opener = Callable[..., WebSession[Any]]


def _open(kind: str, opener: Opener, service: Service, call: Call) -> None:
    handle = service.new_handle()
    params = call.params

    def opened(pid: int) -> None:
        service.reply(call.number, ({kind: handle, "pid": pid}, None))

    def failed(error: Exception) -> None:
        service.handles.pop(handle, None)
        if isinstance(error, KernelError):
            error = command_error(error, kind)
        service.fail(call.number, error)

    session = opener(
        service.machine,
        service.builder,
        params.optional(Params.variables, "env"),
        params.optional(Params.text, "cwd"),
        opened=opened,
        failed=failed,
    )
    service.handles[handle] = session
    session.launch()


def _shell_open(service: Service, call: Call) -> None:
    _open("shell", new_shell, service, call)


def _python_open(service: Service, call: Call) -> None:
    _open("python", new_python, service, call)


def _session(service: Service, call: Call, kind: str) -> tuple[int, WebSession[Any]]:
    handle = call.params.integer(kind)
    session = service.handles.get(handle)
    if not isinstance(session, WebSession):
        raise CommandError(f"EBADF: no {kind} {handle}", "EBADF")
    return handle, session


def _timeout(service: Service, call: Call) -> float | None:
    given = call.params.optional(Params.number, "timeoutMs")
    value = service.options.timeout_ms if given is None else given
    return arguments.timeout_seconds("timeoutMs", value)


def _sinks(
    service: Service, call: Call, handle: int
) -> tuple[Callable[[str], None] | None, Callable[[str], None] | None]:
    if not call.params.flag("stream"):
        return None, None

    def sink(fd: int) -> Callable[[str], None]:
        return lambda text: service.notify(handle, {"event": "output", "fd": fd, "text": text})

    return sink(1), sink(2)


def _shell_run(service: Service, call: Call) -> None:
    handle, session = _session(service, call, "shell")

    def done(result: CommandResult) -> None:
        answer = {
            "exitCode": result.exit_code,
            "stdout": result.stdout,
            "stderr": result.stderr,
            "executionTimeMs": round(result.execution_time_ms, 3),
            "timedOut": result.timed_out,
            "truncated": result.truncated,
        }
        service.reply(call.number, (answer, None))

    run_in_shell(
        session,
        arguments.text("command", call.params.text("command")),
        service.options.max_output_bytes,
        _timeout(service, call),
        _sinks(service, call, handle),
        done,
        lambda error: service.fail(call.number, error),
    )


def _python_run(service: Service, call: Call) -> None:
    handle, session = _session(service, call, "python")

    def done(result: PythonResult) -> None:
        service.reply(call.number, (python_result_out(result), None))

    def shown(item: DisplayItem) -> None:
        service.notify(handle, {"event": "result", **item_out(item)})

    run_in_python(
        session,
        arguments.text("code", call.params.text("code")),
        service.options.max_output_bytes,
        _timeout(service, call),
        _sinks(service, call, handle),
        shown if call.params.flag("stream") else None,
        done,
        lambda error: service.fail(call.number, error),
    )


def _close(kind: str) -> Handler:
    def closed(service: Service, call: Call) -> Answer:
        handle, session = _session(service, call, kind)
        service.handles.pop(handle)
        session.kill()
        return OK

    return closed


def _interrupt(kind: str) -> Handler:
    def interrupted(service: Service, call: Call) -> Answer:
        _session(service, call, kind)[1].interrupt()
        return OK

    return interrupted


SESSION_METHODS: Final[dict[str, Handler]] = {
    "shell.open": _shell_open,
    "shell.run": _shell_run,
    "shell.interrupt": _interrupt("shell"),
    "shell.close": _close("shell"),
    "python.open": _python_open,
    "python.run": _python_run,
    "python.interrupt": _interrupt("python"),
    "python.close": _close("python"),
}
