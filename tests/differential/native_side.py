"""Runs a script natively, as an ordinary user of the machine.

Owns that user and the directory of a script. Rule: processes that a script leaves in its process
group are killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.differential.outcome import TIME_LIMIT, UMASK, Left, Outcome, environment, left
from tests.differential.reference import native_variables

USER_ID: Final = 1000
"""The ID of the sandbox's user; scripts run under it if the tests run as root."""
USERS_GROUP: Final = 100
"""A group of the sandbox's user, besides its own."""


@contextmanager
def native_directory() -> Iterator[Path]:
    """An empty directory of the ordinary user, at a path that the sandbox can use too.

    It is removed afterwards.
    """
    folder = Path(tempfile.mkdtemp(prefix="wasmsand-differential-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(folder, USER_ID, USER_ID)
        yield folder
    finally:
        for directory, _, _ in os.walk(folder):
            with suppress(OSError):
                os.chmod(directory, 0o700)
        shutil.rmtree(folder, ignore_errors=True)


def run_natively(script: str, directory: Path, tree: Path) -> Outcome:
    """Run a script in `directory`, with only the programs of `tree`."""
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = {"user": USER_ID, "group": USER_ID, "extra_groups": [USER_ID, USERS_GROUP]}
    stdout, stderr = _pipe(), _pipe()
    process = subprocess.Popen(
        ["bash", "-c", script],
        executable=tree / "usr/bin/bash",
        stdin=subprocess.PIPE,
        stdout=stdout[1],
        stderr=stderr[1],
        cwd=directory,
        env={**environment(str(directory)), **native_variables(tree)},
        start_new_session=True,
        umask=UMASK,
        **user,
    )
    os.close(stdout[1])
    os.close(stderr[1])
    process.stdout, process.stderr = os.fdopen(stdout[0], "rb"), os.fdopen(stderr[0], "rb")
    try:
        printed = process.communicate(b"", TIME_LIMIT)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Outcome(code, *printed, dict(_files(directory, directory)))


def _pipe() -> tuple[int, int]:
    """A pipe that belongs to the user, who therefore can open it again as /dev/stdout."""
    ends = os.pipe()
    if os.geteuid() == 0:
        os.fchown(ends[1], USER_ID, USER_ID)
    return ends


def _files(root: Path, folder: Path) -> Iterator[tuple[str, Left]]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(entry.path)
        status = path.lstat()
        content = b""
        if stat.S_ISREG(status.st_mode):
            content = _read(path)
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(os.fsencode(path))
        yield str(path.relative_to(root)), left(status.st_mode, status.st_nlink, content)
        if stat.S_ISDIR(status.st_mode):
            path.chmod(0o700)
            yield from _files(root, path)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except PermissionError:  # the script removed the permission, and we are not root
        path.chmod(0o400)
        return path.read_bytes()
