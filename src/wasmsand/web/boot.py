"""The entry points that JavaScript calls.

Owns `boot`, which makes the machine. Rules: JavaScript passes numbers, strings and bytes; results
go back as JSON text and bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wasmsand.engine.javascript.engine import JavaScriptEngine
from wasmsand.engine.javascript.host import TRANSFER_BYTES
from wasmsand.kernel.errno import KernelError
from wasmsand.machine.command import CommandRequest, Completed
from wasmsand.machine.image import image_at
from wasmsand.web.host import LEAVE, WebHost
from wasmsand.web.machine import WebMachine

transfer = bytearray(TRANSFER_BYTES)


class Service:
    """One machine, for JavaScript."""

    def __init__(self, host: WebHost, image: str) -> None:
        engine = JavaScriptEngine(host, transfer)
        self.machine = WebMachine(host, engine, image_at(Path(image)))
        self._loop = self.machine.loop
        self._tasks = self._loop.tasks
        self.module_fetched = self._then(self.machine.modules.module_fetched)
        self.memory_fetched = self._then(self.machine.modules.memory_fetched)
        self.fetch_failed = self._then(self.machine.modules.failed)
        self.time_passed = self._loop.time_passed
        self.tick = self._loop.tick

    def _then(self, act: Callable[..., None]) -> Callable[..., None]:
        def acted(*arguments: Any) -> None:
            act(*arguments)
            self._loop.settle()

        return acted

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

    def run(self, command: str, stdin: bytes, seconds: float, done: Callable[..., None]) -> None:
        """Run a command of bash."""
        environ = {
            "HOME": "/home/user", "USER": "user", "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8", "PWD": "/home/user", "SHELL": "/bin/bash",
        }  # fmt: skip
        request = CommandRequest(
            ("/bin/bash", "-c", command), environ, "/home/user", seconds or None, stdin
        )

        def ended(result: Completed | Exception) -> None:
            if isinstance(result, KernelError):
                done(-1, b"", str(result).encode(), 0.0)
            elif isinstance(result, Completed):
                done(result.exit_code, result.stdout, result.stderr, result.seconds)
            else:
                raise result

        self.machine.run(request, ended)


def boot(host: WebHost, image: str) -> Service:
    """Make a machine."""
    return Service(host, image)
