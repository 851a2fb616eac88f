"""A client of `wasmsand rpc` and the process that it talks to.

Owns `RpcConnection`. Rules: any number of threads may call at once; a call ends when its response
comes, when its time is over, or when the process ends, whatever the reason: nobody ever waits
for a process that is gone, and one that neither reads nor answers in time is killed. The process
is started and reaped by the thread that reads from it, which lives as long as the process: the
system kills the process when that thread ends (`confinement`). It gets no descriptor of this
process but its three pipes, a session of its own and few environment variables, and confines
itself before it takes the first request. A process that was forked from this one can neither
use nor end a connection.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wasmsand.rpc import protocol
from wasmsand.rpc.params import Params
from wasmsand.rpc.protocol import RpcError
from wasmsand.sdk.errors import ForkedError, SandboxClosedError, SandboxCrashedError
from wasmsand.wire import strict_json
from wasmsand.wire.lines import LineReader, LineTooLong

_PACKAGE_DIRECTORY: Final = Path(__file__).resolve().parents[2]
_BUFFER_BYTES: Final = 65536
"""What a pipe holds."""
_LAST_WORDS_BYTES: Final = 2000
_LAST_WORDS_SECONDS: Final = 1.0
_TERMINATE_SECONDS: Final = 5.0
"""How long a process may take to end before it is killed."""
ANSWER_SECONDS: Final = 120.0
"""How long the process may take to answer what does not wait: files of all its disk."""
_WRITE_BYTES: Final = 1 << 20
_VARIABLES: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPYCACHEPREFIX",
    "TZ",
    "XDG_CACHE_HOME",
    "WASMSAND_CACHE",
    "WASMSAND_RENEWAL",
)
"""What the process gets of this one's environment."""
_WINDOWS_VARIABLES: Final = (
    "APPDATA",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "WINDIR",
)
"""Without which Windows finds neither its libraries nor the user's directories."""


class PendingCall:
    """One request, until it is answered."""

    def __init__(self, connection: RpcConnection, number: int) -> None:
        self.number = number
        self._connection = connection
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

    def result(self, seconds: float | None) -> Params:
        """Wait for the result. A process that has not answered after `seconds` is killed, and
        the result is its end."""
        if not self._answered.wait(seconds):
            self._connection.kill_silent(seconds)
            if not self._answered.wait(_TERMINATE_SECONDS):  # the system cannot even kill it
                self.fail(SandboxCrashedError("the process of the sandbox cannot be ended", -9))
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


