"""A client of `wasmsand rpc`, and the server process that it starts.

Owns `RpcConnection`. Rules: any number of threads may call at the same time; a call ends when its
response arrives, when it times out, or when the process ends; a process that does not read or
respond in time is killed. The process is forked from a template (`forked_process`); where that is
not possible, it is started. The thread that reads from the process also starts and reaps it, and
lives as long as the process, because the system kills a started process when that thread ends
(`confinement`). The process gets three pipes, a Unix socket over which it receives connections
(`descriptors`), and no other descriptors, a new Unix session and a few environment variables, and
confines itself before it accepts the first request. A forked copy of this process can neither use
nor close a connection.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from _thread import RLock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wasmsand.confinement.environment import child_environment
from wasmsand.rpc import protocol
from wasmsand.rpc.descriptors import DescriptorSender, can_pass_descriptors
from wasmsand.rpc.forked_process import ForkedProcess, fork_process
from wasmsand.rpc.params import Params
from wasmsand.rpc.protocol import RpcError
from wasmsand.rpc.template import Wanted
from wasmsand.sdk.errors import ForkedError, SandboxClosedError, SandboxCrashedError
from wasmsand.wire import strict_json
from wasmsand.wire.gate import ResponseGate
from wasmsand.wire.lines import LineReader, LineTooLong

_BUFFER_BYTES: Final = 65536
"""The size of a pipe's buffer."""
_STDERR_BYTES: Final = 2000
_STDERR_SECONDS: Final = 1.0
_TERMINATE_SECONDS: Final = 5.0
"""How long a process may take to end after SIGTERM."""
ANSWER_SECONDS: Final = 120.0
"""Timeout of a request that does not wait for a command. It may copy all files of a sandbox."""
_WRITE_BYTES: Final = 1 << 20


class PendingCall:
    """One request that waits for its response."""

    def __init__(self, connection: RpcConnection, number: int) -> None:
        self.number = number
        self._connection = connection
        self._answered = ResponseGate()
        self._result: dict[str, object] | None = None
        self._failure: Exception | None = None

    def succeed(self, result: dict[str, object]) -> None:
        """Set the result."""
        self._result = result
        self._answered.open()

    def fail(self, failure: Exception) -> None:
        """Set the exception to raise."""
        self._failure = failure
        self._answered.open()

    def result(self, seconds: float | None) -> Params:
        """Wait for the result. If the process does not respond within `seconds`, kill it and raise
        `SandboxCrashedError`."""
        if not self._answered.wait(seconds):
            self._connection.kill_silent(seconds)
            if not self._answered.wait(_TERMINATE_SECONDS):  # even SIGKILL did not end it
                self.fail(SandboxCrashedError("the process of the sandbox cannot be killed", -9))
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
        """A new exception for each caller, because an exception holds its thread's traceback."""
        if self.was_wanted:
            return SandboxClosedError("the sandbox was killed; create a new Sandbox")
        return SandboxCrashedError(self.message, self.status)


