"""The native side: a temporary directory and an ordinary user of the host.

Owns the user and the directory. Rules: tests never run as root (the suites demand it, and the
sandbox's user is not root either); processes that a test leaves in its process group are killed;
both sides offer tests the same: programs that the sandbox lacks, such as Perl, are hidden, and
the UTF-8 locales that it has are provided.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from conformance.area import Ended

USER_ID = 1000
"""The ID of the sandbox's user; tests run under it when the harness itself runs as root."""
USERS_GROUP = 100
"""A group of the sandbox's user, besides its own."""
_SCREEN_SECONDS = 1.0
"""How long to wait for the last process to close its terminal."""
HIDDEN = ("perl", "python", "python3", "gdb", "strace", "valgrind")
"""Languages and debuggers that tests use and the image lacks."""
_HIDING = '#!/bin/sh\necho "$0: hidden" >&2\nexit 127\n'
_FOLDERS = ("results", "tmp", "home", "hide")


def let_native_programs_be_interrupted() -> None:
    """Give children the default action of signals that this process was started to ignore.

    A process under nohup or in the background ignores signals, and its children inherit that.
    They do not inherit handlers. So a handler that does nothing keeps this process unaffected,
    and its children can be interrupted.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


class NativeArea:
    """An `Area` in a directory of the host."""

    def __init__(self, folder: Path, locales: Path) -> None:
        self.tree = str(folder / "tree")
        self.results = str(folder / "results")
        self.home = str(folder / "home")
        self.temporary = str(folder / "tmp")
        self.search_path = f"{folder}/hide:/usr/local/bin:/usr/bin:/bin"
        self.variables = {"LOCPATH": str(locales)}

    def run(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float
    ) -> Ended:
        """See `Area.run`."""
        with _terminal() as standard_files:
            began = time.monotonic()
            process = subprocess.Popen(
                ["setsid", "--ctty", *_as_user(argv)],
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
            return Ended(exit_code, timed_out, time.monotonic() - began)

    def kept(self) -> dict[str, bytes]:
        """See `Area.kept`."""
        return {path.name: path.read_bytes() for path in Path(self.results).iterdir()}


class NativeTemplate:
    """The directory from which a suite's areas are copied; it belongs to the user already."""

    def __init__(self, tree: Path, locales: Path) -> None:
        """Make the directory; it is removed when the harness ends."""
        folder = Path(tempfile.mkdtemp(prefix="wasmsand-conformance-", dir="/tmp"))
        atexit.register(_remove, folder)
        folder.chmod(0o755)
        self._area = folder / "area"
        self._locales = folder / "locales"
        shutil.copytree(locales, self._locales)
        shutil.copytree(tree, self._area / "tree", symlinks=True)
        for name in _FOLDERS:
            (self._area / name).mkdir()
        for name in HIDDEN:
            hiding = self._area / "hide" / name
            hiding.write_text(_HIDING, encoding="utf-8")
            hiding.chmod(0o755)
        _hand_over(self._area)

    @contextmanager
    def area(self) -> Iterator[NativeArea]:
        """A fresh copy, which is removed afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="wasmsand-conformance-", dir="/tmp"))
        try:
            # Suites have up to 2,000 files: cp is ten times faster than shutil and chown.
            subprocess.run(["cp", "-a", f"{self._area}/.", folder], check=True)
            yield NativeArea(folder, self._locales)
        finally:
            _remove(folder)


def _remove(folder: Path) -> None:
    for directory, _, _ in os.walk(folder):
        with suppress(OSError):
            os.chmod(directory, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _hand_over(tree: Path) -> None:
    """Give a tree to the ordinary user."""
    if os.geteuid() != 0:
        return
    os.chown(tree, USER_ID, USER_ID)
    for folder, folders, files in os.walk(tree):
        for name in (*folders, *files):
            os.chown(Path(folder) / name, USER_ID, USER_ID, follow_symlinks=False)


def _as_user(argv: Sequence[str]) -> list[str]:
    if os.geteuid() != 0:
        return list(argv)
    user = str(USER_ID)
    groups = f"{user},{USERS_GROUP}"
    return ["setpriv", "--reuid", user, "--regid", user, "--groups", groups, *argv]


@contextmanager
def _terminal() -> Iterator[int]:
    """The program's side of a new terminal; output is discarded."""
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
            # Otherwise a process still has the terminal open; it closes when the harness ends.
            os.close(master)


def _discard(master: int) -> None:
    # Reading fails once no process has the terminal open.
    with suppress(OSError):
        while os.read(master, 65536):
            pass
