"""The template: a process from which the processes of sandboxes are forked.

A process that starts as `wasmsand rpc` takes 0.3 s of processor time, nearly all of it for
imports. The template has imported everything, has no threads and never had a sandbox; a copy of it
is ready in some milliseconds, and shares its memory. Owns the template's side: `serve_template`.
Rules: one message asks for one process and carries its descriptors; the answer carries a pidfd,
which means that process even after it has ended. The template reaps its children, and writes how
each ended to the pipe that came with the message. It ends when nobody can ask any more and its last
child has ended; when it ends, the system kills its children (`confinement`).
"""

from __future__ import annotations

import array
import gc
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

MESSAGE_BYTES: Final = 1 << 16
"""The longest message."""
ANSWER: Final = struct.Struct("<i")
"""A pid, or a negative errno. The status of a process is written in the same form."""
STANDARD: Final = 3
"""So many descriptors of a message are standard ones; the status pipe follows, and then, perhaps,
the Unix socket of `descriptors`."""
_INHERITED: Final = STANDARD
"""The number of that socket in the new process."""
_DESCRIPTORS_MAX: Final = STANDARD + 2


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a message asks for."""

    arguments: Sequence[str]
    environ: Mapping[str, str]
    directory: str
    """The working directory."""

    def encoded(self) -> bytes:
        """The message."""
        return json.dumps([self.arguments, self.environ, self.directory]).encode()

    @classmethod
    def decoded(cls, message: bytes) -> Wanted:
        """What `encoded` made."""
        return cls(*json.loads(message))


def serve_template(descriptor: int, begin: Callable[[Sequence[str]], int]) -> int:
    """Serve the parent on its end of a socket pair. In each new process, `begin` gets the arguments
    of `wasmsand rpc`, and returns the exit status."""
    control = socket.socket(fileno=descriptor)
    gc.collect()
    gc.freeze()  # a collection in a child would copy the memory that it shares
    _Template(control, begin).serve()
    return 0


class _Template:
    def __init__(self, control: socket.socket, begin: Callable[[Sequence[str]], int]) -> None:
        self._control = control
        self._begin = begin
        self._statuses: dict[int, int] = {}
        """The status pipes, by the pids of the processes."""
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM):  # a terminal's; the parent decides
            signal.signal(number, signal.SIG_IGN)

    def serve(self) -> None:
        """Answer until the parent has closed its end and all children have ended."""
        self._control.send(ANSWER.pack(os.getpid()))  # ready
        is_open = True
        while is_open or self._statuses:
            poll = select.poll()
            poll.register(self._woken, select.POLLIN)
            if is_open:
                poll.register(self._control, select.POLLIN)
            ready = {found for found, _ in poll.poll()}
            if self._woken in ready:
                os.read(self._woken, MESSAGE_BYTES)
            self._reap()
            if self._control.fileno() in ready:
                is_open = self._answer()

    def _reap(self) -> None:
        while self._statuses:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            pipe = self._statuses.pop(pid)
            try:
                os.write(pipe, ANSWER.pack(os.waitstatus_to_exitcode(status)))
            except OSError:
                pass  # nobody waits any more
            os.close(pipe)

    def _answer(self) -> bool:
        """Answer one message. Returns whether there was one."""
        space = socket.CMSG_SPACE(_DESCRIPTORS_MAX * array.array("i").itemsize)
        try:
            message, controls, _, _ = self._control.recvmsg(
                MESSAGE_BYTES, space, socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionError:
            return False
        if not message:
            return False
        passed = array.array("i")
        for level, kind, content in controls:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                passed.frombytes(content)
        descriptors = list(passed)
        kept = descriptors[STANDARD]
        try:
            self._start(Wanted.decoded(message), descriptors)
        except OSError as error:
            self._control.send(ANSWER.pack(-(error.errno or 1)))
        else:
            descriptors.remove(kept)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _start(self, wanted: Wanted, descriptors: Sequence[int]) -> None:
        pid = os.fork()
        if pid == 0:
            self._become(wanted, descriptors)
        self._statuses[pid] = descriptors[STANDARD]
        handle = os.pidfd_open(pid)  # the process exists until it is reaped
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [handle]))]
        try:
            self._control.sendmsg([ANSWER.pack(pid)], rights)
        finally:
            os.close(handle)

    def _become(self, wanted: Wanted, descriptors: Sequence[int]) -> NoReturn:
        """In the child: be what a new `wasmsand rpc` is, and never return to the template."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._control.detach()
            _take(descriptors)
            os.setsid()
            os.environ.clear()
            os.environ.update(wanted.environ)
            os.chdir(wanted.directory)
            further = descriptors[STANDARD + 1 :]
            words = ["--descriptors", str(_INHERITED)] if further else []
            status = self._begin([*wanted.arguments, *words])
        except SystemExit as ending:
            status = ending.code if isinstance(ending.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def _take(descriptors: Sequence[int]) -> None:
    """Let the standard streams be those of the message, and close all others but the socket."""
    wanted = [*descriptors[:STANDARD], *descriptors[STANDARD + 1 :]]
    # First above all targets, so that none is overwritten before it is used.
    high = [_above(descriptor, _INHERITED + 1) for descriptor in wanted]
    for target, descriptor in enumerate(high):
        os.dup2(descriptor, target, inheritable=target < STANDARD)
    os.closerange(len(high), _highest() + 1)


def _above(descriptor: int, lowest: int) -> int:
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)


def _highest() -> int:
    return max(map(int, os.listdir("/proc/self/fd")))


def threads_are_absent() -> bool:
    """Whether this process has only one thread, so that a fork copies all of it."""
    return threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 1
