"""Connects the user's terminal to a terminal of the sandbox.

Owns `attach`, which `run`, `shell` and `python` use if they have a terminal. Rules: meanwhile the
user's terminal is in raw mode and every byte passes unchanged in both directions, so that the guest
handles editing, job control and Ctrl-C. Its settings, and the modes that the guest has left on its
screen, are always restored, also after SIGTERM. A signal handler only sets a flag; the interpreter
wakes the loop when the signal arrives, because the handler itself runs only once the loop is awake.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from wasmsand.sdk.errors import CommandError, InputTimeoutError, SandboxError

if TYPE_CHECKING:
    from wasmsand.sdk.sandbox import Sandbox
    from wasmsand.sdk.terminal import Terminal

_CHUNK: Final = 65536
_PASSED_ON: Final = ("TERM", "COLORTERM", "NO_COLOR")
"""Variables that describe the user's terminal; no others are passed on."""
_TYPING_MS: Final = 50.0
"""How long one attempt to pass keys on may take."""
_TIMEOUT_STATUS: Final = 124
_RESTORE_SECONDS: Final = 0.5
"""How long the terminal of a user who does not read is waited for at the end."""
_MODE: Final = re.compile(rb"\x1b\[\?([0-9;]{1,32})([hl])")
_RESTORED: Final = {
    b"1": b"l",  # application cursor keys
    b"25": b"h",  # cursor
    b"47": b"l",  # alternate screens
    b"1047": b"l",
    b"1049": b"l",
    b"1000": b"l",  # mouse
    b"1002": b"l",
    b"1003": b"l",
    b"1004": b"l",  # focus
    b"1006": b"l",
    b"2004": b"l",  # bracketed paste
}
"""Modes of the screen, and what they should be when the guest has ended."""


def has_terminal() -> bool:
    """Whether all standard streams are a terminal that can be put into raw mode. A job in the
    background may not do that: it would be stopped."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if any(stream is None or not stream.isatty() for stream in streams):
        return False
    try:
        import termios  # noqa: F401  # not on Windows
    except ImportError:
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # not our controlling terminal, so nobody stops us
        return True


def attach(
    sandbox: Sandbox,
    command: str | Sequence[str] | None,
    *,
    env: Mapping[str, str],
    cwd: str | None,
    timeout_seconds: float | None = None,
) -> int:
    """Run `command`, or an interactive bash, on a terminal that is connected to the user's. Returns
    the exit status. Raises `CommandError` if it cannot be started."""
    keyboard, screen = sys.stdin.fileno(), sys.stdout.fileno()
    known = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    columns, rows = _size(screen)
    variables = {"TERM": "dumb", **known, **env}
    terminal = sandbox.pty(command, cols=columns, rows=rows, env=variables, cwd=cwd)
    sys.stdout.flush()
    with terminal:
        return _Connection(terminal, keyboard, screen, timeout_seconds).run()


def _size(screen: int) -> tuple[int, int]:
    """Columns and rows of the user's window; 80 by 24 if the system does not know them."""
    columns, rows = os.get_terminal_size(screen)
    return (columns or 80, rows or 24)


