"""The server of a host: `wasmsand serve` as a child of the actor.

Owns its start, its end and its token file. Rules: the server ends when the actor ends, however it
ends: it watches a pipe whose other end only the actor has. Nobody but this user can read the token.
The store's lock decides who may have a store: a new server waits until the old one has let go.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Final

from wasmsand.fleet.values import HostPlan
from wasmsand.sdk.errors import StoreBusyError
from wasmsand.sdk.stores import locked_file

TOKEN_NAME: Final = "fleet"
_PACKAGE_ROOT: Final = Path(__file__).resolve().parents[2]
_MOST_SANDBOXES: Final = "2000"
_END_SECONDS: Final = 90.0
_LOCK_SECONDS: Final = 120.0
"""How long a new server waits for the lock of its store. Ray ends a node that has lost its
cluster after a minute."""
_TOKENS: Final = """\
[[token]]
name = "{name}"
token = "{token}"
trusted = true
all_metrics = true
max_sandboxes = 1000000
max_memory_bytes = 1000000000000000
max_running_commands = 1000000
requests_per_second = 1000000
max_stored_sandboxes = 1000000
max_stored_bytes = 1000000000000000
"""


class ServerFailed(Exception):
    """The server did not start; the message is what it printed."""


class ServerProcess:
    """A running `wasmsand serve`."""

    def __init__(self, plan: HostPlan, address: str) -> None:
        """Listen on `address`. Raises `ServerFailed`, `StoreBusyError`."""
        if plan.store is not None:
            _wait_for_lock(Path(plan.store))
        self._directory = tempfile.mkdtemp(prefix="wasmsand-host-")  # only this user may enter
        try:
            self._start(plan, address)
        except BaseException:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise

    def _start(self, plan: HostPlan, address: str) -> None:
        tokens = Path(self._directory, "tokens.toml")
        tokens.write_text(_TOKENS.format(name=TOKEN_NAME, token=plan.token))
        command = [sys.executable, "-m", "wasmsand", "serve", "--end-with-stdin"]
        command += ["--host", address, "--port", "0", "--tokens-file", str(tokens)]
        command += ["--max-sandboxes", _MOST_SANDBOXES, *plan.serve_options]
        if plan.store is not None:
            command += ["--store", plan.store]
        environ = {k: v for k, v in os.environ.items() if not k.startswith("RAY_")}
        path = [str(_PACKAGE_ROOT), environ.get("PYTHONPATH", "")]
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
        self._process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.url = self._wait_until_it_serves()
        threading.Thread(target=self._pass_log_on, name="wasmsand-host-log", daemon=True).start()

    def _wait_until_it_serves(self) -> str:
        assert self._process.stderr is not None
        printed: list[str] = []
        for line in self._process.stderr:
            if "serving " in line:
                return line.rpartition("serving ")[2].strip()
            printed = [*printed[-20:], line.strip()]
        self._process.wait()
        raise ServerFailed(" ".join(printed) or f"it ended with {self._process.returncode}")

    def _pass_log_on(self) -> None:
        """Ray collects the actor's standard error."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            print(line, end="", file=sys.stderr, flush=True)

    @property
    def pid(self) -> int:
        """The pid of the front process."""
        return self._process.pid

    def wait(self) -> int:
        """Wait for the end of the process, and return its exit status."""
        status = self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)
        return status

    def stop(self) -> None:
        """Let running requests finish, store everything, and end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _wait_for_lock(store: Path) -> None:
    """Wait until no server has the store. Raises `StoreBusyError`, `OSError`."""
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    busy = f"has the store {store}; wait for its end, or end it"
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            os.close(locked_file(store / "server.lock", lambda pid: f"process {pid} {busy}"))
            return
        except StoreBusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
