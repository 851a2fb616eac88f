"""Runs code in a session of any kind. The response is the result, or a stream of events.

Rules: a session runs one request at a time; what a run prints and displays is bounded by the
sandbox's `max_output_bytes`, so it can be queued for a client that reads slowly. If the client
disconnects, or sends `POST …/interrupt`, the code is interrupted, and the session remains.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.responses import Response

from wasmsand.http import long_answers
from wasmsand.http.failures import ApiFailure, failure_of
from wasmsand.http.messages import Done, OutputPiece
from wasmsand.http.quotas import CommandPlace
from wasmsand.http.routing import Call
from wasmsand.http.served_sessions import ServedSession
from wasmsand.http.service import log
from wasmsand.http.streaming import (
    EVENT_STREAM,
    HEARTBEAT,
    Emit,
    Streaming,
    event,
    unless_disconnected,
)
from wasmsand.sdk.backend import CANCELLATION, Cancellation

Publish = Callable[[str, object], None]
"""Sends an event to the client."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SessionRun(Generic[Result]):
    """One request to a session."""

    served: ServedSession
    seconds: float | None
    """Its timeout."""
    run: Callable[[Publish | None], Result]
    """Runs the code, on a thread."""
    end: Callable[[Result], object]
    """The event at the end of a stream."""
    outcome: Callable[[Result], list[bytes]]
    """The JSON of the whole result."""
    count: Callable[[Result], tuple[int, bool, float]]
    """For the metrics: exit status, whether it timed out, milliseconds."""


async def answer(call: Call[Any, Any], run: SessionRun[Result]) -> Response:
    """Run the code and answer the request."""
    cancellation = Cancellation()
    with ExitStack() as held:
        place = held.enter_context(call.running_command())
        held.enter_context(run.served.busy(cancellation))
        if EVENT_STREAM in call.request.headers.get("accept", ""):
            held.enter_context(call.service.registry.use(call.entry))
            return Streaming(
                lambda emit: _events(call, run, cancellation, place, emit),
                EVENT_STREAM,
                held=held.pop_all(),
            )
        result = await unless_disconnected(
            _result(call, run, cancellation, place, None), call.request.receive
        )
        pieces = await call.in_file_thread(lambda: run.outcome(result))
        return long_answers.answer(pieces, held.pop_all())


async def interrupt(call: Call[Any, Any], served: ServedSession) -> Done:
    """Interrupt what the session runs, if it runs anything."""
    if served.running is not None:
        # Cancelling takes the sandbox's lock, so do it on a thread.
        await call.in_file_thread(served.running.cancel)
    return Done()


async def _result(
    call: Call[Any, Any],
    run: SessionRun[Result],
    cancellation: Cancellation,
    place: CommandPlace,
    publish: Publish | None,
) -> Result:
    """Run the code on a thread. If the request is cancelled, interrupt the code."""
    service, sandbox = call.service, call.entry.sandbox

    def work() -> Result:
        token = CANCELLATION.set(cancellation)
        try:
            result = run.run(publish)
        finally:
            CANCELLATION.reset(token)
        sandbox.check_alive()
        return result

    longest = run.seconds or service.settings.max_command_seconds
    try:
        result = await call.in_command_thread(work, longest, then=place.keep().release)
    except (asyncio.CancelledError, ApiFailure):
        # Cancelling takes the sandbox's lock, so do it on a thread.
        service.endings.run(cancellation.cancel).add_done_callback(place.keep().release)
        raise
    status, timed_out, milliseconds = run.count(result)
    call.entry.count_command(service.metrics, status, timed_out, milliseconds / 1000)
    return result


async def _events(
    call: Call[Any, Any],
    run: SessionRun[Result],
    cancellation: Cancellation,
    place: CommandPlace,
    emit: Emit,
) -> None:
    """Send what the code prints and displays, and how it ended."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def publish(name: str, value: object) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event(name, value))

    async def produce() -> None:
        try:
            result = await _result(call, run, cancellation, place, publish)
            queue.put_nowait(event("end", run.end(result)))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                log.error("bug while running code in a session", exc_info=error)
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


def on_text(publish: Publish | None, fd: int) -> Callable[[str], None] | None:
    """Sends output as events."""
    if publish is None:
        return None
    return lambda text: publish("output", OutputPiece(fd=fd, text=text))
