"""`Terminal`: a program on a pseudo-terminal, from `sandbox.pty()`.

Owns what users do with a terminal, and the thread that calls `on_data`. Rules: output is bytes,
because escape sequences and characters arrive in pieces; a program whose output is not read waits,
as with Ctrl-S; a terminal that nobody holds any more hangs up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import CANCELLATION, BackendTerminal, CommandRequest
from wasmsand.sdk.command_builder import CommandBuilder, SandboxUser
from wasmsand.sdk.environment import BASE_VARIABLES
from wasmsand.sdk.errors import InputTimeoutError, SandboxError

DataSink = Callable[[bytes], object]
"""A callback for the output of a terminal."""

COLUMNS: Final = 80
ROWS: Final = 24
DEFAULT_TERM: Final = "xterm-256color"
_SHELL: Final = ("/bin/bash",)
_STEP_SECONDS: Final = 0.2
"""How long a write may continue after the call was cancelled."""


def terminal_request(
    builder: CommandBuilder,
    command: object,
    *,
    env: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: object = None,
    user: object = None,
) -> CommandRequest:
    """The request for a program on a terminal; the arguments are those of `CommandBuilder`. Without
    `command` it is an interactive shell. Unless somebody has chosen `TERM`, set it."""
    request = builder.request(
        _SHELL if command is None else command,
        stdin=None,
        env=env,
        environ=environ,
        cwd=cwd,
        timeout_ms=None,
        user=user,
    )
    is_chosen = environ is not None or "TERM" in (env or {})
    if not is_chosen and request.environ.get("TERM") == BASE_VARIABLES["TERM"]:
        return replace(request, environ={**request.environ, "TERM": DEFAULT_TERM})
    return request


class Terminal:
    """A program on a pseudo-terminal: type, read the screen's bytes, change the window's size.

    Example:
        with sandbox.pty() as terminal:
            terminal.write("stty size; exit 3\\n")
            screen = b"".join(terminal)
            terminal.wait()
    """

    def __init__(
        self,
        attachment: Attachment,
        builder: CommandBuilder,
        command: str | Sequence[str] | None,
        *,
        cols: int,
        rows: int,
        env: Mapping[str, str] | None,
        cwd: object,
        user: SandboxUser,
        on_data: DataSink | None,
    ) -> None:
        arguments.callback("on_data", on_data)
        size = (arguments.window_size("cols", cols), arguments.window_size("rows", rows))
        request = terminal_request(builder, command, env=env, cwd=cwd, user=user)
        self._attachment = attachment
        self._argv = request.argv
        self._size = size
        self._terminal = attachment.backend.open_terminal(request, size[1], size[0])
        self._exit_code: int | None = None
        self._closed = False
        self._delivery: _Delivery | None = None
        if on_data is not None:
            self._delivery = _Delivery(self._terminal, on_data)

    @property
    def pid(self) -> int:
        """The process ID of the program in the sandbox."""
        return self._terminal.pid

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the window."""
        return self._size

    @property
    def exit_code(self) -> int | None:
        """The program's exit code, once `wait`, `poll` or the end of the output has shown it."""
        return self._exit_code

    @property
    def closed(self) -> bool:
        """Whether the terminal was closed, by `close` or with its sandbox."""
        return self._closed or self._attachment.closed

    def write(self, data: bytes | str, *, timeout_ms: float | None = None) -> None:
        """Type `data`; text is encoded as UTF-8. Enter is `\\r` or `\\n`, Ctrl-C is `\\x03`, Ctrl-D
        is `\\x04`. Waits while the program does not read what was typed before.

        Example:
            terminal.write("ls --color\\n")
            terminal.write("\\x03")

        Raises `InputTimeoutError` if not all of `data` is typed after `timeout_ms`: its `written`
        is the number of bytes typed. Raises `CommandError` with EPIPE if the program has ended, and
        with EBADF after `close`.
        """
        self._attachment.check_open()
        content = arguments.content("data", data)
        timeout = arguments.timeout_seconds("timeout_ms", timeout_ms)
        written = self._write_all(content, timeout)
        if written < len(content):
            self._attachment.check_open()
            raise InputTimeoutError(written, len(content))

    def _write_all(self, content: bytes, timeout_seconds: float | None) -> int:
        cancellation = CANCELLATION.get()
        if cancellation is None:
            return self._terminal.write(content, timeout_seconds)
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        done = 0
        while True:
            step = _STEP_SECONDS
            if deadline is not None:
                step = max(0.0, min(step, deadline - time.monotonic()))
            done += self._terminal.write(content[done:], step)
            is_over = deadline is not None and time.monotonic() >= deadline
            if done == len(content) or cancellation.cancelled or is_over:
                return done

    def read(self, *, timeout_ms: float | None = None) -> bytes:
        """Wait for output, and return it; empty when the program has ended and all its output was
        read.

        Example:
            terminal.read(timeout_ms=1_000)

        Raises `TimeoutError` if there is none for `timeout_ms`. One thread reads at a time. With
        `on_data`, output cannot be read.
        """
        self._attachment.check_open()
        timeout = arguments.timeout_seconds("timeout_ms", timeout_ms)
        self._check_readable()
        try:
            data = self._terminal.read(timeout_seconds=timeout)
        except TimeoutError:
            self._attachment.check_open()
            raise TimeoutError("the terminal showed nothing before the timeout") from None
        if not data:
            self._attachment.check_open()
            self._look_for_end()
        return data

    def __iter__(self) -> Iterator[bytes]:
        """Yield the output as it arrives, until the program has ended.

        Example:
            for data in sandbox.pty("ls --color /"):
                sys.stdout.buffer.write(data)
        """
        while data := self.read():
            yield data

    def _check_readable(self) -> None:
        if self._delivery is not None:
            raise ValueError("the output of this terminal goes to on_data")

    def resize(self, cols: int, rows: int) -> None:
        """Change the size of the window; the programs get SIGWINCH.

        Example:
            terminal.resize(132, 50)
        """
        size = (arguments.window_size("cols", cols), arguments.window_size("rows", rows))
        self._attachment.check_open()
        self._terminal.resize(size[1], size[0])
        self._size = size

    def wait(self, *, timeout_ms: float | None = None) -> int:
        """Wait for the end of the program, and return its exit code.

        Example:
            terminal.wait(timeout_ms=5_000)

        A program whose output nobody reads may wait forever: read it first, or use `on_data`; then
        `wait` returns after the last call of `on_data`, and raises what it raised. Raises
        `TimeoutError` if the program is still running after `timeout_ms`.
        """
        self._attachment.check_open()
        timeout = arguments.timeout_seconds("timeout_ms", timeout_ms)
        began = time.monotonic()
        code = self._exit_code if self._exit_code is not None else self._terminal.wait(timeout)
        self._attachment.check_open()
        if code is None:
            raise TimeoutError("the program on the terminal is still running")
        self._exit_code = code
        if self._delivery is not None:
            left = None if timeout is None else max(0.0, began + timeout - time.monotonic())
            self._delivery.join(left)
        return code

    def poll(self) -> int | None:
        """Return the exit code, or None while the program is running.

        Example:
            terminal.poll() is None
        """
        self._attachment.check_open()
        if self._exit_code is None:
            self._exit_code = self._terminal.wait(0)
        return self._exit_code

    def _look_for_end(self) -> None:
        if self._exit_code is None and not self._closed:
            self._exit_code = self._terminal.wait(0)

    def kill(self) -> None:
        """End every process that was started on the terminal, at once. Output that was not read
        can still be read. Calling it again does nothing.

        Example:
            terminal.kill()
        """
        if not self.closed:
            self._terminal.kill()

    def close(self) -> None:
        """Hang up: the programs get SIGHUP, as when a terminal's window is closed. A program that
        ignores SIGHUP (`nohup`) keeps running. Calling it again does nothing.

        Example:
            terminal.close()
        """
        if not self.closed:
            self._closed = True
            try:
                self._terminal.close()
            except SandboxError:
                if not self._attachment.closed:
                    raise

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """`kill` and `close`. The end of a `with` block does this.

        Example:
            terminal.end()
        """
        self.kill()
        self.close()

    def __repr__(self) -> str:
        state = " closed" if self.closed else ""
        if self._exit_code is not None:
            state = f" exit_code={self._exit_code}"
        columns, rows = self._size
        return f"<Terminal pid={self.pid} {columns}x{rows}{state} {' '.join(self._argv)!r}>"


class _Delivery:
    """The thread that passes output to `on_data`. It does not refer to the `Terminal`."""

    def __init__(self, terminal: BackendTerminal, on_data: DataSink) -> None:
        self._failure: BaseException | None = None
        self._thread = threading.Thread(
            target=self._deliver, args=(terminal, on_data), name="wasmsand-terminal", daemon=True
        )
        self._thread.start()

    def _deliver(self, terminal: BackendTerminal, on_data: DataSink) -> None:
        try:
            while data := terminal.read():
                on_data(data)
        except SandboxError:
            pass  # the sandbox has ended
        except BaseException as error:
            self._failure = error
            terminal.close()

    def join(self, timeout_seconds: float | None) -> None:
        """Wait until all output is delivered. Raises what `on_data` raised."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout_seconds)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            raise TimeoutError("on_data has not received all output yet")
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
