"""A client of `wasmsand rpc` and the process that it talks to.

Owns `Connection`. Rules: any number of threads may call at once; a call ends when its response
comes, or when the process ends, whatever the reason: nobody ever waits for a process that is
gone. The process is reaped by the thread that reads from it. It sees nothing of this process but
its environment variables, and ends by itself when this process does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from wasmsand.rpc import protocol
from wasmsand.rpc.params import Params
from wasmsand.rpc.protocol import RpcError
from wasmsand.sdk.errors import SandboxClosedError, SandboxCrashedError
from wasmsand.wire import strict_json
from wasmsand.wire.lines import LineReader, LineTooLong

_PACKAGE_DIRECTORY: Final = Path(__file__).resolve().parents[2]
_BUFFER_BYTES: Final = 65536
"""What a pipe holds."""
_LAST_WORDS_BYTES: Final = 2000
_TERMINATE_SECONDS: Final = 5.0
"""How long a process may take to end before it is killed."""


class Call:
    """One request, until it is answered."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._answered = threading.Event()
        self._result: dict[str, object] | None = None
        self._failure: Exception | None = None

    def succeed(self, result: dict[str, object]) -> None:
        """This is the result."""
        self._result = result
        self._answered.set()

    def fail(self, failure: Exception) -> None:
        """There is no result."""
        self._failure = failure
        self._answered.set()

    def result(self) -> Params:
        """Wait for the result."""
        self._answered.wait()
        if self._failure is not None:
            raise self._failure
        assert self._result is not None
        return Params(self._result)


@dataclass(frozen=True, slots=True)
class _End:
    """How the process ended."""

    message: str
    status: int
    was_wanted: bool

    def exception(self) -> SandboxClosedError:
        """A new one for each caller: an exception carries the traceback of its thread."""
        if self.was_wanted:
            return SandboxClosedError("the sandbox was killed; create a new Sandbox")
        return SandboxCrashedError(self.message, self.status)


class Connection:
    """A server process and its pipes."""

    def __init__(self, max_line_bytes: int) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        try:
            self._process = _start(max_line_bytes, self._stderr)
        except BaseException:
            self._stderr.close()
            raise
        self._write_lock = threading.Lock()
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._last_number = 0
        self._calls: dict[int, Call] = {}
        self._closing = False
        self._end: _End | None = None
        self._reader = threading.Thread(
            target=self._read_all, args=(max_line_bytes,), name="wasmsand-rpc", daemon=True
        )
        self._reader.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def begin(self, method: str, params: dict[str, object]) -> Call:
        """Send a request. Raises `SandboxClosedError` if the process has ended."""
        with self._lock:
            if self._end is not None:
                raise self._end.exception()
            self._last_number += 1
            call = self._calls[self._last_number] = Call(self._last_number)
        request = {"jsonrpc": "2.0", "id": call.number, "method": method, "params": params}
        self._send(strict_json.encode(request))
        return call

    def call(self, method: str, **params: object) -> Params:
        """Send a request and wait for its result. Raises `RpcError` if it failed, and
        `SandboxClosedError`."""
        return self.begin(method, params).result()

    def notify(self, method: str, **params: object) -> None:
        """Send what wants no answer; if the process is gone, nobody needs it."""
        self._send(strict_json.encode(protocol.notification(method, params)))

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with self._write_lock:
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (OSError, ValueError):
                pass  # gone, or closed: the reader finds out, and ends every call

    def _read_all(self, max_line_bytes: int) -> None:
        """The reader's thread: hand out responses until there are no more."""
        assert self._process.stdout is not None
        reader = LineReader(self._process.stdout, max_line_bytes)
        problem = "ended unexpectedly"
        try:
            while (line := reader.next()) is not None:
                self._receive(line)
        except (LineTooLong, strict_json.BadJson, RpcError) as error:
            problem = f"sent what it must not send ({error})"
        except OSError as error:
            problem = f"cannot be read from ({error.strerror})"
        self._process.kill()  # it has closed its output, or cannot be trusted
        status = self._process.wait()
        self._ended(problem, status)

    def _receive(self, line: bytes) -> None:
        value = strict_json.decode(line)
        if not isinstance(value, dict):
            raise RpcError(protocol.INVALID_REQUEST, "not an object")
        number = value.get("id")
        if not isinstance(number, int):
            raise RpcError(protocol.INVALID_REQUEST, f"not a response: {str(value)[:200]}")
        with self._lock:
            call = self._calls.pop(number, None)
        if call is None:
            return  # its caller was interrupted
        result = value.get("result")
        if isinstance(result, dict):
            call.succeed(result)
        else:
            call.fail(_failure(value.get("error")))

    def _ended(self, problem: str, status: int) -> None:
        message = self._obituary(problem, status)
        with self._lock:
            end = self._end = _End(message, status, self._closing)
            calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            call.fail(end.exception())
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            assert stream is not None
            try:
                stream.close()
            except OSError:
                pass  # what was still buffered for the process

    def _obituary(self, problem: str, status: int) -> str:
        how = f"exit status {status}" if status >= 0 else f"signal {-status}"
        message = f"the process of the sandbox {problem} ({how}); create a new Sandbox"
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _LAST_WORDS_BYTES))
        words = self._stderr.read().decode("utf-8", "replace").strip()
        return f"{message}. Its last words: {words}" if words else message

    def close(self, *, wait: bool = True) -> None:
        """End the process; idempotent. With `wait` it is gone afterwards."""
        with self._lock:
            self._closing = True
        self._process.terminate()  # does nothing if it was reaped
        if wait and threading.current_thread() is not self._reader:
            self._reader.join(_TERMINATE_SECONDS)
            if self._reader.is_alive():
                self._process.kill()
                self._reader.join()


def _start(max_line_bytes: int, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise SandboxClosedError(
            "isolation='process' needs a Python interpreter to start, and sys.executable is empty"
        )
    # The package is found where this one was, and never in the working directory (-P).
    path = [str(_PACKAGE_DIRECTORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "wasmsand",
            "rpc",
            "--max-line-bytes",
            str(max_line_bytes),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        bufsize=_BUFFER_BYTES,
        # Ctrl-C in a terminal is for this process, which then ends the other in its own way.
        process_group=0 if os.name == "posix" else None,
    )


def _failure(error: object) -> Exception:
    """The failure that an error object tells of."""
    if not isinstance(error, dict):
        return RpcError(protocol.INTERNAL_ERROR, "a response without result and error")
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    return RpcError(
        code if isinstance(code, int) else protocol.INTERNAL_ERROR,
        str(message),
        data if isinstance(data, dict) else None,
    )
