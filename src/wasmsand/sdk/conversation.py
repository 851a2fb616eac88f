"""Sends requests to the interpreter of a session, one at a time.

Owns what `Shell` and `PythonSession` share. The interpreter reads requests from one
descriptor and reports the end of each on another. Output of all descriptors arrives in the order
in which it was written, so everything before the report belongs to the request. Rules: reports are
untrusted: lines are bounded, and every field is checked; a timeout or a cancelled call interrupts
the request; the interpreter is killed only if it does not react to the interrupt. The timeout
includes sending: an interpreter that does not read, because a program has stopped it, is continued
and interrupted. An interpreter that has received half a request is not interrupted before it has
the rest; otherwise it would take the rest for another request.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import (
    CANCELLATION,
    STDIN,
    BackendProcess,
    Output,
)
from wasmsand.sdk.errors import CommandError, ForkedError, StateError
from wasmsand.sdk.session_request import SessionRequest

_SIGINT, _SIGKILL, _SIGCONT = 2, 9, 18
_STOPPED: Final = "T"
_PATIENCE_SECONDS: Final = 0.5
_POLITE_ROUNDS, _FIRM_ROUNDS = 8, 4
"""Rounds of interrupts: a busy host may need seconds to react. The firm ones also end background
jobs."""
_SEND_SECONDS: Final = 0.1
"""How long to wait for an interpreter to read before its output is taken."""
_SEND_BYTES: Final = 1024 * 1024
_SHORT_BYTES: Final = 32 * 1024
"""A request of this size fits in an empty pipe."""
_REPLY_SECONDS: Final = 5.0
"""How long an interpreter that has asked for something may take to read the reply."""


class _Cancelled(CommandError):
    """The call was cancelled."""

    def __init__(self) -> None:
        super().__init__("ECANCELED: the call was cancelled", "ECANCELED")


_Request = TypeVar("_Request", bound=SessionRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect(Generic[_Request]):
    """How to exchange messages with one kind of interpreter."""

    request_fd: int = STDIN
    """The descriptor from which the interpreter reads requests."""
    report_fd: int
    """The descriptor to which it reports their end."""
    line_max: int
    """Only the last `line_max` bytes of a report are kept."""
    on_report: Callable[[bytes, _Request], None]
    """Called with each line of `report_fd`."""
    reminder: Callable[[_Request], bytes] | None = None
    """Returns what to send again after an interrupt, which may have dropped it."""
    ended: str
    """The message if the interpreter has ended."""


class Conversation(Generic[_Request]):
    """The host's side of a session with one interpreter."""

    def __init__(
        self, attachment: Attachment, process: BackendProcess, dialect: Dialect[_Request]
    ) -> None:
        self._attachment = attachment
        self._dialect = dialect
        self.process = process
        self._signalling = threading.Lock()
        """Held while a request is interrupted, so that the next request is not."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        """Held during a request."""
        # Guarded by the lock:
        self._report = bytearray()
        self._outgoing = memoryview(b"")
        """Bytes that are not sent yet; guarded by `_signalling` once the request was sent."""
        self._has_ended = False
        self.exit_code: int | None = None
        """The interpreter's exit code, once it is known to have ended by itself."""

    def turn(self) -> AbstractContextManager[object]:
        """Exclude requests of other threads until the block ends. Raises `ForkedError` in a forked
        process."""
        if os.getpid() != self._owner:
            raise ForkedError.here("session")
        return self._lock

    @contextmanager
    def still(self, seconds: float = 0.0) -> Iterator[None]:
        """Exclude requests until the block ends, if none is made now or after `seconds`. Raises
        `StateError`."""
        if self.closed:
            raise StateError("it has ended")
        if not self._lock.acquire(timeout=seconds):
            raise StateError("it runs a request")
        try:
            yield
        finally:
            self._lock.release()

    @property
    def closed(self) -> bool:
        """Whether the interpreter is known to have ended."""
        return self._attachment.closed or self._has_ended

    def be_left_behind(self) -> None:
        """The interpreter has ended with an earlier state of its sandbox."""
        self._has_ended = True

    def close(self) -> None:
        """End the interpreter and everything that it started."""
        self._has_ended = True
        if not self._attachment.closed:
            self.process.kill()

    def ask(self, text: bytes, request: _Request, timeout_seconds: float | None) -> None:
        """Send the request, and collect output until its answer. The caller must have the turn."""
        began = self.process.now()
        deadline = None if timeout_seconds is None else began + timeout_seconds
        cancellation = CANCELLATION.get()
        if cancellation is not None:
            cancellation.on_cancel(lambda: self._cancel(request))
        try:
            if not self._exchange(text, request, timeout_seconds):
                self._send(text, request, deadline)
            while not request.answered and not request.truncated:
                self._take_in_time(request, deadline)
            if not request.answered:
                self._end(request)
        except TimeoutError:
            request.timed_out = True
            self._end(request)
        except BaseException:  # the call was cancelled or interrupted: end the request
            request.silence()
            if not self.closed:
                self._end(request)
            raise
        finally:
            self._close(request)
        request.seconds = self.process.now() - began
        if not self.closed:
            request.notices += self.process.take_notices()

    def finish(self, request: _Request, timeout_seconds: float | None) -> None:
        """Close the interpreter's input, and collect output until it has ended. After the timeout,
        it is killed. The caller must have the turn."""
        if self._has_ended:
            raise CommandError(self._dialect.ended, "ESRCH")
        began = self.process.now()
        deadline = None if timeout_seconds is None else began + timeout_seconds
        cancellation = CANCELLATION.get()
        if cancellation is not None:
            cancellation.on_cancel(self.close)
        try:
            self.process.close_input(self._dialect.request_fd)
            while not request.answered and not request.truncated:
                self._take_in_time(request, deadline)
        except TimeoutError:
            request.timed_out = True
        finally:
            self.close()
            self._close(request)
        request.seconds = self.process.now() - began

    def reply(self, data: bytes, request: _Request) -> None:
        """Send what the interpreter has asked for in the middle of a request."""
        with self._signalling:
            if request.cancelled or request.timed_out or request.truncated:
                return  # it is being interrupted
        try:
            taken = self.process.write(data, self._dialect.request_fd, _REPLY_SECONDS)
        except CommandError:
            return  # the interpreter has ended; noticed when its output is read
        if taken < len(data):
            request.notices.append("the session did not read the reply that it had asked for")
            self.close()

    def _close(self, request: _Request) -> None:
        with self._signalling:
            request.is_over = True
            if request.over is not None:
                request.over.set()

    def _exchange(self, text: bytes, request: _Request, timeout_seconds: float | None) -> bool:
        """Send a short request and take its first output, in one step. False if it was not sent."""
        if self._has_ended or len(text) > _SHORT_BYTES:
            return False
        dialect = self._dialect
        with self._signalling:
            if request.cancelled:
                raise _Cancelled
            request.begun = request.sent = True
        awaited = None if request.is_watched else dialect.report_fd
        try:
            outputs = self.process.exchange(text, dialect.request_fd, awaited, timeout_seconds)
        except TimeoutError:
            return True  # the caller looks at the clock
        except CommandError as error:
            self._has_ended = True
            raise CommandError(dialect.ended, "ESRCH") from error
        if outputs is None:
            with self._signalling:
                request.begun = request.sent = False
            return False
        self._accept(outputs, request)
        return True

    def _left(self, request: _Request, deadline: float | None) -> float | None:
        if deadline is None:
            return None
        return deadline + request.paused_seconds - self.process.now()

    def _take_in_time(self, request: _Request, deadline: float | None) -> None:
        """Wait for output until the deadline. Raises `TimeoutError`."""
        try:
            self._take(request, self._left(request, deadline))
        except TimeoutError:
            # The clock may have stood still: see `BackendProcess.now`.
            left = self._left(request, deadline)
            if left is None or left <= 0:
                raise

    def _send(self, text: bytes, request: _Request, deadline: float | None) -> None:
        """Send all of the request. Raises `TimeoutError` if the interpreter does not read."""
        if self._has_ended:
            raise CommandError(self._dialect.ended, "ESRCH")
        self._outgoing = memoryview(text)
        while not request.cancelled:
            seconds = _SEND_SECONDS
            if deadline is not None:
                seconds = max(0.0, min(seconds, deadline - self.process.now()))
            self._flush(request, seconds)
            if request.sent or request.truncated or request.answered:
                break
            self._take_what_there_is(request)
            if deadline is not None and self.process.now() >= deadline:
                raise TimeoutError
        with self._signalling:
            if request.cancelled:
                raise _Cancelled

    def _flush(self, request: _Request, seconds: float) -> None:
        """Send the remaining bytes, for up to `seconds`."""
        while self._outgoing:
            piece = bytes(self._outgoing[:_SEND_BYTES])
            try:
                taken = self.process.write(piece, self._dialect.request_fd, seconds)
            except CommandError as error:
                self._has_ended = True
                raise CommandError(self._dialect.ended, "ESRCH") from error
            request.begun = request.begun or bool(taken)
            self._outgoing = self._outgoing[taken:]
            if taken < len(piece):
                return
        with self._signalling:
            request.sent = True

    def _take_what_there_is(self, request: _Request) -> None:
        """Take waiting output: an interpreter that cannot print does not read."""
        try:
            self._take(request, 0.0)
        except TimeoutError:
            pass

    def _take(self, request: _Request, timeout_seconds: float | None) -> None:
        """Wait for output, and pass it to the request."""
        seconds = None if timeout_seconds is None else max(0.0, timeout_seconds)
        self._accept(self.process.read(seconds), request)

    def _accept(self, outputs: tuple[Output, ...], request: _Request) -> None:
        if not outputs:
            ended = self.process.wait()
            assert ended is not None, "wait() without a time limit waits"
            self.exit_code = ended.exit_code
            request.notices += ended.notices
            self._has_ended = request.answered = True
        for output in outputs:
            if output.fd == self._dialect.report_fd:
                self._listen(output.data, request)
            else:
                request.receive(output)

    def _listen(self, data: bytes, request: _Request) -> None:
        """Assemble lines. Programs can write to this descriptor too, anything and without end, so
        the cost of adding data is linear in its length."""
        report = self._report
        *lines, rest = data.split(b"\n")
        for line in lines:
            if report:
                report += line
                line = bytes(report[-self._dialect.line_max :])
                report.clear()
            if line:
                self._dialect.on_report(line[-self._dialect.line_max :], request)
        report += rest
        del report[: -self._dialect.line_max]

    def _end(self, request: _Request) -> None:
        """End the request, on the thread that waits for it."""
        if request.cancelled and not request.begun:  # nothing of it was sent
            self._outgoing = memoryview(b"")
            return

        def has_ended() -> bool:
            deadline = self.process.now() + _PATIENCE_SECONDS
            while not request.answered:
                seconds = deadline - self.process.now()
                if seconds <= 0:
                    return False
                if not request.sent:
                    try:
                        self._flush(request, 0.0)
                    except CommandError:  # the interpreter has ended; noticed below
                        request.sent = True
                    if request.sent:
                        return False  # all is sent: now it can be interrupted
                    seconds = min(seconds, _SEND_SECONDS)
                try:
                    self._take(request, seconds)
                except TimeoutError:
                    pass
            return True

        self._interrupt(request, has_ended)
        while not request.answered:
            self._take(request, None)

    def _cancel(self, request: _Request) -> None:
        """End the request, on another thread than the waiting one. If that thread still sends the
        request, it notices the cancellation itself."""
        over = threading.Event()
        with self._signalling:
            request.cancelled = True
            request.over = over
            sent = request.sent
        if sent:
            self._interrupt(request, lambda: over.wait(_PATIENCE_SECONDS))

    def _interrupt(self, request: _Request, has_ended: Callable[[], bool]) -> None:
        """Interrupt the request until it has ended. If that fails, kill the interpreter."""
        for round_ in range(_POLITE_ROUNDS + _FIRM_ROUNDS):
            with self._signalling:
                if request.is_over:
                    return
                number = _SIGINT if round_ < _POLITE_ROUNDS else _SIGKILL
                self._signal_all(number, half_sent=request.begun and not request.sent)
                if request.sent and not self._remind(request):
                    self.close()
                    return
            if has_ended():
                return
        request.notices.append(
            "the session did not react to an interrupt and was ended; its state is lost"
        )
        self.close()

    def _remind(self, request: _Request) -> bool:
        """Ask again for the answer, if that is needed; False if the interpreter has ended."""
        if self._dialect.reminder is None:
            return True
        reminder = self._dialect.reminder(request)
        try:
            # A pipe accepts a short line completely or, when it is full, not at all.
            self.process.write(reminder, self._dialect.request_fd, 0.0)
        except CommandError:
            self._has_ended = True
            return False
        return True

    def _signal_all(self, number: int, *, half_sent: bool) -> None:
        """Interrupt the interpreter, and send `number` to its child processes."""
        backend = self._attachment.backend
        pid = self.process.pid
        processes = [p for p in backend.processes() if p.command_pid == pid]
        stopped = any(p.pid == pid and p.state == _STOPPED for p in processes)
        # Signal the interpreter first: otherwise, when the signal ends a child, the interpreter
        # would continue with the next command.
        targets = [] if half_sent else [(pid, _SIGINT)]
        targets += [(pid, _SIGCONT)] if stopped else []
        targets += [(process.pid, number) for process in processes if process.pid != pid]
        for target, signal in targets:
            try:
                backend.signal(target, signal)
            except CommandError:
                pass  # the process has ended meanwhile
