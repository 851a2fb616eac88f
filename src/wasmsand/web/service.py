"""The requests of a page's sandbox.

Owns `Service`, which answers requests by name. Names and fields are those of JSON-RPC
(docs/protocols/json-rpc.md), except that bytes travel beside the JSON text. Rules: every request is
answered once, by `reply` or `fail`, at once or later; a failure has the public exception's type and
errno. After each entry, what became ready is done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from wasmsand.engine.javascript.engine import JavaScriptEngine
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.vfs import FrozenTree
from wasmsand.machine.bug_log import log_bug
from wasmsand.machine.command import Completed, Ended
from wasmsand.machine.files import FileEntry
from wasmsand.machine.processes import list_processes, send_signal
from wasmsand.rpc import values
from wasmsand.rpc.params import Params
from wasmsand.rpc.protocol import RpcError
from wasmsand.sdk.command_builder import SANDBOX_TIMEOUT, CommandBuilder
from wasmsand.sdk.errors import SandboxError, command_error, file_errors
from wasmsand.sdk.options import SandboxOptions
from wasmsand.web.commands import CapturedCommand, StartedCommand, TerminalCommand
from wasmsand.web.host import LEAVE, WebHost
from wasmsand.web.machine import WebMachine

Answer = tuple[dict[str, Any], bytes | None]
OK: Final[Answer] = ({"ok": True}, None)
_HANDLES_MAX: Final = 256
_INTERACTIVE: Final = ("/bin/bash", "-i")


class Service:
    """One sandbox, for JavaScript."""

    def __init__(self, host: WebHost, engine: JavaScriptEngine, image: FrozenTree) -> None:
        self._host = host
        self._engine = engine
        self._image = image
        self._handles: dict[int, StartedCommand | TerminalCommand] = {}
        self._next = 0
        self._snapshots: dict[str, tuple[FrozenTree, dict[str, str]]] = {}
        self._begin(SandboxOptions(), image)

    def _begin(self, options: SandboxOptions, image: FrozenTree) -> None:
        self._options = options
        self._variables: dict[str, str] = dict(options.env)
        self._builder = CommandBuilder(options, lambda: self._variables)
        machine = WebMachine(self._host, self._engine, image, options.limits())
        self.machine = machine
        self._loop = machine.loop
        self._tasks = machine.loop.tasks

    # Calls of guests, and events of the host.

    def call(self, guest: int, nr: int, a: int, b: int, c: int, d: int, e: int, f: int) -> int:
        """A system call of a guest."""
        task = self._tasks.get(guest)
        if task is None:  # it has just been ended
            return LEAVE
        answer = task.call(nr, a, b, c, d, e, f)
        self._loop.settle()
        return answer

    def other(self, guest: int, what: str, *arguments: Any) -> int:
        """Another call of a guest: `fork_allowed`, `fork`, `returned`, `trapped`, `invoke`."""
        task = self._tasks.get(guest)
        if task is None:
            return LEAVE
        answer: int = getattr(task, what)(*arguments)
        self._loop.settle()
        return answer

    def module_fetched(self, key: str, form: object) -> None:
        """The host has compiled a program."""
        self.machine.modules.module_fetched(key, form)
        self._loop.settle()

    def memory_fetched(self, key: str, image: int) -> None:
        """The host has a stored memory."""
        self.machine.modules.memory_fetched(key, image)
        self._loop.settle()

    def fetch_failed(self, key: str, problem: str) -> None:
        """The host could not fetch something."""
        self.machine.modules.failed(key, problem)
        self._loop.settle()

    def time_passed(self) -> None:
        """The time has come that the host was told."""
        self._loop.time_passed()

    def tick(self) -> None:
        """Called every now and then while guests compute."""
        self._loop.tick()

    # Requests.

    def request(self, number: int, method: str, params: str, data: Any) -> None:
        """A request of the page. `data` is a buffer, or None."""
        content = None if data is None else bytes(data.to_py())
        try:
            handler = _METHODS.get(method)
            if handler is None:
                raise KeyError(method)
            answer = handler(self, _Call(self, number, Params(json.loads(params)), content))
            if answer is not None:
                self.reply(number, answer)
        except Exception as error:
            self.fail(number, error)
        self._loop.settle()

    def reply(self, number: int, answer: Answer) -> None:
        """Answer a request."""
        result, data = answer
        self._host.reply(number, json.dumps(result), data)

    def fail(self, number: int, error: Exception) -> None:
        """Answer a request with an error."""
        self._host.fail(number, json.dumps(_failure(error)))

    # Handles.

    def keep(self, command: StartedCommand | TerminalCommand) -> int:
        """Give a started command a number."""
        if len(self._handles) >= _HANDLES_MAX:
            command.kill()
            raise SandboxError(f"EMFILE: there are {_HANDLES_MAX} commands already; close one")
        self._next += 1
        self._handles[self._next] = command
        return self._next

    def notify(self, handle: int, event: dict[str, Any], data: bytes | None = None) -> None:
        """Tell the page of an event of a started command."""
        self._host.notify(handle, json.dumps(event), data)

    def drop(self, handle: int) -> None:
        """A started command has ended."""
        self._handles.pop(handle, None)


class _Call:
    """One request."""

    def __init__(self, service: Service, number: int, params: Params, data: bytes | None) -> None:
        self.service = service
        self.number = number
        self.params = params
        self.data = data

    @property
    def machine(self) -> WebMachine:
        """The machine now."""
        return self.service.machine

    def path(self, name: str = "path") -> str:
        """A path, which may be relative to the sandbox's directory."""
        path = self.params.text(name)
        return path if path.startswith("/") else f"{self.service._options.cwd}/{path}"

    def request(self, command: object, stdin: bytes | None, timeout_ms: object) -> Any:
        """A complete command."""
        params = self.params
        if params.is_given("timeoutMs"):
            timeout_ms = params.optional(Params.number, "timeoutMs")
        return self.service._builder.request(
            command,
            stdin=stdin,
            env=params.optional(Params.variables, "env"),
            cwd=params.optional(Params.text, "cwd"),
            timeout_ms=timeout_ms,
        )

    def failed(self, error: KernelError) -> None:
        """The command could not start."""
        self.service.fail(self.number, command_error(error, "the command"))


