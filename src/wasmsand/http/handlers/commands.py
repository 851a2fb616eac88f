"""Runs a command to its end. The response is the result, or a stream of events."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import msgspec
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from wasmsand.http import long_answers
from wasmsand.http.failures import ApiFailure, failure_of
from wasmsand.http.messages import RunCommand, piece
from wasmsand.http.quotas import CommandPlace
from wasmsand.http.routing import Call
from wasmsand.http.service import log
from wasmsand.http.started import command_end, output_of
from wasmsand.http.streaming import (
    EVENT_STREAM,
    HEARTBEAT,
    Emit,
    Streaming,
    event,
    unless_disconnected,
)
from wasmsand.sdk.backend import (
    BackendProcess,
    Cancellation,
    CommandRequest,
    Completed,
)


async def run(call: Call[None, RunCommand]) -> Response:
    """`POST /v1/sandboxes/{sandbox}/run`"""
    request = call.entry.sandbox.command_request(call.body)
    with call.running_command() as place:
        if EVENT_STREAM in call.request.headers.get("accept", ""):
            return await _streamed(call, request, place)
        pieces = await _completed(call, request, place)
        with ExitStack() as held:
            held.callback(place.keep().release)
            return long_answers.answer(pieces, held.pop_all())


async def _completed(
    call: Call[None, RunCommand], request: CommandRequest, place: CommandPlace
) -> list[bytes]:
    """Run the command on a thread. If the client disconnects, kill the command."""
    service, sandbox = call.service, call.entry.sandbox
    cancellation = Cancellation()

    def work() -> tuple[Completed, list[bytes]]:
        completed = sandbox.backend.run(request, cancellation)
        sandbox.check_alive()
        return completed, _outcome(completed)

    seconds = request.timeout_seconds or service.settings.max_command_seconds
    running = call.in_command_thread(work, seconds, then=place.keep().release)
    try:
        completed, pieces = await unless_disconnected(running, call.request.receive)
    except (ClientDisconnect, asyncio.CancelledError, ApiFailure):
        # Cancelling takes the sandbox's lock, so do it on a thread.
        service.endings.run(cancellation.cancel).add_done_callback(place.keep().release)
        raise
    call.entry.count_command(
        service.metrics, completed.exit_code, completed.timed_out, completed.seconds
    )
    return pieces


async def _streamed(
    call: Call[None, RunCommand], request: CommandRequest, place: CommandPlace
) -> Streaming:
    service, sandbox = call.service, call.entry.sandbox
    with ExitStack() as held:
        held.enter_context(service.registry.use(call.entry))
        process = await call.in_command_thread(
            lambda: sandbox.backend.start(request), then=place.keep().release
        )
        place.keep()

        def end() -> None:
            # A client that disconnects ends its command. Killing an ended command does nothing.
            service.endings.run(process.kill).add_done_callback(place.release)

        held.callback(end)
        return Streaming(
            lambda emit: _events(call, process, emit), EVENT_STREAM, held=held.pop_all()
        )


async def _events(call: Call[None, RunCommand], process: BackendProcess, emit: Emit) -> None:
    """Send a command's output, and how it ended."""
    service, sandbox = call.service, call.entry.sandbox
    seconds = service.settings.heartbeat_seconds
    try:
        while True:
            outputs = await call.in_command_thread(lambda: output_of(process, seconds), seconds)
            if outputs is None:
                await emit(HEARTBEAT)
            elif outputs:
                await emit(b"".join(event("output", piece(item.fd, item.data)) for item in outputs))
            else:
                break
        ended = await call.in_command_thread(process.wait, service.settings.max_command_seconds)
        assert ended is not None, "a wait without a timeout waits for the end"
        sandbox.check_alive()
        call.entry.count_command(service.metrics, ended.exit_code, ended.timed_out, ended.seconds)
        await emit(event("end", command_end(ended)))
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            log.error("bug while streaming output", exc_info=error)
            failure = ApiFailure(500, "internal", "bug in the server; see its log")
        await emit(event("error", failure.body()))


def _outcome(completed: Completed) -> list[bytes]:
    """The JSON of a `CommandOutcome`."""
    plain = msgspec.to_builtins(command_end(completed))
    plain["truncated"] = completed.truncated
    return long_answers.object_with_bytes(
        plain, {"stdout": completed.stdout, "stderr": completed.stderr}
    )
