"""What a sandbox did on the network.

Owns `NetworkEvent` and `EventLog`. Rules: the log keeps the newest events, and their number is
bounded. Events contain no data that was transferred and no secret.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from wasmsand.engine.placement import free_this_thread
from wasmsand.kernel.limits import NETWORK_EVENTS_MAX
from wasmsand.machine.bug_log import log_bug

EventKind = Literal["lookup", "connection", "request", "port"]


@dataclass(frozen=True, slots=True)
class NetworkEvent:
    """A look-up, a connection, a request, or a connection from outside to a port of the sandbox.

    Connections and requests are reported when they have ended.
    """

    kind: EventKind
    allowed: bool
    host: str
    """The name that the guest used, or an address."""
    port: int
    """0 for a look-up."""
    time: float
    """When it began, in seconds since 1970."""
    reason: str = ""
    """Why it was refused or failed."""
    address: str = ""
    """The address of the other end."""
    sent: int = 0
    """Bytes that the guest sent."""
    received: int = 0
    """Bytes that the guest was sent."""
    duration_ms: float = 0.0
    method: str = ""
    path: str = ""
    status: int = 0
    """The status of the response to a request."""


class EventLog:
    """The newest events of one sandbox, and how many there were."""

    def __init__(self) -> None:
        self.on_event: Callable[[NetworkEvent], None] | None = None
        """Called for every event, one after the other, on a thread of the host. If it is slow,
        events that it has not seen are left out, oldest first."""
        self._lock = threading.Lock()
        self._events: deque[NetworkEvent] = deque(maxlen=NETWORK_EVENTS_MAX)
        self._untold: deque[NetworkEvent] = deque(maxlen=NETWORK_EVENTS_MAX)
        self._telling = False
        self.total = 0
        """How many events there were."""

    def events(self) -> list[NetworkEvent]:
        """The newest events, oldest first."""
        with self._lock:
            return list(self._events)

    def add(self, event: NetworkEvent) -> None:
        """Keep an event. From any thread, also with the sandbox's lock held."""
        with self._lock:
            self._events.append(event)
            self.total += 1
            if self.on_event is None:
                return
            self._untold.append(event)
            if self._telling:
                return
            self._telling = True
        free_this_thread()
        threading.Thread(target=self._tell, name="wasmsand-events", daemon=True).start()

    def _tell(self) -> None:
        while True:
            with self._lock:
                callback = self.on_event
                if not self._untold or callback is None:
                    self._telling = False
                    return
                event = self._untold.popleft()
            try:
                callback(event)
            except Exception:
                log_bug("on_event failed")