def _failure(error: Exception) -> dict[str, Any]:
    """An exception as JSON."""
    if isinstance(error, KeyError):
        return {"type": "UnsupportedError", "errno": "ENOSYS", "message": f"no method {error}"}
    if isinstance(error, RpcError):
        return {"type": "ValueError", "errno": "EINVAL", "message": error.message}
    if isinstance(error, SandboxError):
        errno = getattr(error, "errno_name", "EIO")
        kind = type(error).__name__
        return {"type": kind, "errno": errno, "message": str(error), "path": getattr(error, "path", "")}
    if isinstance(error, KernelError):
        return {"type": "CommandError", "errno": error.errno.name, "message": str(error)}
    if isinstance(error, TypeError | ValueError):
        return {"type": type(error).__name__, "errno": "EINVAL", "message": str(error)}
    log_bug("host bug in a request of the page")
    return {"type": "SandboxError", "errno": "EIO", "message": f"{type(error).__name__}: {error}"}


# Commands.


def _create(service: Service, call: _Call) -> Answer:
    options = SandboxOptions(**values.options_in(call.params))
    service.machine.close()
    service._begin(options, service._image)
    return OK


def _ended(ended: Ended) -> dict[str, Any]:
    return {
        "exitCode": ended.exit_code,
        "timedOut": ended.timed_out,
        "executionTimeMs": round(ended.seconds * 1000, 3),
        "notices": list(ended.notices),
    }


def _run(service: Service, call: _Call) -> None:
    def done(result: Completed) -> None:
        answer = _ended(result)
        answer["stdoutBytes"], answer["truncated"] = len(result.stdout), result.truncated
        service.reply(call.number, (answer, result.stdout + result.stderr))

    request = call.request(call.params.value("command"), call.data or b"", SANDBOX_TIMEOUT)
    CapturedCommand(service.machine, request, done, call.failed).launch()


def _start(service: Service, call: _Call) -> None:
    stdin = None if call.params.flag("stdin") else call.data or b""
    request = call.request(call.params.value("command"), stdin, None)
    handle = service._next + 1

    def ended(how: Ended) -> None:
        service.notify(handle, {"event": "ended", **_ended(how)})
        service.drop(handle)

    def failed(error: KernelError) -> None:
        service.drop(handle)
        call.failed(error)

    command = StartedCommand(
        service.machine,
        request,
        on_started=lambda pid: service.reply(call.number, ({"handle": handle, "pid": pid}, None)),
        on_output=lambda fd, data: service.notify(handle, {"event": "output", "fd": fd}, data),
        on_end=ended,
        failed=failed,
    )
    service.keep(command)
    command.launch()


