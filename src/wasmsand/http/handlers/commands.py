"""Commands: run one to its end, with a result or with a stream of events."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from starlette.requests import ClientDisconnect

from wasmsand.http.computer import Computer
from wasmsand.http.failures import ApiFailure, failure_of
from wasmsand.http.messages import CommandEnd, CommandOutcome, RunCommand, piece, text_or_base64
from wasmsand.http.routing import Call
from wasmsand.http.service import Service, log
from wasmsand.http.started import output_of
from wasmsand.http.streaming import EVENT_STREAM, HEARTBEAT, Emit, Streaming, event, unless_gone
from wasmsand.sdk.backend import (
    BackendProcess,
    Cancellation,
    CommandRequest,
    Completed,
    Ended,
)


async def run(call: Call[None, RunCommand]) -> CommandOutcome | Streaming:
    """`POST /v1/sandboxes/{sandbox}/run`"""
    request = call.entry.computer.command_request(call.body)
    if EVENT_STREAM in call.request.headers.get("accept", ""):
        return await _streamed(call, request)
    with call.service.quotas.running_command(call.owner):
        return _outcome(call.service, await _completed(call, request))


async def _completed(call: Call[None, RunCommand], request: CommandRequest) -> Completed:
    """Run on a thread; a client that goes away takes its command with it."""
    service, computer = call.service, call.entry.computer
    cancellation = Cancellation()

    def work() -> Completed:
        completed = computer.backend.run(request, cancellation)
        computer.check_alive()
        return completed

    try:
        return await unless_gone(service.in_command_thread(work), call.request.receive)
    except (ClientDisconnect, asyncio.CancelledError):
        cancellation.cancel()
        raise


async def _streamed(call: Call[None, RunCommand], request: CommandRequest) -> Streaming:
    service, computer = call.service, call.entry.computer
    with ExitStack() as held:
        held.enter_context(service.registry.use(call.entry))
        held.enter_context(service.quotas.running_command(call.owner))
        process = await service.in_command_thread(lambda: computer.backend.start(request))
        # Whoever stops listening ends the command; to end one that has ended does nothing.
        held.callback(service.in_background, process.kill)
        return Streaming(
            lambda emit: _events(service, computer, process, emit),
            EVENT_STREAM,
            held=held.pop_all(),
        )


async def _events(
    service: Service, computer: Computer, process: BackendProcess, emit: Emit
) -> None:
    """Send what a command prints, and how it ends."""
    seconds = service.settings.heartbeat_seconds
    try:
        while True:
            outputs = await service.in_command_thread(lambda: output_of(process, seconds))
            if outputs is None:
                await emit(HEARTBEAT)
            elif outputs:
                await emit(b"".join(event("output", piece(item.fd, item.data)) for item in outputs))
            else:
                break
        ended = await service.in_command_thread(process.wait)
        assert ended is not None, "a wait without a timeout waits for the end"
        computer.check_alive()
        service.metrics.count_command(ended.exit_code, ended.timed_out, ended.seconds)
        await emit(event("end", command_end(ended)))
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            log.error("bug while output was streamed", exc_info=error)
            failure = ApiFailure(500, "internal", "a bug of the server; its log says more")
        await emit(event("error", failure.body()))


def _outcome(service: Service, completed: Completed) -> CommandOutcome:
    end = command_end(completed.ended)
    service.metrics.count_command(end.exit_code, end.timed_out, completed.ended.seconds)
    stdout, stdout_base64 = text_or_base64(completed.stdout)
    stderr, stderr_base64 = text_or_base64(completed.stderr)
    return CommandOutcome(
        exit_code=end.exit_code,
        timed_out=end.timed_out,
        execution_time_ms=end.execution_time_ms,
        notices=end.notices,
        truncated=completed.truncated,
        stdout=stdout,
        stdout_base64=stdout_base64,
        stderr=stderr,
        stderr_base64=stderr_base64,
    )


def command_end(ended: Ended) -> CommandEnd:
    """How a command ended, for a client."""
    return CommandEnd(
        exit_code=ended.exit_code,
        timed_out=ended.timed_out,
        execution_time_ms=ended.seconds * 1000,
        notices=list(ended.notices),
    )
