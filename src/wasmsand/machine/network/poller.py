"""The thread that moves bytes between the host's sockets and the sandboxes.

Owns `Poller`, one per host process. Rules: one thread for all connections of all sandboxes; it
exists only while there is a connection. It waits only for the operating system: a step of a
connection is bounded, uses non-blocking sockets, and holds a sandbox's lock only for single kernel
calls. A step that fails affects only its own connection.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from typing import Final

from wasmsand.engine.placement import free_this_thread
from wasmsand.kernel.deadlines import Deadlines
from wasmsand.machine.bug_log import log_bug

_IDLE_SECONDS: Final = 2.0
"""How long the thread stays when there is no connection left."""
_LONGEST_WAIT: Final = 60.0


class Connected(ABC):
    """Something that the poller serves: a connection or a listener. Its methods are called on the
    poller's thread."""

    is_posted = False
    """Owned by the poller: a step is due."""

    @abstractmethod
    def step(self) -> None:
        """Do what can be done now, and tell the poller what to wait for (`Poller.watch`)."""

    @abstractmethod
    def give_up(self) -> None:
        """A step failed: release everything."""


class Poller:
    """Waits for sockets, and calls the connections that can go on."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._inbox: deque[Connected] = deque()
        self._sleeping = False
        """Whether the thread is about to wait: then somebody who posts must wake it."""
        self._lock = threading.Lock()
        self._running = False
        self._bell_in, self._bell_out = socket.socketpair()
        for end in (self._bell_in, self._bell_out):
            end.setblocking(False)
            weakref.finalize(self, end.close)  # before the interpreter complains
        self._selector.register(self._bell_out, selectors.EVENT_READ)
        self._deadlines: Deadlines[Connected] = Deadlines()

    def post(self, connected: Connected) -> None:
        """Let `connected` take a step soon. From any thread, at any time; wakers call it within a
        guest's system call."""
        if connected.is_posted:
            return
        connected.is_posted = True
        self._inbox.append(connected)
        if self._sleeping or not self._running:
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            if not self._running:
                self._running = True
                free_this_thread()
                threading.Thread(target=self._run, name="wasmsand-network", daemon=True).start()
                return
        try:
            self._bell_in.send(b"!")
        except BlockingIOError:
            pass  # it rings already

    # On the poller's thread.

    def watch(self, connected: Connected, host: socket.socket, *, read: bool, write: bool) -> None:
        """Let `connected` take a step when its socket can be read or written."""
        events = (selectors.EVENT_READ if read else 0) | (selectors.EVENT_WRITE if write else 0)
        number = host.fileno()
        key = self._selector.get_map().get(number)
        if key is None:
            if events:
                self._selector.register(number, events, connected)
        elif not events:
            self._selector.unregister(number)
        elif key.events != events or key.data is not connected:
            self._selector.modify(number, events, connected)

    def call_at(self, connected: Connected, seconds: float | None) -> None:
        """Let `connected` take a step after this time, unless it asks for another time; None: not
        at all."""
        if seconds is None:
            self._deadlines.cancel(connected)
        else:
            self._deadlines.set(connected, time.monotonic_ns() + int(seconds * 1e9))

    def forget(self, connected: Connected, host: socket.socket | None) -> None:
        """`connected` needs no more steps. To be called before its socket is closed."""
        if host is not None and host.fileno() >= 0:
            self.watch(connected, host, read=False, write=False)
        self._deadlines.cancel(connected)

    def _run(self) -> None:
        while True:
            try:
                if not self._turn():
                    return
            except Exception:
                log_bug("host bug in the network's thread")
                time.sleep(0.1)  # never spin on a persistent failure

    def _turn(self) -> bool:
        """One round of waiting and steps. False if there is nothing left to do."""
        self._sleeping = True
        timeout = 0.0 if self._inbox else self._patience()
        ready = self._selector.select(timeout)
        self._sleeping = False
        for key, _ in ready:
            if key.data is None:
                self._drain_bell()
            else:
                self._step(key.data)
        now = time.monotonic_ns()
        while (due := self._deadlines.take_due(now)) is not None:
            self._step(due)
        for _ in range(len(self._inbox)):
            connected = self._inbox.popleft()
            connected.is_posted = False
            self._step(connected)
        if ready or self._inbox or not self._is_idle():
            return True
        self._sleeping = True  # before the last look: whoever posts from now on wakes a thread
        with self._lock:
            if self._inbox:
                return True
            self._running = False
            return False

    def _is_idle(self) -> bool:
        return len(self._selector.get_map()) == 1 and self._deadlines.earliest() is None

    def _patience(self) -> float:
        when = self._deadlines.earliest()
        if when is not None:
            return min(max(0.0, (when - time.monotonic_ns()) / 1e9), _LONGEST_WAIT)
        return _IDLE_SECONDS if self._is_idle() else _LONGEST_WAIT

    def _drain_bell(self) -> None:
        try:
            while self._bell_out.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _step(self, connected: Connected) -> None:
        try:
            connected.step()
        except Exception:
            log_bug("host bug in %r", connected)
            try:
                connected.give_up()
            except Exception:
                log_bug("host bug while %r was given up", connected)


_pollers: dict[int, Poller] = {}


def poller() -> Poller:
    """The poller of this host process; a forked process has its own."""
    found = _pollers.get(os.getpid())
    return found if found is not None else _pollers.setdefault(os.getpid(), Poller())
