"""Where the sandboxes of a soak live: in this process, or behind a server.

Owns `Side`. Rules: the server is a child process, started as a user starts it, with two tokens;
its standard error is kept, and printed if the server dies; memory is that of a process and all
its children.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlsplit

from fuzz.oracles import BugWatch
from tests.limits.attacks import OPTIONS
from tests.limits.client_attacks import Address
from wasmsand import Sandbox
from wasmsand.sdk.opening import open_backend
from wasmsand.sdk.options import SandboxOptions

_HONEST: Final = SandboxOptions(timeout_ms=60_000, memory_limit_bytes=256 << 20)
_SOURCE: Final = Path(__file__).resolve().parent.parent / "src"
_HOSTILE_TOKEN: Final = "a-token-of-the-attackers"
_HONEST_TOKEN: Final = "a-token-of-the-honest-ones"
_END_SECONDS: Final = 30
_servers: Final[set[int]] = set()
"""Processes that the side "in process" does not count."""
_TOKENS: Final = f"""
[[token]]
name = "hostile"
token = "{_HOSTILE_TOKEN}"
max_sandboxes = 8
[[token]]
name = "honest"
token = "{_HONEST_TOKEN}"
"""


class Side(ABC):
    """One place for sandboxes."""

    name: ClassVar[str]
    address: Address | None = None
    """The URL to which hostile clients connect, if there is one."""
    hostile_token = _HOSTILE_TOKEN

    @abstractmethod
    def honest_sandbox(self) -> Sandbox:
        """A sandbox for an honest tenant."""

    @abstractmethod
    def hostile_sandbox(self) -> Sandbox:
        """A sandbox for an attacker."""

    @abstractmethod
    def resident_bytes(self) -> int:
        """Memory of the process that holds the sandboxes."""

    def is_well(self) -> bool:
        """Whether the process still runs."""
        return True

    @abstractmethod
    def bugs(self) -> int:
        """How many bugs the process has logged."""

    def warm_up(self) -> None:
        """Load the programs that honest tenants use, so that loading is not measured."""
        with self.honest_sandbox() as sandbox:
            sandbox.commands.run("echo a | sort | uniq")
            sandbox.commands.run("python3 -c 'print(1)'")

    def close(self) -> None:  # noqa: B027  (this process needs no closing)
        """End the side."""


class LocalSide(Side):
    """Sandboxes in this process."""

    name = "in process"

    def __init__(self) -> None:
        self._watch = BugWatch()
        self._watch.install()

    def bugs(self) -> int:
        return self._watch.count

    def honest_sandbox(self) -> Sandbox:
        return Sandbox.from_backend(open_backend(_HONEST), _HONEST)

    def hostile_sandbox(self) -> Sandbox:
        return Sandbox.from_backend(open_backend(OPTIONS), OPTIONS)

    def resident_bytes(self) -> int:
        return resident(os.getpid(), _servers)


class ServerSide(Side):
    """Sandboxes behind `wasmsand serve`, in a child process."""

    name = "serve"

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        tokens = Path(self._directory.name, "tokens.toml")
        tokens.write_text(_TOKENS)
        # A file, not a pipe: a pipe that nobody reads would fill, and block the server.
        self._log = Path(self._directory.name, "log")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "wasmsand", "serve", "--port", "0",
                 "--tokens-file", str(tokens)],
                env={**os.environ, "PYTHONPATH": str(_SOURCE)},
                stderr=log,
            )  # fmt: skip
        _servers.add(self._process.pid)
        self._url = self._wait_for_url()
        parts = urlsplit(self._url)
        self.address = parts.hostname or "", parts.port or 0

    def _wait_for_url(self) -> str:
        for _ in range(600):
            line, ended, _ = self._log.read_text().partition("\n")
            if ended and "serving " in line:
                return line.rpartition("serving ")[2].strip()
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        self._process.kill()
        raise RuntimeError(f"the server did not start: {self._log.read_text()}")

    def honest_sandbox(self) -> Sandbox:
        return Sandbox.connect(self._url, token=_HONEST_TOKEN, options=_HONEST)

    def hostile_sandbox(self) -> Sandbox:
        return Sandbox.connect(self._url, token=_HOSTILE_TOKEN, options=OPTIONS)

    def resident_bytes(self) -> int:
        return resident(self._process.pid)

    def is_well(self) -> bool:
        return self._process.poll() is None

    def bugs(self) -> int:
        return self._log.read_text(errors="replace").count("bug")

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"the server did not end within {_END_SECONDS} s of SIGTERM")
            self._process.kill()
            self._process.wait()
        lines = self._log.read_text(errors="replace").splitlines()[1:]
        if lines:
            kept = Path(tempfile.gettempdir(), "wasmsand-soak-server.log")
            kept.write_text("\n".join(lines))
            print(f"the server wrote {len(lines)} lines, which are in {kept}; the first:")
            print("\n".join(lines[:5]))
        self._directory.cleanup()


def resident(pid: int, without: Collection[int] = ()) -> int:
    """Memory of a process and its children but those `without`; pages of files do not count."""
    total = 0
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        if one in without:
            continue
        try:
            status = Path(f"/proc/{one}/status").read_text("ascii", "replace")
            for task in Path(f"/proc/{one}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_text().split()]
        except (OSError, ValueError):
            continue
        for line in status.splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1]) * 1024
    return total
