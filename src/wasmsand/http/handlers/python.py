"""Python sessions: open one, run code in it, close it.

Rules: a session runs one request at a time; what a run prints and displays is bounded by the
sandbox's `max_output_bytes`, so it can be queued for a client that reads slowly. If the client
disconnects, the code is interrupted, and the session remains.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec
from starlette.responses import Response

from wasmsand.http import long_answers
from wasmsand.http.failures import ApiFailure, failure_of
from wasmsand.http.messages import (
    Done,
    OpenPython,
    OutputPiece,
    PythonEnd,
    PythonFailure,
    PythonItem,
    PythonOpened,
    RunPython,
)
from wasmsand.http.quotas import CommandPlace
from wasmsand.http.routing import Call
from wasmsand.http.served import Interpreter
from wasmsand.http.service import log
from wasmsand.http.streaming import (
    EVENT_STREAM,
    HEARTBEAT,
    Emit,
    Streaming,
    event,
    unless_disconnected,
)
from wasmsand.sdk.backend import CANCELLATION, STDERR, STDOUT, Cancellation
from wasmsand.sdk.python_values import is_json
from wasmsand.sdk.results import DisplayItem, PythonResult
from wasmsand.wire import strict_json

Publish = Callable[[str, object], None]
"""Sends an event to the client."""


async def open_session(call: Call[None, OpenPython]) -> PythonOpened:
    """`POST /v1/sandboxes/{sandbox}/python`"""
    sandbox, wanted = call.entry.sandbox, call.body
    with sandbox.opening_interpreter(), call.running_command():
        session = await call.in_command_thread(lambda: sandbox.open_interpreter(wanted))
        return PythonOpened(id=sandbox.remember_interpreter(session).id, pid=session.pid)


async def close(call: Call[None, None]) -> Done:
    """`DELETE /v1/sandboxes/{sandbox}/python/{python}`"""
    interpreter = _named(call)
    call.entry.sandbox.forget_interpreter(interpreter)
    await call.in_file_thread(interpreter.session.close)
    return Done()


async def run(call: Call[None, RunPython]) -> Response:
    """`POST /v1/sandboxes/{sandbox}/python/{python}/run`"""
    interpreter = _named(call)
    if interpreter.is_busy:
        raise ApiFailure(
            409, "session_busy", "the Python session runs code already; wait, or open another one"
        )
    with ExitStack() as held:
        place = held.enter_context(call.running_command())
        held.enter_context(_busy(interpreter))
        if EVENT_STREAM in call.request.headers.get("accept", ""):
            held.enter_context(call.service.registry.use(call.entry))
            return Streaming(
                lambda emit: _events(call, interpreter, place, emit),
                EVENT_STREAM,
                held=held.pop_all(),
            )
        result = await unless_disconnected(
            _run(call, interpreter, place, None), call.request.receive
        )
        pieces = await call.in_file_thread(lambda: _outcome(result))
        return long_answers.answer(pieces, held.pop_all())


async def _run(
    call: Call[None, RunPython],
    interpreter: Interpreter,
    place: CommandPlace,
    publish: Publish | None,
) -> PythonResult:
    """Run the code on a thread. If the request is cancelled, interrupt the code."""
    service, sandbox, wanted = call.service, call.entry.sandbox, call.body
    seconds = sandbox.timeout_seconds(wanted.timeout_ms)
    lines = iter(wanted.inputs or ())
    cancellation = Cancellation()

    def work() -> PythonResult:
        token = CANCELLATION.set(cancellation)
        try:
            result = interpreter.session.run(
                wanted.code,
                timeout_ms=None if seconds is None else seconds * 1000,
                on_stdout=_on_text(publish, STDOUT),
                on_stderr=_on_text(publish, STDERR),
                on_result=None
                if publish is None
                else (lambda item: publish("result", _item(item))),
                on_input=None if wanted.inputs is None else (lambda _: next(lines, None)),
            )
        finally:
            CANCELLATION.reset(token)
        sandbox.check_alive()
        return result

    longest = seconds or service.settings.max_command_seconds
    try:
        result = await call.in_command_thread(work, longest, then=place.keep().release)
    except (asyncio.CancelledError, ApiFailure):
        # Cancelling takes the sandbox's lock, so do it on a thread.
        service.endings.run(cancellation.cancel).add_done_callback(place.keep().release)
        raise
    status = 0 if result.error is None else 1
    service.metrics.count_command(status, result.timed_out, result.execution_time_ms / 1000)
    return result


async def _events(
    call: Call[None, RunPython], interpreter: Interpreter, place: CommandPlace, emit: Emit
) -> None:
    """Send what the code prints and displays, and how it ended."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def publish(name: str, value: object) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event(name, value))

    async def produce() -> None:
        try:
            result = await _run(call, interpreter, place, publish)
            queue.put_nowait(event("end", _end(result)))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                log.error("bug while running Python code", exc_info=error)
                failure = ApiFailure(500, "internal", "bug in the server; see its log")
            queue.put_nowait(event("error", failure.body()))
        queue.put_nowait(b"")

    task = asyncio.create_task(produce())
    try:
        while True:
            try:
                seconds = call.service.settings.heartbeat_seconds
                data = await asyncio.wait_for(queue.get(), seconds)
            except TimeoutError:
                await emit(HEARTBEAT)
                continue
            if not data:
                break
            await emit(data)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _on_text(publish: Publish | None, fd: int) -> Callable[[str], None] | None:
    if publish is None:
        return None
    return lambda text: publish("output", OutputPiece(fd=fd, text=text))


def _item(item: DisplayItem) -> PythonItem:
    return PythonItem(
        data=item.as_json(),
        metadata=dict(item.metadata),
        is_main=item.is_main,
        display_id=item.display_id,
    )


def _end(result: PythonResult) -> PythonEnd:
    error, has_value = result.error, _has_json(result)
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


def _has_json(result: PythonResult) -> bool:
    """Whether JSON represents the result's value without a change. A number with thousands of
    digits, or a deeply nested list, cannot be sent either."""
    try:
        if result.has_value and is_json(result.value):
            strict_json.encode(result.value)
            return True
    except (ValueError, RecursionError):
        pass
    return False


@contextmanager
def _busy(interpreter: Interpreter) -> Iterator[None]:
    interpreter.is_busy = True
    try:
        yield
    finally:
        interpreter.is_busy = False


def _named(call: Call[Any, Any]) -> Interpreter:
    return call.entry.sandbox.find_interpreter(call.part("python"))