def _started(service: Service, call: _Call) -> StartedCommand:
    command = service._handles.get(call.params.integer("handle"))
    if not isinstance(command, StartedCommand):
        raise SandboxError("EBADF: no such command: it has ended")
    return command


def _start_write(service: Service, call: _Call) -> Answer:
    _started(service, call).write(call.data or b"")
    return OK


def _start_close(service: Service, call: _Call) -> Answer:
    _started(service, call).close_input()
    return OK


def _handle_kill(service: Service, call: _Call) -> Answer:
    command = service._handles.get(call.params.integer("handle"))
    if command is not None:
        command.kill()
    return OK


# Terminals.


def _pty_open(service: Service, call: _Call) -> None:
    params = call.params
    command = params.value("command")
    environ = {"TERM": "xterm-256color", **(params.optional(Params.variables, "env") or {})}
    request = service._builder.request(
        _INTERACTIVE if command is None else command,
        stdin=b"",
        env=environ,
        cwd=params.optional(Params.text, "cwd"),
        timeout_ms=None,
    )
    handle = service._next + 1

    def ended(how: Ended) -> None:
        service.notify(handle, {"event": "ended", **_ended(how)})
        service.drop(handle)

    terminal = TerminalCommand(
        service.machine,
        request,
        params.integer("rows", 24),
        params.integer("cols", 80),
        on_started=lambda pid: service.reply(call.number, ({"handle": handle, "pid": pid}, None)),
        on_data=lambda data: service.notify(handle, {"event": "data"}, data),
        on_end=ended,
        failed=call.failed,
    )
    service.keep(terminal)
    terminal.launch()


def _terminal(service: Service, call: _Call) -> TerminalCommand:
    terminal = service._handles.get(call.params.integer("handle"))
    if not isinstance(terminal, TerminalCommand):
        raise SandboxError("EBADF: no such terminal: its command has ended")
    return terminal


def _pty_write(service: Service, call: _Call) -> Answer:
    _terminal(service, call).write(call.data or b"")
    return OK


def _pty_resize(service: Service, call: _Call) -> Answer:
    rows, columns = call.params.integer("rows"), call.params.integer("cols")
    _terminal(service, call).resize(rows, columns)
    return OK


def _pty_close(service: Service, call: _Call) -> Answer:
    _terminal(service, call).close()
    return OK


# Files.


def _file(entry: FileEntry) -> dict[str, Any]:
    return {
        "name": entry.name, "type": entry.type, "size": entry.size, "mode": entry.mode,
        "mtimeNs": str(entry.mtime_ns), "path": entry.path,
    }  # fmt: skip


def _on_file(act: Callable[[Service, _Call, str], Answer]) -> Callable[[Service, _Call], Answer]:
    def acted(service: Service, call: _Call) -> Answer:
        path = call.path("source" if call.params.has("source") else "path")
        with file_errors(path):
            return act(service, call, path)

    return acted


def _write(service: Service, call: _Call, path: str) -> Answer:
    mode = call.params.optional(Params.integer, "mode")
    service.machine.files.write(path, call.data or b"", mode=mode)
    return OK


def _append(service: Service, call: _Call, path: str) -> Answer:
    service.machine.files.append(path, call.data or b"")
    return OK


def _read(service: Service, call: _Call, path: str) -> Answer:
    params = call.params
    count = params.optional(Params.integer, "count")
    return {}, service.machine.files.read(path, params.integer("offset", 0), count)


def _list(service: Service, call: _Call, path: str) -> Answer:
    files = service.machine.files
    listed = files.tree(path) if call.params.flag("recursive") else files.list(path)
    return {"entries": [_file(entry) for entry in listed]}, None


def _stat(service: Service, call: _Call, path: str) -> Answer:
    follow = call.params.value("follow") is not False
    return _file(service.machine.files.stat(path, follow=follow)), None


def _mkdir(service: Service, call: _Call, path: str) -> Answer:
    service.machine.files.mkdir(path, parents=call.params.value("parents") is not False)
    return OK


def _rm(service: Service, call: _Call, path: str) -> Answer:
    service.machine.files.remove(path, recursive=call.params.flag("recursive"))
    return OK


def _rename(service: Service, call: _Call, path: str) -> Answer:
    service.machine.files.rename(path, call.path("target"))
    return OK


