"""Running a command natively, under the rules that the sandbox has.

Owns the ordinary user and the working area of native tests. Rules: never as root (the
suites say so, and the sandbox's user is not root either); a terminal only where the
suite wants one, and then nobody types; a small fixed environment; what a test leaves
running in its process group is ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

USER_ID = 1000
"""The sandbox's user; used when the harness itself runs as root."""
USERS_GROUP = 100
"""To which the sandbox's user belongs besides a group of its own."""
_SCREEN_SECONDS = 1.0
"""How long to wait for the last process to close its terminal."""


@dataclass(frozen=True)
class NativeResult:
    """How a native command ended."""

    exit_code: int
    timed_out: bool
    seconds: float


@contextmanager
def native_area() -> Iterator[Path]:
    """An empty directory that belongs to the ordinary user; removed afterwards."""
    area = Path(tempfile.mkdtemp(prefix="wasmsand-conformance-", dir="/tmp"))
    try:
        hand_over(area)
        yield area
    finally:
        for folder, _, _ in os.walk(area):
            with suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(area, ignore_errors=True)


def hand_over(tree: Path) -> None:
    """Give a tree to the ordinary user."""
    if os.geteuid() != 0:
        return
    os.chown(tree, USER_ID, USER_ID)
    for folder, folders, files in os.walk(tree):
        for name in (*folders, *files):
            os.chown(Path(folder) / name, USER_ID, USER_ID, follow_symlinks=False)


def run_native_command(
    argv: Sequence[str | Path],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    terminal: bool = False,
) -> NativeResult:
    """Run to the end in a session of its own, on a terminal if asked; output is not kept."""
    command = [str(part) for part in argv]
    if os.geteuid() == 0:
        user = str(USER_ID)
        command = [
            "setpriv",
            "--reuid",
            user,
            "--regid",
            user,
            "--groups",
            f"{user},{USERS_GROUP}",
            *command,
        ]
    session = ["setsid", "--ctty"] if terminal else ["setsid"]
    with _terminal() if terminal else _no_terminal() as standard_files:
        began = time.monotonic()
        process = subprocess.Popen(
            [*session, *command],
            stdin=standard_files,
            stdout=standard_files,
            stderr=standard_files,
            cwd=cwd,
            env=dict(env),
        )
        try:
            exit_code = process.wait(timeout)
            timed_out = False
        except subprocess.TimeoutExpired:
            exit_code, timed_out = 124, True
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return NativeResult(exit_code, timed_out, time.monotonic() - began)


@contextmanager
def _no_terminal() -> Iterator[int]:
    yield subprocess.DEVNULL


@contextmanager
def _terminal() -> Iterator[int]:
    """The guest's side of a new terminal; what is printed on it is thrown away."""
    master, slave = os.openpty()
    if os.geteuid() == 0:
        os.fchown(slave, USER_ID, USER_ID)
    screen = threading.Thread(target=_discard, args=(master,), daemon=True)
    screen.start()
    try:
        yield slave
    finally:
        os.close(slave)
        screen.join(_SCREEN_SECONDS)
        if not screen.is_alive():
            # Else somebody still has the terminal open; it goes when the harness ends.
            os.close(master)


def _discard(master: int) -> None:
    # A terminal that nobody has open any more reads as an error.
    with suppress(OSError):
        while os.read(master, 65536):
            pass
