"""Processes of sandboxes that are forked from a template (see `template`).

Owns the template of this process, and `ForkedProcess`, which is used like `subprocess.Popen`.
Rules: there is one template, started when it is first needed; the thread that starts it lives as
long as it does, because the system kills it when that thread ends. A process whose environment is
not that of the template, or a system without pidfds, or a template that does not start, means None,
and the caller starts a new process. A forked copy of this process starts its own.
"""

from __future__ import annotations

import array
import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

from wasmsand.rpc.template import ANSWER, MESSAGE_BYTES, Wanted

_READY_SECONDS: Final = 30.0
_ANSWER_SECONDS: Final = 10.0
_KILLED: Final = -signal.SIGKILL if os.name == "posix" else -9
_MAY_DIFFER: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"})
"""Variables that nothing reads before the process of a sandbox has begun."""

Start = Callable[[int], "subprocess.Popen[bytes]"]
"""Starts a template that gets this descriptor."""


class ForkedProcess:
    """A process that was forked from the template."""

    def __init__(
        self, pid: int, handle: int, status: int, stdin: int, stdout: int, stderr: int, buffer: int
    ) -> None:
        self.pid = pid
        self._handle = handle
        """Open as long as this object is: a closed one's number could mean another process."""
        self._status = status
        self._lock = threading.Lock()
        # Guarded by the lock:
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb", buffer)
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb", buffer)
        self.stderr: IO[bytes] | None = os.fdopen(stderr, "rb", buffer)

    def wait(self) -> int:
        """Wait for the end. Returns the exit status, or the negative number of a signal."""
        with self._lock:
            if self.returncode is None:
                told = os.read(self._status, ANSWER.size)
                # Nothing is told if the template has ended: then this process was killed.
                self.returncode = ANSWER.unpack(told)[0] if told else _KILLED
                os.close(self._status)
            return self.returncode

    def kill(self) -> None:
        """Send SIGKILL, unless it has ended."""
        self._send(signal.SIGKILL)

    def terminate(self) -> None:
        """Send SIGTERM, unless it has ended."""
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        with suppress(OSError):
            signal.pidfd_send_signal(self._handle, number)

    def __del__(self) -> None:
        os.close(self._handle)


class _Template:
    """The template of this process."""

    def __init__(self, start: Start, environ: Mapping[str, str]) -> None:
        self._environ = _compared(environ)
        self._lock = threading.Lock()
        self._control, self._others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ready = threading.Event()
        self.is_usable = False
        """Whether it has said that it is ready, and nothing has gone wrong since."""
        threading.Thread(
            target=self._live, args=(start,), name="wasmsand-template", daemon=True
        ).start()
        self._ready.wait()

    def _live(self, start: Start) -> None:
        try:
            process = start(self._others.fileno())
        except OSError:
            process = None
        self._others.close()
        if process is not None:
            self._control.settimeout(_READY_SECONDS)
            with suppress(OSError):
                self.is_usable = len(self._control.recv(ANSWER.size)) == ANSWER.size
        self._ready.set()
        if process is not None:
            process.wait()

    def is_for(self, environ: Mapping[str, str]) -> bool:
        """Whether a process with these variables can be forked from it."""
        return self.is_usable and self._environ == _compared(environ)

    def fork(self, wanted: Wanted, passed: Sequence[int]) -> tuple[int, int]:
        """The pid and the pidfd of a new process. Raises `OSError`."""
        message = wanted.encoded()
        if len(message) > MESSAGE_BYTES:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", passed))]
        space = socket.CMSG_SPACE(array.array("i").itemsize)
        with self._lock:
            try:
                self._control.settimeout(_ANSWER_SECONDS)
                self._control.sendmsg([message], rights)
                answer, controls, _, _ = self._control.recvmsg(
                    ANSWER.size, space, socket.MSG_CMSG_CLOEXEC
                )
            except BaseException:
                self.is_usable = False  # an answer may come that nobody waits for
                raise
        if len(answer) < ANSWER.size:
            self.is_usable = False
            raise OSError(errno.EPIPE, "the template has ended")
        (pid,) = ANSWER.unpack(answer)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        ((_, _, content),) = controls
        (handle,) = array.array("i", content)
        return pid, handle

    def close(self) -> None:
        """Ask for no more processes. The template ends with the last of them."""
        self._control.close()


def _compared(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in _MAY_DIFFER}


_lock = threading.Lock()
_template: _Template | None = None
"""Guarded by the lock."""


def fork_process(
    wanted: Wanted, descriptors: Sequence[int], start: Start, buffer: int
) -> ForkedProcess | None:
    """A process with new pipes as its standard streams, and with `descriptors`; None if there is no
    template for it."""
    global _template
    if sys.platform != "linux" or not hasattr(signal, "pidfd_send_signal"):
        return None
    with _lock:
        if _template is None:
            _template = _Template(start, wanted.environ)
        template = _template
    if not template.is_for(wanted.environ):
        return None
    opened: list[int] = []
    try:
        for _ in range(4):
            opened += os.pipe()
        stdin, to_stdin, from_stdout, stdout, from_stderr, stderr, from_status, status = opened
        passed = [stdin, stdout, stderr, status, *descriptors]
        pid, handle = template.fork(wanted, passed)
    except OSError:
        _close(opened)
        with _lock:
            if _template is template and not template.is_usable:
                _template = None  # it has ended: the next process starts another
                template.close()
        return None  # the caller starts a process itself, and reports what is wrong
    except BaseException:
        _close(opened)
        raise
    _close((stdin, stdout, stderr, status))
    return ForkedProcess(pid, handle, from_status, to_stdin, from_stdout, from_stderr, buffer)


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _after_fork() -> None:
    global _lock, _template
    if _template is not None:
        _template.close()  # that of the parent, which still has it
    _lock, _template = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
