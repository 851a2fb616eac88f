"""Requests to the agent in the guest, over one Node process.

Owns `Agent`: the thread that reads frames, the calls that wait for answers, and the watch for a
guest that does not answer. Rules: the reading thread never sends, because the guest may wait for
it; everything that waits ends when the machine is lost.
"""

from __future__ import annotations

import itertools
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.v86.frames import (
    FROM_GUEST_MAX,
    HEADER,
    Argument,
    FromAgent,
    ToAgent,
    call_payload,
    frame,
)
from wasmsand.v86.image import V86Image
from wasmsand.v86.node import NodeProcess

if TYPE_CHECKING:
    from wasmsand.v86.command import GuestCommand

START_SECONDS: Final = 120.0
UNANSWERED_SECONDS: Final = 45.0
"""A guest that does not answer a call for this time is lost."""
_WATCH_SECONDS: Final = 1.0
_PING_SECONDS: Final = 15.0
_GETPID: Final = 20
_KNOWN_ERRORS: Final = {number.value: number for number in Errno}


class MachineLost(Exception):
    """The machine is gone; the message says why."""


class _Call:
    """A system call that waits for its answer."""

    __slots__ = ("answer", "began")

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.answer: bytes | None = None


class Agent:
    """The agent of one running machine."""

    def __init__(self, image: V86Image) -> None:
        """Start a machine and wait for its agent. Raises `MachineLost`."""
        self._changed = threading.Condition()
        # Guarded by `_changed`:
        self._calls: dict[int, _Call] = {}
        self._commands: dict[int, GuestCommand] = {}
        self._lost: str | None = None
        self._is_ready = False
        self._heard = time.monotonic()
        self._numbers = itertools.count(1)
        self._sending = threading.Lock()
        self.node: NodeProcess
        self._start_failure: BaseException | None = None
        spawned = threading.Event()
        # The system ends Node with the thread that started it, so that thread is the reader.
        threading.Thread(
            target=self._read, args=(image, spawned), name="wasmsand-v86", daemon=True
        ).start()
        spawned.wait()
        if self._start_failure is not None:
            raise MachineLost(f"Node cannot be started: {self._start_failure}")
        threading.Thread(target=self._watch, name="wasmsand-v86-watch", daemon=True).start()
        deadline = time.monotonic() + START_SECONDS
        with self._changed:
            while not self._is_ready and self._lost is None:
                if not self._changed.wait(deadline - time.monotonic()):
                    break
            is_ready = self._is_ready
        if not is_ready:
            self.lose("it did not start in time")
            raise MachineLost(self.why_lost)

    @property
    def why_lost(self) -> str:
        """Why the machine was lost; empty while it runs."""
        return self._lost or ""

    # Requests.

    def call(self, number: int, *arguments: Argument) -> tuple[int, bytes]:
        """Make a system call in the guest. Returns its result and the content of its outputs.
        Raises `KernelError` and `MachineLost`."""
        return self.result_of(self.begin(number, *arguments))

    def begin(self, number: int, *arguments: Argument) -> int:
        """Send a call; `result_of` waits for its result."""
        call = _Call()
        with self._changed:
            self._check()
            identity = next(self._numbers)
            self._calls[identity] = call
        self.send(ToAgent.CALL, identity, call_payload(number, arguments))
        return identity

    def result_of(self, identity: int) -> tuple[int, bytes]:
        """The result of a call that was begun."""
        with self._changed:
            call = self._calls[identity]
            while call.answer is None and self._lost is None:
                self._changed.wait()
            del self._calls[identity]
            if call.answer is None:
                raise MachineLost(self.why_lost)
        (result,) = struct.unpack_from("<i", call.answer)
        if -4096 < result < 0:
            raise KernelError(_KNOWN_ERRORS.get(-result, Errno.EIO))
        return result, call.answer[4:]

    def add(self, command: GuestCommand) -> int:
        """Give a new command its identity."""
        with self._changed:
            self._check()
            identity = next(self._numbers)
            self._commands[identity] = command
            return identity

    def send(self, kind: ToAgent, identity: int, payload: bytes = b"") -> None:
        """Send a frame; waits while the guest is busy. Raises `MachineLost`."""
        data = memoryview(frame(kind, identity, payload))
        try:
            with self._sending:
                while data:
                    data = data[self.node.to_guest.write(data) :]
        except (OSError, ValueError):
            self.lose("")
            raise MachineLost(self.why_lost) from None

    def _check(self) -> None:
        if self._lost is not None:
            raise MachineLost(self._lost)

    # The end.

    def lose(self, why: str) -> None:
        """Declare the machine lost and end it; without a reason, Node's own words are used."""
        if not why:
            self.node.kill()
            words = self.node.last_words()
            status = self.node.process.returncode
            why = f"the emulator has ended with status {status}" + (f": {words}" if words else "")
        with self._changed:
            if self._lost is None:
                self._lost = why
            commands = list(self._commands.values())
            self._commands.clear()
            self._changed.notify_all()
        self.node.kill()
        with self._sending, suppress(OSError):
            self.node.to_guest.close()
        for command in commands:
            command.on_lost()

    def close(self) -> None:
        """End the machine."""
        self.lose("the sandbox was closed")

    # Threads.

    def _on_event(self, name: str, text: str) -> None:
        if name == "panic":
            self.lose(f"its kernel has panicked: {text.strip()}")

    def _read(self, image: V86Image, spawned: threading.Event) -> None:
        try:
            self.node = NodeProcess(image, self._on_event)
        except BaseException as error:
            self._start_failure = error
            return
        finally:
            spawned.set()
        try:
            while True:
                length, identity, kind = HEADER.unpack(self._exactly(HEADER.size))
                if length > FROM_GUEST_MAX:
                    raise EOFError
                self._dispatch(kind, identity, self._exactly(length))
        except (OSError, ValueError, EOFError, struct.error):
            self.lose("")
        finally:
            self.node.from_guest.close()

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = self.node.from_guest.read(min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _dispatch(self, kind: int, identity: int, payload: bytes) -> None:
        with self._changed:
            self._heard = time.monotonic()
            if kind == FromAgent.HELLO:
                self._is_ready = True
                self._changed.notify_all()
                return
            if kind == FromAgent.CALLED:
                call = self._calls.get(identity)
                if call is not None and len(payload) >= 4:
                    call.answer = payload
                    self._changed.notify_all()
                return
            command = self._commands.get(identity)
            if kind == FromAgent.ENDED:
                self._commands.pop(identity, None)
        if command is not None:
            command.on_frame(kind, payload)

    def _watch(self) -> None:
        """Notice a guest that does not answer: a call that waits for long is one sign, and while
        commands run, a call of our own asks."""
        while True:
            time.sleep(_WATCH_SECONDS)
            now = time.monotonic()
            with self._changed:
                if self._lost is not None:
                    return
                oldest = min((call.began for call in self._calls.values()), default=now)
                is_quiet = bool(self._commands) and now - self._heard > _PING_SECONDS
                ping = is_quiet and not self._calls and self._is_ready
                if ping:
                    identity = next(self._numbers)
                    self._calls[identity] = _Call()
                answered = [key for key, call in self._calls.items() if call.answer is not None]
            if now - oldest > UNANSWERED_SECONDS and not answered:
                self.lose(f"it did not answer for {UNANSWERED_SECONDS:.0f} seconds")
                return
            if ping:
                threading.Thread(
                    target=self._ping, args=(identity,), name="wasmsand-v86", daemon=True
                ).start()

    def _ping(self, identity: int) -> None:
        try:
            self.send(ToAgent.CALL, identity, call_payload(_GETPID, ()))
            self.result_of(identity)
        except (MachineLost, KernelError):
            pass
