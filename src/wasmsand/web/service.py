"""The requests of a page's sandbox.

Owns `Service`, which answers requests by name. Names and fields are those of JSON-RPC
(docs/protocols/json-rpc.md), except that bytes travel beside the JSON text. Rules: every request is
answered once, by `reply` or `fail`, at once or later; a failure has the public exception's type and
errno. After each entry, what became ready is done.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from wasmsand.engine.javascript.engine import JavaScriptEngine
from wasmsand.engine.javascript.host import ModuleForm
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.vfs import FrozenTree
from wasmsand.machine.bug_log import log_bug
from wasmsand.machine.mounts.table import MountRequest
from wasmsand.machine.network.guest_trust import GUEST_VARIABLES
from wasmsand.rpc.params import Params
from wasmsand.rpc.protocol import RpcError
from wasmsand.sdk import arguments
from wasmsand.sdk.command_builder import CommandBuilder
from wasmsand.sdk.errors import (
    CommandError,
    PackageError,
    SandboxError,
    UnsupportedError,
    command_error,
)
from wasmsand.sdk.options import SandboxOptions
from wasmsand.web.commands import StartedCommand, TerminalCommand
from wasmsand.web.host import LEAVE, WebHost
from wasmsand.web.machine import WebMachine
from wasmsand.web.network.bridge import PageNetwork
from wasmsand.web.sessions import WebSession

Answer = tuple[dict[str, Any], bytes | None]
OK: Final[Answer] = ({"ok": True}, None)
_HANDLES_MAX: Final = 256
Handle = StartedCommand | TerminalCommand | WebSession[Any]
"""What a page knows by a number."""


class Service:
    """One sandbox, for JavaScript."""

    def __init__(
        self,
        host: WebHost,
        engine: JavaScriptEngine,
        image: FrozenTree,
        image_path: str,
        methods: Mapping[str, Handler],
    ) -> None:
        self._methods = methods
        self._host = host
        self._engine = engine
        self.image = self._base = image
        """The tree of a new sandbox: with the packages that it was created with."""
        self._image_path = image_path
        self.handles: dict[int, Handle] = {}
        self.last_handle = 0
        self.network = PageNetwork(host)
        self.mounts: dict[str, MountRequest] = {}
        """What is mounted, by path."""
        self.snapshots: dict[str, tuple[FrozenTree, dict[str, str]]] = {}
        self.begin(SandboxOptions(), image)

    def begin(self, options: SandboxOptions, image: FrozenTree) -> None:
        """Make a new machine, with these files."""
        self.options = options
        self.variables: dict[str, str] = dict(options.env)
        self.builder = CommandBuilder(options, self._all_variables)
        self.use(self.machine_with(image))

    def use(self, machine: WebMachine) -> None:
        """Go on with this machine."""
        self.machine = machine
        self._loop = machine.loop
        self._tasks = machine.loop.tasks
        # The last machine and its files refer to each other: few objects, which Python collects
        # late by itself, and many bytes.
        gc.collect()

    def begin_anew(self, options: SandboxOptions) -> None:
        """Make a new machine, with the files of the image and the packages of the options."""
        image = self._base
        if options.packages:
            # Imported here, because most sandboxes have no packages.
            from wasmsand.web.packages import image_with_packages

            packages = tuple(options.packages)
            image = image_with_packages(self._host, self._image_path, image, packages)
        self.machine.close()
        self.image = image
        self.begin(options, image)

    def new_machine(self) -> WebMachine:
        """A machine with the same options, and only the files of the image."""
        return self.machine_with(self.image)

    def machine_with(self, files: FrozenTree) -> WebMachine:
        """A machine with the same options, network and mounts, and these files."""
        limits = self.options.limits()
        machine = WebMachine(self._host, self._engine, files, limits, self.network)
        machine.bridge.use_policy()
        for request in self.mounts.values():
            machine.mounts.mount(request)
        return machine

    def _all_variables(self) -> dict[str, str]:
        """What commands start with."""
        if self.network.policy is None:
            return self.variables
        return {**GUEST_VARIABLES, **self.variables}

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
        """Another call of a guest: the name of a method of `Task`, and its arguments."""
        task = self._tasks.get(guest)
        if task is None:
            return LEAVE
        answer: int = getattr(task, what)(*arguments)
        self._loop.settle()
        return answer

    def module_fetched(self, key: str, form: ModuleForm) -> None:
        """The host has compiled a program."""
        self.machine.modules.module_fetched(key, form)
        self._loop.settle()

    def memory_fetched(self, key: str, image: int) -> None:
        """The host has a stored memory."""
        self.machine.modules.memory_fetched(key, image)
        self._loop.settle()

    def bytes_came(self, key: str) -> None:
        """The host has bytes of a file of the image, or cannot get them."""
        self.machine.contents.came(key)
        self._loop.settle()

    def fetch_failed(self, key: str, problem: str) -> None:
        """The host could not fetch something."""
        self.machine.modules.failed(key, problem)
        self._loop.settle()

    def authority_made(self, certificate: str) -> None:
        """The host has made the certificate authority."""
        self.network.authority_made(certificate.encode("ascii"))
        self._loop.settle()

    def heard(self, number: int, event: str, text: str, data: Any) -> None:
        """Something happened to a request or a TLS connection. `data` is a buffer, or None."""
        self.network.hear(number, event, text, b"" if data is None else bytes(data.to_py()))
        self._loop.settle()

    def may_use(self, number: int, address: str) -> bool:
        """Whether the host may connect to an address for a request."""
        return self.network.may_use(number, address)

    def time_passed(self) -> None:
        """The time has come that the host was told."""
        self._loop.time_passed()

    def tick(self) -> None:
        """Called every now and then while guests compute."""
        self._loop.tick()

    def kernel_bytes(self) -> int:
        """The memory of this Python."""
        return self._host.kernel_bytes()

    # Requests.

    def request(self, number: int, method: str, params: str, data: Any) -> None:
        """A request of the page. `data` is a buffer, or None."""
        content = None if data is None else bytes(data.to_py())
        self.machine.mounts.look_again()
        try:
            handler = self._methods.get(method)
            if handler is None:
                raise UnsupportedError(f"a page has no method {method!r}")
            answer = handler(self, Call(self, number, Params(json.loads(params)), content))
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

    def new_handle(self) -> int:
        """A number for something that a page starts."""
        if len(self.handles) >= _HANDLES_MAX:
            message = f"EMFILE: there are {_HANDLES_MAX} commands and sessions already; end one"
            raise CommandError(message, "EMFILE")
        self.last_handle += 1
        return self.last_handle

    def notify(self, handle: int, event: dict[str, Any], data: bytes | None = None) -> None:
        """Tell the page of an event of a started command."""
        self._host.notify(handle, json.dumps(event), data)

    def taken(self, handle: int, count: int) -> None:
        """The page has taken so many bytes of a command's or a terminal's output."""
        command = self.handles.get(handle)
        if isinstance(command, StartedCommand | TerminalCommand):
            command.window.taken(count)
            self._loop.settle()

    def drop(self, handle: int) -> None:
        """A started command has ended."""
        self.handles.pop(handle, None)


class Call:
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
        return arguments.guest_path(name, self.params.text(name), self.service.options.cwd)

    def request(self, command: object, stdin: bytes | None, timeout_ms: object) -> Any:
        """A complete command."""
        params = self.params
        if params.is_given("timeoutMs"):
            timeout_ms = params.optional(Params.number, "timeoutMs")
        return self.service.builder.request(
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
    if isinstance(error, RpcError):
        return {"type": "ValueError", "errno": "EINVAL", "message": error.message}
    if isinstance(error, SandboxError):
        usual = "ENOSYS" if isinstance(error, UnsupportedError) else "EIO"
        errno = getattr(error, "errno_name", usual)
        kind = "PackageError" if isinstance(error, PackageError) else type(error).__name__
        return {
            "type": kind,
            "errno": errno,
            "message": str(error),
            "path": getattr(error, "path", ""),
        }
    if isinstance(error, KernelError):
        return {"type": "CommandError", "errno": error.errno.name, "message": str(error)}
    if isinstance(error, TypeError | ValueError):
        kind = "TypeError" if isinstance(error, TypeError) else "ValueError"
        return {"type": kind, "errno": "EINVAL", "message": str(error)}
    log_bug("host bug in a request of the page")
    return {"type": "SandboxError", "errno": "EIO", "message": f"{type(error).__name__}: {error}"}


Handler = Callable[[Service, Call], Answer | None]
"""Answers a request now, or returns None and answers later."""