class RpcConnection:
    """A server process and its pipes."""

    def __init__(
        self,
        max_line_bytes: int,
        readable: Sequence[str] = (),
        *,
        network: bool = False,
        host_proxy: bool = False,
        on_notification: Callable[[str, Params], None] | None = None,
    ) -> None:
        """`readable`: further files and directories that the process may read; `network`: whether
        it may make connections; `host_proxy`: whether it may know the proxy of this process's
        environment. `on_notification` is called with the method and the parameters of
        each notification, on the thread that reads from the process."""
        self._on_notification = on_notification
        self.descriptors = DescriptorSender() if can_pass_descriptors() else None
        """Passes sockets to the process; None if this system cannot."""
        self._owner = os.getpid()
        self._write_lock: Any = RLock()
        # Guarded by the write lock:
        self._torn = False
        """Whether the last line may be incomplete."""
        self._was_torn = False
        """Whether any line may have been incomplete, so that the process may report an error."""
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._last_number = 0
        self._calls: dict[int, PendingCall] = {}
        self._closing = False
        self._problem: str | None = None
        self._end: _End | None = None
        # Set by the reader before `_started`:
        self._process: subprocess.Popen[bytes] | ForkedProcess
        self._start_failure: BaseException | None = None
        self._started = ResponseGate()
        self._stderr_tail = bytearray()
        self._reader = threading.Thread(
            target=self._serve,
            args=(max_line_bytes, readable, network, host_proxy),
            name="wasmsand-rpc",
            daemon=True,
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
        """The pid of the process."""
        return self._process.pid

    @property
    def is_open(self) -> bool:
        """Whether the process is not known to have ended."""
        with self._lock:
            return self._end is None and not self._closing

    def begin(self, method: str, params: dict[str, object], seconds: float | None) -> PendingCall:
        """Send a request, within `seconds`. Raises `SandboxClosedError` if the process has
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
        """Send a request and wait for its result. Raises `RpcError` if the call failed, and
        `SandboxClosedError` if the process has ended."""
        return self.begin(method, params, seconds).result(seconds)

    def notify(self, method: str, **params: object) -> None:
        """Send a notification. Does nothing if the process has ended."""
        if os.getpid() == self._owner:
            self._send(strict_json.encode(protocol.notification(method, params)), ANSWER_SECONDS)

    def _send(self, line: bytes, seconds: float | None) -> None:
        deadline = None if seconds is None else time.monotonic() + seconds
        lock = self._write_lock
        try:
            free = lock.acquire(timeout=-1 if seconds is None else seconds)
            if not free or not self._write(line, deadline):
                self.kill_silent(seconds)
        except (OSError, ValueError):
            pass  # the pipe is closed: the reader notices, and fails every call
        finally:
            # An interrupted caller (Ctrl-C) may own the lock without knowing it, or own it twice.
            while lock._is_owned():
                lock.release()

    def _write(self, line: bytes, deadline: float | None) -> bool:
        """Write to the process. Returns whether the process has read the line in time."""
        stream = self._process.stdin
        assert stream is not None
        if os.name != "posix":
            stream.write(line)
            stream.flush()
            return True
        # An interrupted caller (Ctrl-C) may have left half a line: end it.
        rest = memoryview(b"\n" + line if self._torn else line)
        descriptor = stream.fileno()
        self._was_torn = self._was_torn or self._torn
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
        """Kill a process that did not read or respond in time. Every call fails."""
        with self._lock:
            if self._problem is None and not self._closing:
                self._problem = f"did not respond for {seconds or 0:.0f} s and was killed"
        self._process.kill()  # no effect after it was reaped

    def _serve(
        self, max_line_bytes: int, readable: Sequence[str], network: bool, host_proxy: bool
    ) -> None:
        """The reader thread: start the process, and read from it until it has ended."""
        try:
            self._process = _start(
                max_line_bytes,
                readable,
                network,
                child_environment(proxy=host_proxy),
                self.descriptors,
            )
        except BaseException as error:
            self._start_failure = error
            if self.descriptors is not None:
                self.descriptors.close()
            self._started.open()
            return
        listener = threading.Thread(target=self._listen, name="wasmsand-rpc-errors", daemon=True)
        listener.start()
        self._started.open()
        self._read_all(max_line_bytes, listener)

    def _listen(self) -> None:
        """A thread: keep the last output of the process on standard error."""
        stream = self._process.stderr
        assert stream is not None
        try:
            while piece := os.read(stream.fileno(), _BUFFER_BYTES):
                self._stderr_tail += piece
                del self._stderr_tail[:-_STDERR_BYTES]
        except (OSError, ValueError):
            pass  # closed

    def _read_all(self, max_line_bytes: int, listener: threading.Thread) -> None:
        """Deliver responses until the process closes its output."""
        assert self._process.stdout is not None
        reader = LineReader(self._process.stdout, max_line_bytes)
        problem = "ended unexpectedly"
        try:
            while (line := reader.next()) is not None:
                self._receive(line)
        except (LineTooLong, strict_json.BadJson, RpcError) as error:
            problem = f"sent an invalid message ({error})"
        except OSError as error:
            problem = f"cannot be read ({error.strerror})"
        self._process.kill()  # it has closed its output, or violates the protocol
        status = self._process.wait()
        listener.join(_STDERR_SECONDS)  # another process may hold its standard error open
        self._ended(problem, status)

    def _receive(self, line: bytes) -> None:
        value = strict_json.decode(line)
        if not isinstance(value, dict):
            raise RpcError(protocol.INVALID_REQUEST, "not an object")
        method, params = value.get("method"), value.get("params")
        if self._on_notification is not None and isinstance(method, str):
            self._on_notification(method, Params(params if isinstance(params, dict) else {}))
            return
        number = value.get("id")
        if number is None and self._was_torn:
            return
        if not isinstance(number, int):
            raise RpcError(protocol.INVALID_REQUEST, f"not a response: {str(value)[:200]}")
        with self._lock:
            call = self._calls.pop(number, None)
        if call is None:
            return  # the caller was interrupted
        result = value.get("result")
        if isinstance(result, dict):
            call.succeed(result)
        else:
            call.fail(_failure(value.get("error")))

    def _ended(self, problem: str, status: int) -> None:
        with self._lock:
            message = self._end_message(self._problem or problem, status)
            end = self._end = _End(message, status, self._closing)
            calls, self._calls = list(self._calls.values()), {}
        for call in calls:
            call.fail(end.exception())
        # Writers have noticed by now that the pipe is closed.
        with self._write_lock:
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                assert stream is not None
                try:
                    stream.close()
                except OSError:
                    pass  # buffered data for the process is lost
        if self.descriptors is not None:
            self.descriptors.close()

    def _end_message(self, problem: str, status: int) -> str:
        how = f"exit status {status}" if status >= 0 else f"signal {-status}"
        message = f"the process of the sandbox {problem} ({how}); create a new Sandbox"
        words = bytes(self._stderr_tail).decode("utf-8", "replace").strip()
        return f"{message}. Its last output on standard error: {words}" if words else message

    def close(self, *, wait: bool = True) -> None:
        """End the process; idempotent. With `wait`, return after it has ended. Does nothing in a
        forked copy of the process that started it."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._closing = True
        self._process.terminate()  # no effect after it was reaped
        if wait and threading.current_thread() is not self._reader:
            self._reader.join(_TERMINATE_SECONDS)
            if self._reader.is_alive():
                self._process.kill()
                self._reader.join()


def _start(
    max_line_bytes: int,
    readable: Sequence[str],
    network: bool,
    environ: dict[str, str],
    descriptors: DescriptorSender | None,
) -> subprocess.Popen[bytes] | ForkedProcess:
    if not sys.executable:
        raise SandboxClosedError(
            "isolation='process' must start a Python interpreter, but sys.executable is empty"
        )
    arguments = ["--max-line-bytes", str(max_line_bytes), "--confine"]
    arguments += ["--network"] if network else []
    for path in readable:
        arguments += ["--readable", path]
    inherited = () if descriptors is None else (descriptors.descriptor,)
    process = fork_process(
        Wanted(arguments, environ, os.getcwd()), inherited, _start_template, _BUFFER_BYTES
    ) or _start_alone(arguments, environ, inherited)
    if descriptors is not None:
        descriptors.inherited()
    if os.name == "posix":
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
    return process


_COMMAND: Final = ("-P", "-m", "wasmsand", "rpc")
"""The process imports the same package, and never from the working directory (-P)."""


def _start_template(descriptor: int) -> subprocess.Popen[bytes]:
    arguments = ["--template", str(descriptor), "--parent", str(os.getpid())]
    return subprocess.Popen(
        [sys.executable, *_COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=child_environment(),
        start_new_session=True,
        pass_fds=(descriptor,),
    )


def _start_alone(
    arguments: Sequence[str], environ: dict[str, str], inherited: tuple[int, ...]
) -> subprocess.Popen[bytes]:
    further = ["--parent", str(os.getpid())]
    for descriptor in inherited:
        further += ["--descriptors", str(descriptor)]
    return subprocess.Popen(
        [sys.executable, *_COMMAND, *arguments, *further],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        bufsize=_BUFFER_BYTES,
        # Ctrl-C reaches only this process, which then ends the other; and a process without a
        # controlling terminal cannot insert input into one (TIOCSTI).
        start_new_session=os.name == "posix",
        pass_fds=inherited,
    )


def _failure(error: object) -> Exception:
    """The exception for an error object."""
    if not isinstance(error, dict):
        return RpcError(protocol.INTERNAL_ERROR, "response without result and error")
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    return RpcError(
        code if isinstance(code, int) else protocol.INTERNAL_ERROR,
        str(message),
        data if isinstance(data, dict) else None,
    )
