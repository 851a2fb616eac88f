"""Runs other programs, and can stop all of them at once.

Rules: every command runs in its own process group, and its output goes to a file or a pipe,
never to the terminal; `stop` ends all commands and their children; after that no command starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from userland.builder.errors import Interrupted

_GRACE_SECONDS = 2.0


class Commands:
    """All commands of one build."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._answers: dict[tuple[str, ...], tuple[int, str]] = {}

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        output: IO[bytes] | int,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> int:
        """Run a command to its end; returns the exit status. Raises `Interrupted` after `stop`."""
        return self._finish(self._start(argv, output, cwd, env, pass_fds))[0]

    def capture(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Run a command to its end; returns the exit status and all output."""
        status, printed = self._finish(self._start(argv, subprocess.PIPE, cwd, env, ()))
        return status, printed.decode(errors="replace")

    def capture_once(self, argv: Sequence[str]) -> tuple[int, str]:
        """Like `capture`, for a command that prints the same at any time of the build: it runs
        once."""
        words = tuple(argv)
        if words not in self._answers:
            self._answers[words] = self.capture(words)
        return self._answers[words]

    @contextmanager
    def background(
        self, argv: Sequence[str | Path], *, env: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> Iterator[None]:
        """Run a command until the block ends, then end it and its children."""
        process = self._start(argv, subprocess.DEVNULL, None, env, pass_fds)
        try:
            yield
        finally:
            _signal_group(process, signal.SIGTERM)
            process.wait()
            with self._guard:
                self._running.discard(process)

    def stop(self) -> None:
        """End all commands, and start no more."""
        self.stopped.set()
        with self._guard:
            running = list(self._running)
        for process in running:
            _signal_group(process, signal.SIGTERM)
        for process in running:
            try:
                process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                _signal_group(process, signal.SIGKILL)

    def _start(
        self,
        argv: Sequence[str | Path],
        output: IO[bytes] | int,
        cwd: Path | None,
        env: Mapping[str, str] | None,
        pass_fds: Sequence[int],
    ) -> subprocess.Popen[bytes]:
        with self._guard:
            if self.stopped.is_set():
                raise Interrupted
            process = subprocess.Popen(
                [str(part) for part in argv],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=env,
                pass_fds=tuple(pass_fds),
                start_new_session=True,
            )
            self._running.add(process)
        return process

    def _finish(self, process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
        try:
            printed, _ = process.communicate()
        finally:
            with self._guard:
                self._running.discard(process)
        if self.stopped.is_set():
            raise Interrupted
        return process.returncode, printed or b""


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
