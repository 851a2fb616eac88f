"""A command in the guest, and its streams.

Owns `GuestCommand`, which is a `BackendProcess`. Rules: the host takes at most a window of output
from each descriptor before somebody reads it, so a command waits when nobody does; input is sent
as far as the agent has room for it; when the machine is lost, everything that waits raises
`MachineLost`.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.sdk.backend import STDERR, STDIN, STDOUT, CommandRequest, Ended, Output
from wasmsand.v86.agent import MachineLost
from wasmsand.v86.frames import FRAME_MAX, PIECE, FromAgent, ToAgent, run_payload

if TYPE_CHECKING:
    from wasmsand.v86.agent import Agent

ROOT_IDS: Final = (0, 0)
USER_IDS: Final = (1000, 1000)
_STRING_MAX: Final = 131072
"""The longest argument of execve(2)."""
_STRINGS_MAX: Final = 2 << 20
_SIGKILL_SECONDS: Final = 30.0
"""A command that still runs so long after it was killed: the guest is lost."""
_INPUTS_MAX: Final = 4
_OUTPUTS_MAX: Final = 12
_DESCRIPTOR_MAX: Final = 512


class GuestCommand:
    """One started command."""

    def __init__(self, agent: Agent, request: CommandRequest, max_open_files: int) -> None:
        """Start it. Raises `KernelError`, which names the program or the directory, and
        `MachineLost`."""
        self._agent = agent
        self._changed = threading.Condition()
        self.pid: int
        # Guarded by `_changed`:
        self._started: tuple[int, int] | None = None
        self._output: list[Output] = []
        self._status: int | None = None
        self._ended_at = 0.0
        self._room = dict.fromkeys((STDIN, *request.extra_inputs), PIECE)
        self._closed_inputs: set[int] = set()
        self._unread_inputs: set[int] = set()
        """Inputs that nobody reads any more."""
        self._is_lost = False
        self._timed_out = False
        self.was_killed = False
        payload = _payload(request, max_open_files)
        self._began = time.monotonic()
        self.identity = agent.add(self)
        agent.send(ToAgent.RUN, self.identity, payload)
        if request.stdin == b"":
            agent.send(ToAgent.INPUT, self.identity, struct.pack("<I", STDIN))
            self._closed_inputs.add(STDIN)
        with self._changed:
            while self._started is None and not self._is_lost:
                self._changed.wait()
            if self._started is None:
                raise MachineLost(agent.why_lost)
            self.pid, is_program = self._started
        if self.pid <= 0:
            subject = request.argv[0] if is_program else request.cwd
            number = -self.pid
            known = {each.value for each in Errno}
            raise KernelError(Errno(number) if number in known else Errno.EIO, subject)

    # Called by the agent's reading thread.

    def on_frame(self, kind: int, payload: bytes) -> None:
        """Handle a frame about this command. Malformed frames are ignored."""
        with self._changed:
            try:
                self._handle(kind, payload)
            except struct.error:
                return
            self._changed.notify_all()

    def _handle(self, kind: int, payload: bytes) -> None:
        if kind == FromAgent.STARTED:
            self._started = struct.unpack_from("<ii", payload)
        elif kind == FromAgent.OUTPUT:
            (fd,) = struct.unpack_from("<i", payload)
            # A hostile agent could ignore the window.
            if sum(len(each.data) for each in self._output) < PIECE * (_OUTPUTS_MAX + 1):
                self._output.append(Output(fd, payload[4:]))
        elif kind == FromAgent.ENDED:
            (self._status,) = struct.unpack_from("<i", payload)
            self._ended_at = time.monotonic()
        elif kind == FromAgent.TAKEN:
            fd, count = struct.unpack_from("<ii", payload)
            if count < 0:
                self._unread_inputs.add(fd)
            elif fd in self._room:
                self._room[fd] = min(PIECE, self._room[fd] + count)

    def on_lost(self) -> None:
        """The machine is lost."""
        with self._changed:
            self._is_lost = True
            self._changed.notify_all()

    # `BackendProcess`.

    def now(self) -> float:
        """See `BackendProcess`."""
        return time.monotonic()

    def uncounted_seconds(self) -> float:
        """See `BackendProcess`."""
        return 0.0

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        """See `BackendProcess`."""
        deadline = _deadline(timeout_seconds)
        with self._changed:
            while not self._output and self._status is None:
                self._wait(deadline, "the command printed nothing before the timeout")
            taken, self._output = tuple(self._output), []
            has_ended = self._status is not None
        if not has_ended:
            self._make_room(taken)
        return taken

    def _make_room(self, taken: Sequence[Output]) -> None:
        sizes: dict[int, int] = {}
        for output in taken:
            sizes[output.fd] = sizes.get(output.fd, 0) + len(output.data)
        for fd, size in sizes.items():
            self._agent.send(ToAgent.WINDOW, self.identity, struct.pack("<iI", fd, size))

    def _wait(self, deadline: float | None, message: str) -> None:
        if self._is_lost:
            raise MachineLost(self._agent.why_lost)
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError(message)
        self._changed.wait(left)

    def write(self, data: bytes, fd: int = STDIN, timeout_seconds: float | None = None) -> int:
        """See `BackendProcess`. Raises `KernelError`."""
        deadline = _deadline(timeout_seconds)
        done = 0
        while done < len(data):
            try:
                piece = self._claim(data, done, fd, deadline)
            except TimeoutError:
                break
            self._agent.send(ToAgent.INPUT, self.identity, struct.pack("<I", fd) + piece)
            done += len(piece)
        return done

    def _claim(self, data: bytes, start: int, fd: int, deadline: float | None) -> bytes:
        """Wait for room, and take a piece that fits into it."""
        with self._changed:
            while True:
                if fd in self._closed_inputs or fd not in self._room:
                    raise KernelError(Errno.EBADF)
                if fd in self._unread_inputs or self._status is not None:
                    raise KernelError(Errno.EPIPE)
                if room := self._room[fd]:
                    piece = data[start : start + room]
                    self._room[fd] -= len(piece)
                    return piece
                self._wait(deadline, "the command did not read its input before the timeout")

    def close_input(self, fd: int = STDIN) -> None:
        """See `BackendProcess`."""
        with self._changed:
            if fd in self._closed_inputs or fd not in self._room or self._status is not None:
                return
            self._closed_inputs.add(fd)
        try:
            self._agent.send(ToAgent.INPUT, self.identity, struct.pack("<I", fd))
        except MachineLost:
            pass

    def wait(self, timeout_seconds: float | None = None) -> Ended | None:
        """See `BackendProcess`."""
        deadline = _deadline(timeout_seconds)
        with self._changed:
            while self._status is None:
                try:
                    self._wait(deadline, "")
                except TimeoutError:
                    return None
            return self._ended()

    def _ended(self) -> Ended:
        assert self._status is not None
        status = self._status
        code = 128 + (status & 0x7F) if status & 0x7F else status >> 8 & 0xFF
        return Ended(
            124 if self._timed_out else code, self._timed_out, self._ended_at - self._began
        )

    def take_notices(self) -> tuple[str, ...]:
        """See `BackendProcess`."""
        return ()

    def kill(self) -> None:
        """See `BackendProcess`."""
        with self._changed:
            if self._status is not None or self._is_lost:
                return
            self.was_killed = True
        try:
            self._agent.send(ToAgent.KILL, self.identity)
        except MachineLost:
            pass

    # For `V86Backend.run`.

    def time_out(self) -> None:
        """Kill the command because its time is up."""
        with self._changed:
            if self._status is None:
                self._timed_out = True
        self.kill()

    def step(self, data: bytes, done: int, seconds: float | None) -> tuple[tuple[Output, ...], int]:
        """Send what fits of the standard input from `done` on, and take what was printed. Waits for
        either, or for the end, at most `seconds`. Returns the output, and how much input was sent.
        The output is empty with the end, and when the time is up."""
        deadline = _deadline(seconds)
        piece = b""
        with self._changed:
            while not self._output and self._status is None:
                is_open = STDIN not in self._unread_inputs and done < len(data)
                if is_open and self._room[STDIN]:
                    piece = data[done : done + self._room[STDIN]]
                    self._room[STDIN] -= len(piece)
                    break
                try:
                    self._wait(deadline, "")
                except TimeoutError:
                    return (), done
            taken, self._output = tuple(self._output), []
            has_ended = self._status is not None
        if piece:
            self._agent.send(ToAgent.INPUT, self.identity, struct.pack("<I", STDIN) + piece)
            done += len(piece)
            if done == len(data):
                self.close_input()
        if not has_ended:
            self._make_room(taken)
        return taken, done

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended and all its output was taken."""
        with self._changed:
            return self._status is not None and not self._output

    def end_certainly(self) -> None:
        """Wait for the end of a command that was killed. If it does not come, declare the machine
        lost."""
        deadline = time.monotonic() + _SIGKILL_SECONDS
        while True:
            with self._changed:
                if self._is_lost or self._status is not None:
                    return
                self._changed.wait(deadline - time.monotonic())
                taken, self._output = self._output, []
            if time.monotonic() > deadline:
                self._agent.lose("it did not end a command that was killed")
                return
            self._make_room(taken)


