"""Hosts that answer a guest's connections, through the capability `Outside`.

`ManualHost` does nothing by itself: a test takes each step. `AnsweringHost` has a thread for each
connection, as a real host would: the thread sleeps until the guest has acted, then takes the
sandbox's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.address import AF_INET6, InetAddress
from wasmsand.kernel.sockets.outside import DatagramSender, OutsideEnd
from wasmsand.machine.lock import SandboxLock

OWN_HOST = b"\x0a\0\x02\x0f"
"""10.0.2.15: the guest's address, as the other end sees it."""
FORBIDDEN = b"\xa9\xfe\xa9\xfe"
"""169.254.169.254, which these hosts refuse."""
PATIENCE = 20.0


class ManualHost:
    """Collects the ends of connections that guests request; it has only IPv4."""

    def __init__(self) -> None:
        self.asked: list[tuple[InetAddress, OutsideEnd]] = []

    def source(self, destination: InetAddress) -> bytes:
        if destination.family == AF_INET6:
            raise KernelError(Errno.ENETUNREACH)
        return OWN_HOST

    def connect_stream(self, destination: InetAddress, end: OutsideEnd) -> None:
        if destination.host == FORBIDDEN:
            raise KernelError(Errno.EACCES)
        self.asked.append((destination, end))

    def send_datagram(self, destination: InetAddress, data: bytes, sender: DatagramSender) -> None:
        """Answer with the same data."""
        sender.be_answered(data, destination)

    @property
    def end(self) -> OutsideEnd:
        """The end of the last connection."""
        return self.asked[-1][1]


class AnsweringHost(ManualHost):
    """Gives every connection to `serve`, which runs on a thread of its own."""

    def __init__(self, lock: SandboxLock, serve: Callable[[Conversation], None]) -> None:
        super().__init__()
        self._lock = lock
        self._serve = serve
        self.threads: list[threading.Thread] = []

    def connect_stream(self, destination: InetAddress, end: OutsideEnd) -> None:
        super().connect_stream(destination, end)
        conversation = Conversation(self._lock, end)
        thread = threading.Thread(target=self._run, args=(conversation,), daemon=True)
        self.threads.append(thread)
        thread.start()

    def _run(self, conversation: Conversation) -> None:
        with self._lock:
            conversation.end.establish()
        try:
            self._serve(conversation)
        finally:
            with self._lock:
                conversation.end.close()


class Conversation:
    """A connection with blocking reads and writes, for a thread of the host."""

    def __init__(self, lock: SandboxLock, end: OutsideEnd) -> None:
        self._lock = lock
        self.end = end
        self._changed = threading.Event()
        end.changed.add(self._changed.set)  # under the lock, as `connect_stream` is called

    def _wait(self) -> None:
        assert self._changed.wait(PATIENCE), "the guest does nothing"

    def read(self) -> bytes:
        """What the guest has written; empty at the end."""
        while True:
            self._changed.clear()
            with self._lock:
                data = self.end.take()
                if data or self.end.at_end:
                    return data
            self._wait()

    def write(self, data: bytes) -> int:
        """Write everything, unless the guest closes; returns how much was written."""
        done = 0
        while done < len(data):
            self._changed.clear()
            with self._lock:
                done += self.end.give(data[done:])
                if self.end.is_gone:
                    break
            if done < len(data):
                self._wait()
        return done
