"""A user at a terminal: `wasmsand` on a real pseudo-terminal, seen through a terminal emulator.

Owns `User`. Rules: every wait has a bound; the emulator answers no questions of programs.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

from tests.cli.command import COMMAND
from tests.waiting import PATIENCE
from userland.recipes.screen import Display

ROWS, COLUMNS = 24, 80


def _take_terminal() -> None:
    """In the new process: let the terminal be its controlling one, which sends it signals."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class User:
    """Somebody who runs `wasmsand WORDS...` in a window of 24 rows and 80 columns."""

    def __init__(
        self,
        *words: str,
        environ: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.terminal, self.follower = pty.openpty()
        self.resize(ROWS, COLUMNS)
        self.before = termios.tcgetattr(self.follower)
        self.display = Display(ROWS, COLUMNS)
        self.seen = b""
        """Everything that was shown since the last `expect`."""
        self.shown = b""
        """Everything that was ever shown."""
        variables = {**os.environ, "TERM": "xterm-256color", **(environ or {})}
        self.process = subprocess.Popen(
            [*command, *words],
            stdin=self.follower,
            stdout=self.follower,
            stderr=self.follower,
            start_new_session=True,
            preexec_fn=_take_terminal,
            env=variables,
        )

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.terminal, text.encode())

    def look(self, seconds: float) -> bool:
        """Take what is shown within `seconds`; False if nothing is."""
        if not select.select([self.terminal], [], [], max(0.0, seconds))[0]:
            return False
        data = os.read(self.terminal, 65536)
        self.seen += data
        self.shown += data
        self.display.feed(data)
        return True

    def expect(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait for `text` among the bytes after what was expected last."""
        deadline = time.monotonic() + seconds
        while text.encode() not in self.seen:
            assert self.look(deadline - time.monotonic()), f"{text!r} is not in {self.seen!r}"
        self.seen = self.seen.partition(text.encode())[2]

    def wait_for_screen(self, text: str, seconds: float = PATIENCE) -> None:
        """Wait until a line of the screen contains `text`."""
        deadline = time.monotonic() + seconds
        while not any(text in line for line in self.display.lines):
            assert self.look(deadline - time.monotonic()), (text, self.display.lines)

    def status(self, seconds: float = PATIENCE) -> int:
        """Wait for the end, and return the exit status."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            self.look(0.05)
            assert time.monotonic() < deadline, f"still running: {self.display.lines}"
        while self.look(0.0):
            pass
        return self.process.returncode

    @property
    def has_old_settings(self) -> bool:
        """Whether the terminal's settings are those from before."""
        return termios.tcgetattr(self.follower) == self.before

    def close(self) -> None:
        """End everything."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.follower)
        os.close(self.terminal)

    def __enter__(self) -> User:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
