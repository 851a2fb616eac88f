"""Started commands: start, read, write, wait, kill; and the list of processes."""

from __future__ import annotations

from typing import Any

from wasmsand.http.failures import ApiFailure
from wasmsand.http.messages import (
    CommandState,
    Done,
    InputDescriptor,
    KilledProcess,
    OutputBatch,
    ProcessList,
    ReadOutput,
    SendSignal,
    StartCommand,
    StartedCommands,
    WaitCommand,
    WriteInput,
    Written,
)
from wasmsand.http.routing import Call
from wasmsand.http.started import Started, command_end
from wasmsand.sdk.backend import BackendProcess, Ended

LONGEST_WAIT_MS = 20_000
"""Longest wait of one request. A client that wants to wait longer sends another request, and
so notices a lost server."""


async def start(call: Call[None, StartCommand]) -> CommandState:
    """`POST /v1/sandboxes/{sandbox}/commands`"""
    sandbox = call.entry.sandbox
    request = sandbox.command_request(call.body)

    def begin() -> BackendProcess:
        # It calls the sandbox, so it runs on this thread.
        sandbox.make_room()
        return sandbox.backend.start(request)

    sandbox.starting += 1
    try:
        with call.running_command():
            process = await call.in_command_thread(begin)
        return _state(sandbox.remember(process, call.body.session), None)
    finally:
        sandbox.starting -= 1


async def listing(call: Call[None, None]) -> StartedCommands:
    """`GET /v1/sandboxes/{sandbox}/commands`"""

    def states() -> list[CommandState]:
        return [
            _state(started, started.process.wait(0)) for started in call.entry.sandbox.all_started()
        ]

    return StartedCommands(commands=await call.in_file_thread(states))


async def wait(call: Call[WaitCommand, None]) -> CommandState:
    """`GET /v1/sandboxes/{sandbox}/commands/{command}`"""
    started = _named(call)
    seconds = min(call.query.wait_ms, LONGEST_WAIT_MS) / 1000
    with call.running_command():
        async with started.use() as process:
            ended = await call.in_command_thread(lambda: process.wait(seconds), seconds)
    return _state(started, ended)


async def output(call: Call[ReadOutput, None]) -> OutputBatch:
    """`GET /v1/sandboxes/{sandbox}/commands/{command}/output`"""
    started = _named(call)
    seconds = min(call.query.wait_ms, LONGEST_WAIT_MS) / 1000
    with call.running_command():
        async with started.use():
            return await started.batch(
                call.query.after, seconds, lambda read: call.in_command_thread(read, seconds)
            )


async def write_input(call: Call[WriteInput, bytes]) -> Written:
    """`POST /v1/sandboxes/{sandbox}/commands/{command}/input`"""
    started = _named(call)
    seconds = min(call.query.wait_ms, LONGEST_WAIT_MS) / 1000
    with call.running_command():
        async with started.use() as process:
            started.note_input(call.body, call.query.fd)
            written = await call.in_command_thread(
                lambda: process.write(call.body, call.query.fd, seconds), seconds
            )
    return Written(written=written)


async def close_input(call: Call[InputDescriptor, None]) -> Done:
    """`DELETE /v1/sandboxes/{sandbox}/commands/{command}/input`"""
    process = _named(call).process
    await call.in_file_thread(lambda: process.close_input(call.query.fd))
    return Done()


async def kill(call: Call[None, None]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/commands/{command}/kill`"""
    await call.in_file_thread(_named(call).process.kill)
    return Done()


async def forget(call: Call[None, None]) -> Done:
    """`DELETE /v1/sandboxes/{sandbox}/commands/{command}`"""
    call.entry.sandbox.forget(_named(call))
    return Done()


async def processes(call: Call[None, None]) -> ProcessList:
    """`GET /v1/sandboxes/{sandbox}/processes`"""
    backend = call.entry.sandbox.backend
    return ProcessList(processes=await call.in_file_thread(backend.processes))


async def signal(call: Call[None, SendSignal]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/processes/{pid}/signal`"""
    backend, pid = call.entry.sandbox.backend, _pid(call)
    await call.in_file_thread(lambda: backend.signal(pid, call.body.signal))
    return Done()


async def kill_process(call: Call[None, None]) -> KilledProcess:
    """`POST /v1/sandboxes/{sandbox}/processes/{pid}/kill`"""
    backend, pid = call.entry.sandbox.backend, _pid(call)
    return KilledProcess(killed=await call.in_file_thread(lambda: backend.kill_process(pid)))


def _pid(call: Call[Any, Any]) -> int:
    word = call.part("pid")
    if not word.isdecimal() or len(word) > 10:
        raise ApiFailure(400, "invalid_value", f"pid must be a number, not {word[:64]!r}")
    return int(word)


def _named(call: Call[Any, Any]) -> Started:
    return call.entry.sandbox.find_started(call.part("command"))


def _state(started: Started, ended: Ended | None) -> CommandState:
    end = None if ended is None else command_end(ended)
    return CommandState(id=started.id, pid=started.process.pid, end=end, batch=started.last.number)
