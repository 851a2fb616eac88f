"""Commands that a model has started and looks after: `sandbox_start` and `sandbox_process`.

Owns `BackgroundCommands`, those of one sandbox. Rules: a thread of each command takes its output,
so that the command never waits for the model. Of output that the model has not asked for, only the
last `UNREAD_MAX` characters are kept. The number of running commands and of remembered ones is
bounded.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from wasmsand.sdk.command_handle import CommandHandle
from wasmsand.sdk.errors import CommandError, InputTimeoutError, SandboxError
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.tools.parameters import InvalidToolInput

RUNNING_MAX: Final = 8
REMEMBERED_MAX: Final = 32
UNREAD_MAX: Final = 128 * 1024
_WRITE_MS: Final = 5_000.0
_SETTLE_SECONDS: Final = 0.05
"""How long to wait for more output after the first."""
_KILL_SECONDS: Final = 5.0
_SHOWN_COMMAND: Final = 200


class BackgroundCommand:
    """One command. Used from any thread."""

    def __init__(self, name: str, handle: CommandHandle, command: str) -> None:
        self.name = name
        self.command = command
        self._handle = handle
        self._changed = threading.Condition()
        # Guarded by the condition:
        self._unread: deque[str] = deque()
        self._size = 0
        self._dropped = 0
        self._ended = False
        self._exit_code: int | None = None
        threading.Thread(target=self._read, name="wasmsand-background", daemon=True).start()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not self._ended

    def _read(self) -> None:
        code: int | None = None
        try:
            for chunk in self._handle:
                self._keep(chunk.text)
            code = self._handle.poll()
        except SandboxError:
            pass  # the sandbox was killed or restored
        finally:
            with self._changed:
                self._ended, self._exit_code = True, code
                self._changed.notify_all()

    def _keep(self, text: str) -> None:
        if not text:
            return
        with self._changed:
            self._unread.append(text)
            self._size += len(text)
            while self._size > UNREAD_MAX:
                oldest = self._unread.popleft()
                surplus = min(self._size - UNREAD_MAX, len(oldest))
                if surplus < len(oldest):
                    self._unread.appendleft(oldest[surplus:])
                self._size -= surplus
                self._dropped += surplus
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait for output, or for the end."""
        deadline = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: self._unread or self._ended, seconds)
            left = deadline - time.monotonic()
            if left > 0:
                self._changed.wait_for(lambda: self._ended, min(left, _SETTLE_SECONDS))

    def take(self) -> tuple[str, int]:
        """The output since the last call, and how many characters before it are lost."""
        with self._changed:
            text, dropped = "".join(self._unread), self._dropped
            self._unread.clear()
            self._size = self._dropped = 0
            return text, dropped

    def write(self, text: str) -> str | None:
        """Write to its input. Returns what went wrong."""
        try:
            self._handle.write_stdin(text, timeout_ms=_WRITE_MS)
        except InputTimeoutError as error:
            return f"it took only {error.written} bytes of the input; it does not read"
        except CommandError as error:
            return f"the input was not written: {error}"
        return None

    def end_input(self) -> None:
        """Close its input."""
        self._handle.close_stdin()

    def kill(self) -> None:
        """End it, and wait until it has ended."""
        self._handle.kill()
        with self._changed:
            self._changed.wait_for(lambda: self._ended, _KILL_SECONDS)

    def described(self) -> dict[str, Any]:
        """Its state, for the model."""
        with self._changed:
            state: dict[str, Any] = {"id": self.name, "running": not self._ended}
            if self._ended:
                state["exit_code"] = self._exit_code
            return state


class BackgroundCommands:
    """The commands of one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._commands: dict[str, BackgroundCommand] = {}
        self._count = 0

    def start(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """`sandbox_start`."""
        with self._lock:
            running = [name for name, each in self._commands.items() if each.running]
            if len(running) >= RUNNING_MAX:
                raise InvalidToolInput(
                    f"{RUNNING_MAX} commands are running already: {', '.join(running)}; end one "
                    "with sandbox_process and kill"
                )
            handle = self._sandbox.commands.start(
                given["command"], cwd=given["cwd"], env=given["env"]
            )
            self._count += 1
            name = f"c{self._count}"
            self._commands[name] = BackgroundCommand(name, handle, given["command"])
            for old in [name for name, each in self._commands.items() if not each.running]:
                if len(self._commands) > REMEMBERED_MAX:
                    del self._commands[old]
            return {"id": name, "pid": handle.pid}

    def find(self, name: str) -> BackgroundCommand:
        """The command with this id. Raises `InvalidToolInput`."""
        with self._lock:
            found = self._commands.get(name)
            known = ", ".join(self._commands) or "none"
        if found is None:
            raise InvalidToolInput(f"there is no command {name!r:.80}; commands: {known}")
        return found

    def listed(self) -> list[dict[str, Any]]:
        """All commands, for the model."""
        with self._lock:
            every = list(self._commands.values())
        return [{**each.described(), "command": each.command[:_SHOWN_COMMAND]} for each in every]

    def kill_all(self) -> None:
        """End every command."""
        with self._lock:
            every = list(self._commands.values())
            self._commands.clear()
        for each in every:
            if each.running:
                each.kill()