def _copy(service: Service, call: _Call, path: str) -> Answer:
    service.machine.files.copy(path, call.path("target"))
    return OK


def _chmod(service: Service, call: _Call, path: str) -> Answer:
    service.machine.files.chmod(path, call.params.integer("mode"))
    return OK


def _symlink(service: Service, call: _Call, path: str) -> Answer:
    service.machine.files.symlink(call.params.text("target"), path)
    return OK


def _readlink(service: Service, call: _Call, path: str) -> Answer:
    return {"target": service.machine.files.read_link(path)}, None


# Environment, processes, copies.


def _env_set(service: Service, call: _Call) -> Answer:
    service._variables[call.params.text("name")] = call.params.text("value")
    return OK


def _env_get(service: Service, call: _Call) -> Answer:
    return {"value": service._variables.get(call.params.text("name"))}, None


def _env_unset(service: Service, call: _Call) -> Answer:
    service._variables.pop(call.params.text("name"), None)
    return OK


def _env_all(service: Service, call: _Call) -> Answer:
    return {"variables": dict(service._variables)}, None


def _usage(service: Service, call: _Call) -> Answer:
    kernel = service.machine.kernel
    limits, space, cpu = kernel.limits, kernel.root.space, kernel.usage()
    kernel.ledger.see()
    return {
        "fsBytes": space.used_bytes, "fsLimitBytes": limits.fs_limit_bytes,
        "inodes": space.used_inodes, "maxInodes": limits.max_inodes,
        "processes": len(kernel.processes) - 1, "maxProcesses": limits.max_processes,
        "memoryBytes": kernel.ledger.used, "memoryLimitBytes": limits.memory_limit_bytes,
        "cpuTimeMs": (cpu.user_ns + cpu.system_ns) / 1e6,
    }, None  # fmt: skip


def _processes(service: Service, call: _Call) -> Answer:
    entries = list_processes(service.machine)  # type: ignore[arg-type]
    return {
        "processes": [
            {
                "pid": entry.pid,
                "parentPid": entry.parent_pid,
                "command": [word.decode("utf-8", "replace") for word in entry.argv],
                "state": entry.state,
                "memoryBytes": entry.memory_bytes,
            }
            for entry in entries
        ]
    }, None


def _signal(service: Service, call: _Call) -> Answer:
    pid, signal = call.params.integer("pid"), call.params.integer("signal", 9)
    send_signal(service.machine, pid, signal)  # type: ignore[arg-type]
    return OK


def _snapshot(service: Service, call: _Call) -> Answer:
    name = call.params.optional(Params.text, "name") or f"snapshot-{len(service._snapshots) + 1}"
    tree = service.machine.kernel.root.freeze()
    service._snapshots[name] = (tree.merged() if tree.is_long else tree, dict(service._variables))
    return {"snapshot": name}, None


def _restore(service: Service, call: _Call) -> Answer:
    name = call.params.text("snapshot")
    kept = service._snapshots.get(name)
    if kept is None:
        raise SandboxError(f"ENOENT: no snapshot {name!r}")
    tree, variables = kept
    service.machine.close()
    service._begin(service._options, tree)
    service._variables.update(variables)
    return OK


def _snapshots_list(service: Service, call: _Call) -> Answer:
    return {"snapshots": list(service._snapshots)}, None


def _snapshots_delete(service: Service, call: _Call) -> Answer:
    service._snapshots.pop(call.params.text("snapshot"), None)
    return OK


Handler = Callable[[Service, _Call], Answer | None]
_METHODS: Final[Mapping[str, Handler]] = {
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
    "files.write": _on_file(_write),
    "files.append": _on_file(_append),
    "files.read": _on_file(_read),
    "files.list": _on_file(_list),
    "files.stat": _on_file(_stat),
    "files.mkdir": _on_file(_mkdir),
    "files.rm": _on_file(_rm),
    "files.rename": _on_file(_rename),
    "files.copy": _on_file(_copy),
    "files.chmod": _on_file(_chmod),
    "files.symlink": _on_file(_symlink),
    "files.readlink": _on_file(_readlink),
    "env.set": _env_set,
    "env.get": _env_get,
    "env.unset": _env_unset,
    "env.all": _env_all,
    "usage": _usage,
    "processes.list": _processes,
    "processes.kill": _signal,
    "snapshot": _snapshot,
    "restore": _restore,
    "snapshots.list": _snapshots_list,
    "snapshots.delete": _snapshots_delete,
}
