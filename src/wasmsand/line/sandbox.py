"""Executes the requests of the line protocol in a sandbox.

Owns the form of every answer. Rules: an answer has all fields of its type, in the protocol's
order; if the request failed, `error` describes the failure. Several threads can use a sandbox,
but no other thread may use it during a reset.
"""

from __future__ import annotations

import base64
import posixpath
import time
from typing import Final

from wasmsand.line.disk import Disk, DiskError
from wasmsand.line.requests import (
    BadRequest,
    LineRequest,
    ReadFileRequest,
    ResetRequest,
    ShellRequest,
    StatusRequest,
    WriteFileRequest,
)
from wasmsand.sdk.backend import Backend
from wasmsand.sdk.command_builder import CommandBuilder
from wasmsand.sdk.errors import CommandError, FileError, SandboxClosedError, SandboxError
from wasmsand.sdk.opening import open_backend
from wasmsand.sdk.options import HOME, Mode, SandboxOptions

Answer = dict[str, object]

_HEAD_START_SECONDS: Final[dict[Mode, float]] = {"simple": 0.1, "v86": 5.0}
_TIMEOUT: Final = "Command execution failed: timeout exceeded"


class LineSandbox:
    """A sandbox that can be reset."""

    def __init__(self, options: SandboxOptions, disk: Disk | None, mode: Mode = "simple") -> None:
        """Raises `DiskError` if the disk image cannot be read."""
        self._options = options
        self._mode = mode
        self._disk = disk
        self._builder = CommandBuilder(options, lambda: options.env)
        self._backend = self._fresh()
        self._started = time.monotonic()

    def _fresh(self) -> Backend:
        backend = open_backend(self._options, mode=self._mode)
        if self._disk is not None:
            try:
                self._disk.load(backend)
            except BaseException:
                backend.close()
                raise
        return backend

    @property
    def head_start_seconds(self) -> float:
        """How long a command runs alone before the next request begins: as long as short commands
        take."""
        return _HEAD_START_SECONDS[self._mode]

    def answer(self, request: LineRequest) -> Answer:
        """Execute `request`."""
        match request:
            case ShellRequest():
                return self._shell(request)
            case WriteFileRequest():
                return self._write_file(request)
            case ReadFileRequest():
                return self._read_file(request)
            case ResetRequest():
                return self._reset(request)
            case StatusRequest():
                return self._status(request)

    def close(self) -> None:
        """End every process, and save the files if there is a disk image.

        Raises `DiskError` if saving fails.
        """
        if self._disk is not None and self._mode == "v86":
            # The files are in the machine and end with it.
            try:
                self._disk.save(self._backend)
            finally:
                self._backend.close()
            return
        self._backend.close()
        if self._disk is not None:
            self._disk.save(self._backend)

    def _shell(self, request: ShellRequest) -> Answer:
        command = self._builder.request(request.command, timeout_ms=request.time_limit_ms)
        try:
            completed = self._backend.run(command)
        except (CommandError, SandboxClosedError) as error:
            return shell_failure(request.id, f"Command execution failed: {error}")
        stdout = completed.stdout.decode("utf-8", "replace")
        stderr = completed.stderr.decode("utf-8", "replace")
        if completed.timed_out:
            return shell_failure(request.id, _TIMEOUT, stdout, stderr, timed_out=True)
        return {
            "type": "shell",
            "id": request.id,
            "stdout": stdout,
            "stderr": stderr,
            "exit_code": completed.exit_code,
            "timed_out": False,
        }

    def _write_file(self, request: WriteFileRequest) -> Answer:
        path = posixpath.join(HOME, request.path)
        try:
            self._backend.write_file(path, request.content, mode=request.mode)
        except FileError as error:
            return _write_answer(request.id, str(error))
        return _write_answer(request.id, None)

    def _read_file(self, request: ReadFileRequest) -> Answer:
        try:
            content = self._backend.read_file(posixpath.join(HOME, request.path))
        except FileError as error:
            return _read_answer(request.id, None, str(error))
        if not request.as_text:
            return _read_answer(request.id, base64.b64encode(content).decode("ascii"), None)
        try:
            return _read_answer(request.id, content.decode("utf-8"), None)
        except UnicodeDecodeError as error:
            problem = f'not UTF-8 (byte {error.start}); use "encoding": "base64": {request.path}'
            return _read_answer(request.id, None, f"EILSEQ: {problem}")

    def _reset(self, request: ResetRequest) -> Answer:
        try:
            fresh = self._fresh()
        except (DiskError, SandboxError) as error:  # keep the old sandbox
            return {"type": "reset", "id": request.id, "success": False, "error": str(error)}
        self._backend.close()
        self._backend = fresh
        self._started = time.monotonic()
        return {"type": "reset", "id": request.id, "success": True}

    def _status(self, request: StatusRequest) -> Answer:
        try:
            usage = self._backend.usage()
        except SandboxError as error:
            return self._status_without_answer(request, error)
        return {
            "type": "status",
            "id": request.id,
            "uptime_ms": int((time.monotonic() - self._started) * 1000),
            "memory_used_bytes": usage.memory_bytes,
            "memory_limit_bytes": usage.memory_limit_bytes,
            "ready": True,
        }

    def _status_without_answer(self, request: StatusRequest, error: SandboxError) -> Answer:
        """The status of a machine that is lost, and starts again with the next request."""
        return {
            "type": "status",
            "id": request.id,
            "error": str(error),
            "uptime_ms": int((time.monotonic() - self._started) * 1000),
            "memory_used_bytes": 0,
            "memory_limit_bytes": self._options.memory_limit_bytes,
            "ready": False,
        }


def refusal(bad: BadRequest) -> Answer:
    """The answer to an invalid request."""
    message = str(bad)
    match bad.type:
        case "shell":
            return shell_failure(bad.id, message)
        case "write_file":
            return _write_answer(bad.id, message)
        case "read_file":
            return _read_answer(bad.id, None, message)
        case "reset":
            return {"type": "reset", "id": bad.id, "success": False, "error": message}
        case _:
            return {"type": bad.type, "id": bad.id, "error": message}


def shell_failure(
    id_: str | None, error: str, stdout: str = "", stderr: str = "", *, timed_out: bool = False
) -> Answer:
    """The answer for a command without an exit code."""
    return {
        "type": "shell",
        "id": id_,
        "error": error,
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": None,
        "timed_out": timed_out,
    }


def _write_answer(id_: str | None, error: str | None) -> Answer:
    return {"type": "write_file", "id": id_, "success": error is None, "error": error}


def _read_answer(id_: str | None, content: str | None, error: str | None) -> Answer:
    return {
        "type": "read_file",
        "id": id_,
        "content": content,
        "success": error is None,
        "error": error,
    }
