"""Requests that run commands, with captured output, with streams, and on a terminal.

Rules: a started command or a terminal has a number until it ends; its output and its end are
events.
"""

from __future__ import annotations

from typing import Any, Final

from wasmsand.kernel.errno import KernelError
from wasmsand.machine.command import Completed, Ended
from wasmsand.rpc import values
from wasmsand.rpc.params import Params
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT
from wasmsand.sdk.errors import CommandError, UnsupportedError
from wasmsand.sdk.local_mounts import mount_request
from wasmsand.sdk.network import policy_for
from wasmsand.sdk.options import SandboxOptions
from wasmsand.web.commands import CapturedCommand, StartedCommand, TerminalCommand
from wasmsand.web.methods_mounts import mount
from wasmsand.web.methods_network import use_network
from wasmsand.web.network.bridge import require_possible
from wasmsand.web.service import OK, Answer, Call, Handler, Service

_INTERACTIVE: Final = ("/bin/bash", "-i")


def _create(service: Service, call: Call) -> Answer | None:
    options = SandboxOptions(**values.options_in(call.params))
    if options.wasm_dir:
        raise UnsupportedError("a page does not offer the option wasm_dir")
    policy = None if options.network is None else policy_for(options.network)
    require_possible(service.network.host, policy)
    service.network.policy = None
    service.begin_anew(options)
    for path, described in options.mounts.items():
        request = mount_request(path, described)
        mount(service.machine, request)
        service.mounts[path] = request
    if policy is None:
        return OK
    use_network(service, call, policy)
    return None


def _ended(ended: Ended) -> dict[str, Any]:
    return {
        "exitCode": ended.exit_code,
        "timedOut": ended.timed_out,
        "executionTimeMs": round(ended.seconds * 1000, 3),
        "notices": list(ended.notices),
    }


def _run(service: Service, call: Call) -> None:
    def done(result: Completed) -> None:
        answer = _ended(result)
        answer["stdoutBytes"], answer["truncated"] = len(result.stdout), result.truncated
        service.reply(call.number, (answer, result.stdout + result.stderr))

    request = call.request(call.params.value("command"), call.data or b"", SANDBOX_TIMEOUT)
    CapturedCommand(service.machine, request, done, call.failed).launch()


class _Events:
    """What a started command or a terminal tells the page, under a number of its own."""

    def __init__(self, service: Service, call: Call) -> None:
        self._service = service
        self._call = call
        self.handle = service.new_handle()

    def started(self, pid: int) -> None:
        """The process runs."""
        self._service.reply(self._call.number, ({"handle": self.handle, "pid": pid}, None))

    def output(self, fd: int, data: bytes) -> None:
        """A command has printed something."""
        self._service.notify(self.handle, {"event": "output", "fd": fd}, data)

    def data(self, data: bytes) -> None:
        """A terminal shows something."""
        self._service.notify(self.handle, {"event": "data"}, data)

    def ended(self, how: Ended) -> None:
        """The process has ended."""
        self._service.notify(self.handle, {"event": "ended", **_ended(how)})
        self._service.drop(self.handle)

    def failed(self, error: KernelError) -> None:
        """The process could not be created."""
        self._service.drop(self.handle)
        self._call.failed(error)

    def launch(self, command: StartedCommand | TerminalCommand) -> None:
        """Start it."""
        self._service.handles[self.handle] = command
        command.launch()


def _start(service: Service, call: Call) -> None:
    stdin = None if call.params.flag("stdin") else call.data or b""
    request = call.request(call.params.value("command"), stdin, None)
    events = _Events(service, call)
    events.launch(
        StartedCommand(
            service.machine,
            request,
            on_started=events.started,
            on_output=events.output,
            on_end=events.ended,
            failed=events.failed,
        )
    )


def _started(service: Service, call: Call) -> StartedCommand:
    command = service.handles.get(call.params.integer("handle"))
    if not isinstance(command, StartedCommand):
        raise CommandError("EBADF: no such command: it has ended", "EBADF")
    return command


def _start_write(service: Service, call: Call) -> Answer:
    _started(service, call).write(call.data or b"")
    return OK


def _start_close(service: Service, call: Call) -> Answer:
    _started(service, call).close_input()
    return OK


def _handle_kill(service: Service, call: Call) -> Answer:
    command = service.handles.get(call.params.integer("handle"))
    if command is not None:
        command.kill()
    return OK


# Terminals.


def _pty_open(service: Service, call: Call) -> None:
    params = call.params
    command = params.value("command")
    environ = {"TERM": "xterm-256color", **(params.optional(Params.variables, "env") or {})}
    request = service.builder.request(
        _INTERACTIVE if command is None else command,
        stdin=b"",
        env=environ,
        cwd=params.optional(Params.text, "cwd"),
        timeout_ms=None,
    )
    rows, columns = params.integer("rows", 24), params.integer("cols", 80)
    events = _Events(service, call)
    events.launch(
        TerminalCommand(
            service.machine,
            request,
            rows,
            columns,
            on_started=events.started,
            on_data=events.data,
            on_end=events.ended,
            failed=events.failed,
        )
    )


def _terminal(service: Service, call: Call) -> TerminalCommand:
    terminal = service.handles.get(call.params.integer("handle"))
    if not isinstance(terminal, TerminalCommand):
        raise CommandError("EBADF: no such terminal: its command has ended", "EBADF")
    return terminal


def _pty_write(service: Service, call: Call) -> Answer:
    _terminal(service, call).write(call.data or b"")
    return OK


def _pty_resize(service: Service, call: Call) -> Answer:
    rows, columns = call.params.integer("rows"), call.params.integer("cols")
    _terminal(service, call).resize(rows, columns)
    return OK


def _pty_close(service: Service, call: Call) -> Answer:
    _terminal(service, call).close()
    return OK


COMMAND_METHODS: Final[dict[str, Handler]] = {
    "create": _create,
    "run": _run,
    "start": _start,
    "start.write": _start_write,
    "start.closeStdin": _start_close,
    "start.kill": _handle_kill,
    "pty.open": _pty_open,
    "pty.write": _pty_write,
    "pty.resize": _pty_resize,
    "pty.close": _pty_close,
}
