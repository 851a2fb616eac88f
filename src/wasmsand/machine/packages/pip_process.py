"""Runs the host's pip as a separate process.

Rules: pip gets the settings of the user and of the environment, except those that would make it
install something on the host; it is killed on a timeout, with everything that it has started; the
size of a file that it writes is bounded.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FILE_BYTES_MAX: Final = 2 << 30
_LINES_KEPT: Final = 200
_LINES_SHOWN: Final = 12
_DROPPED: Final = frozenset(
    f"PIP_{name}"
    for name in (
        "ABI", "DRY_RUN", "IMPLEMENTATION", "NO_BINARY", "ONLY_BINARY", "PLATFORM", "PREFIX",
        "PYTHON", "PYTHON_VERSION", "REPORT", "REQUIRE_VIRTUALENV", "ROOT", "TARGET", "USER",
    )
)  # fmt: skip
"""Variables that would contradict our options."""
_ALWAYS: Final = (
    "--no-input",
    "--disable-pip-version-check",
    "--no-color",
    "--progress-bar=off",
)


class PipFailed(Exception):
    """pip has failed; the message is pip's own."""

    def __init__(self, lines: Sequence[str], *, is_timeout: bool = False) -> None:
        self.output = "\n".join(lines)
        self.is_timeout = is_timeout
        errors = [line for line in lines if line.startswith("ERROR:")]
        shown = errors or list(lines)
        super().__init__("\n".join(shown[-_LINES_SHOWN:]) or "it printed nothing")


def run_pip(
    words: Sequence[str],
    directory: Path,
    deadline: float | None,
    say: Callable[[str], object] | None,
) -> None:
    """Run pip in a directory until `deadline` on the monotonic clock. `say` receives each line that
    it prints. Raises `PipFailed`, and what `say` raises."""
    environment = {name: value for name, value in os.environ.items() if name not in _DROPPED}
    command, *options = words
    # `-P`: modules of the working directory must not replace those of pip.
    argv = [sys.executable, "-P", "-m", "pip", command]
    argv += [word for word in _ALWAYS if command != "index" or "progress" not in word]
    try:
        process = subprocess.Popen(
            [*argv, *options],
            cwd=directory,
            env={**environment, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise PipFailed([f"{sys.executable}: {error.strerror}"]) from None
    _bound_files(process.pid)
    lines: deque[str] = deque(maxlen=_LINES_KEPT)
    with _killed_at(process, deadline) as is_late:
        assert process.stdout is not None
        with process.stdout as stream:
            for line in stream:
                lines.append(line.rstrip()[:1000])
                if say is not None:
                    say(lines[-1])
        process.wait()
    if is_late:
        raise PipFailed(["pip did not finish in time"], is_timeout=True)
    if process.returncode:
        raise PipFailed(list(lines) or [f"pip ended with status {process.returncode}"])


@contextmanager
def _killed_at(process: subprocess.Popen[str], deadline: float | None) -> Iterator[list[bool]]:
    """Kill the process at the deadline, and if the block raises. The yielded list is then not
    empty if the deadline has passed."""
    is_late: list[bool] = []

    def end() -> None:
        is_late.append(True)
        _kill(process)

    timer = None
    if deadline is not None:
        timer = threading.Timer(max(0.0, deadline - time.monotonic()), end)
        timer.daemon = True
        timer.start()
    try:
        yield is_late
    finally:
        if timer is not None:
            timer.cancel()
        if process.poll() is None:
            _kill(process)
            process.wait()


def _kill(process: subprocess.Popen[str]) -> None:
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass


def _bound_files(pid: int) -> None:
    """An index must not fill the disk with one endless file."""
    try:
        import resource

        resource.prlimit(pid, resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, FILE_BYTES_MAX))
    except (ImportError, AttributeError, OSError, ValueError):
        pass  # not Linux, or pip has ended already
