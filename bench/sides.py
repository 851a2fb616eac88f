"""The two sides of every comparison: a sandbox, and native programs.

Rules: each side runs the same bash script, or the same program without a shell, in a directory
of its own; Python takes the time from the call until the output is collected, as wall-clock or as
CPU time; a script that fails ends the benchmark.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from wasmsand import Sandbox

Script = str | tuple[str, ...]
"""A script for bash, or a program and its arguments."""

ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": "/tmp"}


def _processor_time_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class ScriptFailed(Exception):
    """A benchmark's script failed, so its time would mean nothing."""


class Side(Protocol):
    """Something that can run a script."""

    name: str

    def run(self, script: Script) -> float:
        """Run `script` and return its seconds."""

    def output(self, script: Script) -> str:
        """What `script` prints; not timed."""

    def write(self, name: str, data: bytes) -> None:
        """Put a file into the scripts' directory."""


class SandboxSide:
    """Scripts in one sandbox."""

    name = "wasm"

    def __init__(self, *, cpu: bool = False, packages: Sequence[str] = ()) -> None:
        self._clock = time.process_time if cpu else time.perf_counter
        self._sandbox = Sandbox(
            timeout_ms=600_000,
            fs_limit_bytes=1 << 30,
            packages=packages,
        )

    def run(self, script: Script) -> float:
        start = self._clock()
        result = self._sandbox.commands.run(script)
        seconds = self._clock() - start
        if result.exit_code or result.stderr:
            raise ScriptFailed(f"{script!r}: status {result.exit_code}: {result.stderr[:500]}")
        return seconds

    def output(self, script: Script) -> str:
        return self._sandbox.commands.run(script).stdout

    def write(self, name: str, data: bytes) -> None:
        self._sandbox.files.write(name, data)

    def __enter__(self) -> SandboxSide:
        return self

    def __exit__(self, *error: object) -> None:
        self._sandbox.kill()


class NativeSide:
    """Scripts in a native bash, in a temporary directory.

    Programs are looked up in `folders` first, then in this machine's own directories. `variables`
    are added to the environment.
    """

    name = "native"

    def __init__(
        self,
        folders: Sequence[Path] = (),
        *,
        cpu: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._clock = _processor_time_of_children if cpu else time.perf_counter
        path = ":".join([*map(str, folders), ENVIRONMENT["PATH"]])
        bash = shutil.which("bash", path=path)
        if bash is None:
            raise ScriptFailed("no native bash found to compare with")
        self._bash = bash
        self._environment = {**ENVIRONMENT, **(variables or {}), "PATH": path}
        self._directory = tempfile.TemporaryDirectory(prefix="wasmsand-bench-")

    def run(self, script: Script) -> float:
        start = self._clock()
        process = self._complete(script)
        seconds = self._clock() - start
        if process.returncode or process.stderr:
            raise ScriptFailed(f"{script!r}: status {process.returncode}: {process.stderr[:500]!r}")
        return seconds

    def output(self, script: Script) -> str:
        return self._complete(script).stdout.decode()

    def _complete(self, script: Script) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self._argv(script),
            cwd=self._directory.name,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )

    def _argv(self, script: Script) -> list[str]:
        if isinstance(script, str):
            return [self._bash, "-c", script]
        program = shutil.which(script[0], path=self._environment["PATH"])
        if program is None:
            raise ScriptFailed(f"no native {script[0]} found to compare with")
        return [program, *script[1:]]

    def write(self, name: str, data: bytes) -> None:
        path = Path(self._directory.name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def __enter__(self) -> NativeSide:
        return self

    def __exit__(self, *error: object) -> None:
        self._directory.cleanup()