def _payload(request: CommandRequest, max_open_files: int) -> bytes:
    argv = [part.encode("utf-8", "surrogateescape") for part in request.argv]
    environ = [
        f"{name}={value}".encode("utf-8", "surrogateescape")
        for name, value in request.environ.items()
    ]
    longest = max(len(part) for part in (*argv, *environ))
    if longest >= _STRING_MAX or sum(len(part) + 1 for part in (*argv, *environ)) > _STRINGS_MAX:
        raise KernelError(
            Errno.E2BIG, f"command too long: Linux takes {_STRING_MAX} bytes in one argument"
        )
    inputs = (STDIN, *request.extra_inputs)
    outputs = (STDOUT, STDERR, *request.extra_outputs)
    if len(inputs) > _INPUTS_MAX or len(outputs) > _OUTPUTS_MAX:
        raise KernelError(Errno.EMFILE, "too many descriptors for one command")
    if max((*inputs, *outputs)) >= _DESCRIPTOR_MAX:
        raise KernelError(Errno.EBADF, f"descriptors must be below {_DESCRIPTOR_MAX}")
    user = ROOT_IDS if request.user == "root" else USER_IDS
    cwd = request.cwd.encode("utf-8", "surrogateescape")
    payload = run_payload(user, max_open_files, cwd, argv, environ, inputs, outputs)
    if len(payload) > FRAME_MAX or len(argv) > 16000 or len(environ) > 16000:
        raise KernelError(Errno.E2BIG)
    return payload


def _deadline(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds
