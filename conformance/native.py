"""Running a command natively, under the rules that the sandbox has.

Owns the ordinary user and the working area of native tests. Rules: never as root (the
suites say so, and the sandbox's user is not root either); no terminal; a small fixed
environment; what a test leaves running in its session is ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

USER_ID = 1000
"""The sandbox's user; used when the harness itself runs as root."""


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
    argv: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], timeout: float
) -> NativeResult:
    """Run to the end, without a terminal and without keeping output."""
    command = [str(part) for part in argv]
    if os.geteuid() == 0:
        user = str(USER_ID)
        command = ["setpriv", "--reuid", user, "--regid", user, "--groups", user, *command]
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=cwd,
        env=dict(env),
        start_new_session=True,
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