class RpcConnection:
    """A server process and its pipes."""

    def __init__(self, max_line_bytes: int, readable: Sequence[str] = ()) -> None:
        """`readable` are files and directories that the process needs besides its own."""
        self._owner = os.getpid()
        self._write_lock = threading.Lock()
        # Guarded by it:
        self._torn = False
        """Whether the last line may not be whole."""
        self._may_complain = False
        """Whether there was ever one."""
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._last_number = 0
        self._calls: dict[int, PendingCall] = {}
        self._closing = False
        self._problem: str | None = None
        self._end: _End | None = None
        # Set by the reader before `_started`:
        self._process: subprocess.Popen[bytes]
        self._start_failure: BaseException | None = None
        self._started = threading.Event()
        self._last_words = bytearray()
        self._reader = threading.Thread(
            target=self._serve, args=(max_line_bytes, readable), name="wasmsand-rpc", daemon=True
        )
        self._reader.start()
        try:
            self._started.wait()
        except BaseException:
            self._started.wait()
            if self._start_failure is None:
                self.close(wait=False)
            raise
        if self._start_failure is not None:
            raise self._start_failure

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def is_open(self) -> bool:
        """Whether the process has not ended, as far as is known."""
        with self._lock:
            return self._end is None and not self._closing

    def begin(self, method: str, params: dict[str, object], seconds: float | None) -> PendingCall:
        """Send a request, for at most `seconds`. Raises `SandboxClosedError` if the process has
        ended."""
        if os.getpid() != self._owner:
            raise ForkedError.here("sandbox")
        with self._lock:
            if self._end is not None:
                raise self._end.exception()
            self._last_number += 1
            call = self._calls[self._last_number] = PendingCall(self, self._last_number)
        request = {"jsonrpc": "2.0", "id": call.number, "method": method, "params": params}
        self._send(strict_json.encode(request), seconds)
        return call

    def call(
        self, method: str, params: dict[str, object], seconds: float | None = ANSWER_SECONDS
    ) -> Params:
        """Send a request and wait for its result. Raises `RpcError` if it failed, and
        `SandboxClosedError`."""
        return self.begin(method, params, seconds).result(seconds)

    def notify(self, method: str, **params: object) -> None:
        """Send what wants no answer; if the process is gone, nobody needs it."""
        if os.getpid() == self._owner:
            self._send(strict_json.encode(protocol.notification(method, params)), ANSWER_SECONDS)

    def _send(self, line: bytes, seconds: float | None) -> None:
        deadline = None if seconds is None else time.monotonic() + seconds
        if not self._write_lock.acquire(timeout=-1 if seconds is None else seconds):
            self.kill_silent(seconds)
            return
        try:
            if not self._write(line, deadline):
                self.kill_silent(seconds)
        except (OSError, ValueError):
            pass  # gone, or closed: the reader finds out, and ends every call
        finally:
            self._write_lock.release()

    def _write(self, line: bytes, deadline: float | None) -> bool:
        """Write to the process; whether it has read it in time."""
        stream = self._process.stdin
        assert stream is not None
        if os.name != "posix":
            stream.write(line)
            stream.flush()
            return True
        # A caller who was interrupted (Ctrl-C) may have left half a line, which is no JSON: end it.
        rest = memoryview(b"\n" + line if self._torn else line)
        descriptor = stream.fileno()
        self._may_complain = self._may_complain or self._torn
        self._torn = True
        while rest:
            try:
                rest = rest[os.write(descriptor, rest[:_WRITE_BYTES]) :]
            except BlockingIOError:
                poll = select.poll()
                poll.register(descriptor, select.POLLOUT)
                left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
                if not poll.poll(left):
                    return False
        self._torn = False
        return True

    def kill_silent(self, seconds: float | None) -> None:
        """The process did not do its part in time: end it, and every call with it."""
        with self._lock:
            if self._problem is None and not self._closing:
                self._problem = f"did not answer for {seconds or 0:.0f} s and was ended"
        self._process.kill()  # does nothing if it was reaped

    def _serve(self, max_line_bytes: int, readable: Sequence[str]) -> None:
        """The reader's thread: start the process, and read from it until it has ended."""
        try:
            self._process = _start(max_line_bytes, readable)
        except BaseException as error:
            self._start_failure = error
            self._started.set()
            return
        listener = threading.Thread(target=self._listen, name="wasmsand-rpc-errors", daemon=True)
        listener.start()
        self._started.set()
        self._read_all(max_line_bytes, listener)

    def _listen(self) -> None:
        """Another thread: keep the end of what the process says on standard error."""
        stream = self._process.stderr
        assert stream is not None
        try:
            while piece := os.read(stream.fileno(), _BUFFER_BYTES):
                self._last_words += piece
                del self._last_words[:-_LAST_WORDS_BYTES]
        except (OSError, ValueError):
            pass  # it was closed

    def _read_all(self, max_line_bytes: int, listener: threading.Thread) -> None:
        """Hand out responses until there are no more."""
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
        listener.join(_LAST_WORDS_SECONDS)  # somebody else may hold its standard error
        self._ended(problem, status)

    def _receive(self, line: bytes) -> None:
        value = strict_json.decode(line)
        if not isinstance(value, dict):
            raise RpcError(protocol.INVALID_REQUEST, "not an object")
        number = value.get("id")
        if number is None and self._may_complain:
            return
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
        with self._lock:
            message = self._obituary(self._problem or problem, status)
            end = self._end = _End(message, status, self._closing)
            calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            call.fail(end.exception())
        # Whoever writes has noticed that nobody reads.
        with self._write_lock:
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                assert stream is not None
                try:
                    stream.close()
                except OSError:
                    pass  # what was still buffered for the process

    def _obituary(self, problem: str, status: int) -> str:
        how = f"exit status {status}" if status >= 0 else f"signal {-status}"
        message = f"the process of the sandbox {problem} ({how}); create a new Sandbox"
        words = bytes(self._last_words).decode("utf-8", "replace").strip()
        return f"{message}. Its last output on standard error: {words}" if words else message

    def close(self, *, wait: bool = True) -> None:
        """End the process; idempotent. With `wait` it is gone afterwards. Does nothing in a
        process that was forked from the one that started it."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closing = True
        self._process.terminate()  # does nothing if it was reaped
        if wait and threading.current_thread() is not self._reader:
            self._reader.join(_TERMINATE_SECONDS)
            if self._reader.is_alive():
                self._process.kill()
                self._reader.join()


def _start(max_line_bytes: int, readable: Sequence[str]) -> subprocess.Popen[bytes]:
    if not sys.executable:
        raise SandboxClosedError(
            "isolation='process' needs a Python interpreter to start, but sys.executable is empty"
        )
    arguments = ["--max-line-bytes", str(max_line_bytes), "--confine", "--parent", str(os.getpid())]
    for path in readable:
        arguments += ["--readable", path]
    process = subprocess.Popen(
        # The package is found where this one was, and never in the working directory (-P).
        [sys.executable, "-P", "-m", "wasmsand", "rpc", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
        bufsize=_BUFFER_BYTES,
        # Ctrl-C in a terminal is for this process, which then ends the other in its own way; and
        # a process without a terminal cannot type into one.
        start_new_session=os.name == "posix",
    )
    if os.name == "posix":
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
    return process


def _environment() -> dict[str, str]:
    """Of the process: nothing that it does not need, as secrets of this one."""
    path = [str(_PACKAGE_DIRECTORY)]
    path += [os.path.abspath(p) for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    names = _VARIABLES if os.name == "posix" else (*_VARIABLES, *_WINDOWS_VARIABLES)
    kept = {name: value for name, value in os.environ.items() if name.upper() in names}
    return {**kept, "PYTHONPATH": os.pathsep.join(path)}


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