class _Connection:
    """The user's terminal and the guest's."""

    def __init__(
        self, terminal: Terminal, keyboard: int, screen: int, timeout_seconds: float | None
    ) -> None:
        self._terminal = terminal
        self._keyboard = keyboard
        self._screen = screen
        self._deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._modes = _Modes()
        self._typed = b""
        """Keys that the guest has not taken yet."""
        self._has_keyboard = True
        # Set by signal handlers and by the thread that shows output:
        self._resized = True  # the window may have changed before the handlers were there
        self._suspended = False
        self._signal: int | None = None
        self._ended = False
        self._failure: Exception | None = None

    def run(self) -> int:
        """Move bytes both ways until the guest's side ends. Returns the exit status."""
        wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        output = threading.Thread(target=self._show_output, name="wasmsand-screen", daemon=True)
        try:
            with _raw_mode(self._keyboard) as raw, self._signals():
                output.start()
                status = self._loop(wake_read, raw)
                if status is None:
                    output.join()
                _write_quietly(self._screen, self._modes.restoring())
        finally:
            if not output.is_alive():
                os.close(self._wake_write)
            os.close(wake_read)
        if status == _TIMEOUT_STATUS:
            print("wasmsand: command timed out", file=sys.stderr)
        if status is not None:
            return status
        if self._failure is not None:
            raise self._failure
        return self._terminal.wait()

    def _loop(self, wake_read: int, raw: _RawMode) -> int | None:
        """Pass keys on. Returns a status if the guest has not ended by itself."""
        while not self._ended:
            if self._signal is not None:
                return 128 + self._signal
            if self._deadline is not None and time.monotonic() >= self._deadline:
                return _TIMEOUT_STATUS
            sources = [wake_read]
            if self._has_keyboard and not self._typed:
                sources.append(self._keyboard)
            ready, _, _ = select.select(sources, [], [], self._patience())
            if wake_read in ready:
                os.read(wake_read, _CHUNK)
            self._follow_window()
            self._follow_suspension(raw)
            if self._keyboard in ready:
                self._typed = self._read_keyboard()
            self._type()
        return None

    def _patience(self) -> float | None:
        if self._typed:
            return 0.0
        if self._deadline is None:
            return None
        return max(0.0, self._deadline - time.monotonic())

    def _follow_window(self) -> None:
        if self._resized:
            self._resized = False
            # Either terminal may be gone: SIGHUP or the thread that shows output tells of it.
            with suppress(OSError, SandboxError):
                self._terminal.resize(*_size(self._screen))

    def _follow_suspension(self, raw: _RawMode) -> None:
        """After SIGTSTP, stop as other programs do, with the terminal as it was."""
        if self._suspended:
            self._suspended = False
            raw.leave()
            os.kill(os.getpid(), signal.SIGSTOP)
            raw.enter()
            self._resized = True
            self._follow_window()

    def _read_keyboard(self) -> bytes:
        try:
            data = os.read(self._keyboard, _CHUNK)
        except OSError:  # the user's terminal is gone
            data = b""
        if not data:
            self._has_keyboard = False
        return data

    def _type(self) -> None:
        """Pass keys on; what the guest does not take now is kept."""
        if not self._typed:
            return
        try:
            self._terminal.write(self._typed, timeout_ms=_TYPING_MS)
            self._typed = b""
        except InputTimeoutError as timeout:
            self._typed = self._typed[timeout.written :]
        except (CommandError, SandboxError):
            self._typed = b""  # the guest has ended; the other thread notices it

    def _show_output(self) -> None:
        try:
            for data in self._terminal:
                self._modes.see(data)
                _write_all(self._screen, data)
        except (SandboxError, OSError) as error:
            self._failure = error
        finally:
            self._ended = True
            self._wake()

    def _wake(self) -> None:
        # A full pipe means that the loop will wake anyway.
        with suppress(OSError):
            os.write(self._wake_write, b"!")

    # Signals.

    def _on_resize(self, _signal: int, _frame: FrameType | None) -> None:
        self._resized = True

    def _on_suspension(self, _signal: int, _frame: FrameType | None) -> None:
        self._suspended = True

    def _on_end(self, number: int, _frame: FrameType | None) -> None:
        self._signal = number

    @contextmanager
    def _signals(self) -> Iterator[None]:
        handlers = {
            signal.SIGWINCH: self._on_resize,
            signal.SIGTSTP: self._on_suspension,
            signal.SIGTERM: self._on_end,
            signal.SIGHUP: self._on_end,
            signal.SIGINT: self._on_end,
            signal.SIGQUIT: self._on_end,
        }
        # Without this, a signal just before `select` waits until something else happens.
        waked = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            signal.set_wakeup_fd(waked)
            for number, handler in before.items():
                signal.signal(number, handler)


class _Modes:
    """The modes of the screen that the guest has changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._changed: dict[bytes, bytes] = {}
        self._rest = b""

    def see(self, data: bytes) -> None:
        """Notice what `data` changes."""
        with self._lock:
            text = self._rest + data
            for found in _MODE.finditer(text):
                for mode in found[1].split(b";"):
                    if mode in _RESTORED:
                        self._changed[mode] = found[2]
            # A sequence may be cut off at the end.
            start = text.rfind(b"\x1b")
            self._rest = text[start:][:40] if start >= 0 and not _MODE.match(text, start) else b""

    def restoring(self) -> bytes:
        """The sequences that set all modes as they should be."""
        with self._lock:
            wrong = [mode for mode, now in self._changed.items() if now != _RESTORED[mode]]
            return b"".join(b"\x1b[?%s%s" % (mode, _RESTORED[mode]) for mode in wrong)


class _RawMode:
    """The settings of the user's terminal."""

    def __init__(self, descriptor: int) -> None:
        import termios

        self._termios = termios
        self._descriptor = descriptor
        self._before: list[Any] = termios.tcgetattr(descriptor)

    def enter(self) -> None:
        """Set raw mode."""
        import tty

        tty.setraw(self._descriptor, self._termios.TCSANOW)

    def leave(self) -> None:
        """Restore the settings. Does not wait for output, which nobody may read."""
        with suppress(self._termios.error):  # the terminal is gone
            self._termios.tcsetattr(self._descriptor, self._termios.TCSANOW, self._before)


@contextmanager
def _raw_mode(descriptor: int) -> Iterator[_RawMode]:
    """Put the terminal into raw mode, and restore it afterwards."""
    mode = _RawMode(descriptor)
    try:
        mode.enter()
        yield mode
    finally:
        mode.leave()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _write_quietly(descriptor: int, data: bytes) -> None:
    """Write a few bytes, if the terminal takes them soon: the guest's output may fill it now."""
    if data and select.select([], [descriptor], [], _RESTORE_SECONDS)[1]:
        with suppress(OSError):
            os.write(descriptor, data)
