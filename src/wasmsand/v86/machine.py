"""One machine: started from its saved state, and started again when it is lost.

Owns the agent's life, the limits inside the guest, and its clock and random numbers. Rules: a new
machine is ready only when its clock, its random numbers and its limits are set and the disk image
is loaded; a lost machine is replaced by the next use; after `close` nothing starts any more.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from wasmsand.kernel.errno import KernelError
from wasmsand.sdk.errors import SandboxClosedError
from wasmsand.sdk.options import SandboxOptions
from wasmsand.v86 import linux
from wasmsand.v86.agent import Agent, MachineLost
from wasmsand.v86.image import V86Image

BOX: Final = b"/sys/fs/cgroup/box"
SCRATCH: Final = b"/run/scratch"
_RESERVED: Final = b"/sys/fs/ext4/sdb/reserved_clusters"


class GuestMachine:
    """A machine that replaces itself when it is lost."""

    def __init__(self, image: V86Image, options: SandboxOptions) -> None:
        self.image = image
        self._options = options
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._current: Agent | None = None
        self._is_closed = False
        self._cleaning = threading.Lock()
        # Guarded by `_cleaning`, because `on_new` may run commands under the other lock:
        self._leftovers: set[int] = set()
        self.on_new: Callable[[Agent], None] = lambda agent: None
        """Called for every machine before it is used."""

    def agent(self) -> Agent:
        """The agent of the running machine, which is started if necessary. Raises `MachineLost` and
        `SandboxClosedError`."""
        with self._lock:
            if self._is_closed:
                raise SandboxClosedError("the sandbox was killed; create a new Sandbox")
            if self._current is not None and not self._current.why_lost:
                return self._current
            with self._cleaning:
                self._leftovers.clear()
            started = Agent(self.image)
            try:
                self._prepare(started)
                self.on_new(started)
            except KernelError as error:
                started.lose(f"it could not be prepared: {error}")
                raise MachineLost(started.why_lost) from None
            except BaseException:
                started.lose("it could not be prepared")
                raise
            self._current = started
            return started

    def _prepare(self, agent: Agent) -> None:
        linux.set_clock(agent, time.time_ns())
        linux.seed_random(agent, secrets.token_bytes(64))
        options = self._options
        limits = {b"memory.max": options.memory_limit_bytes, b"pids.max": options.max_processes}
        for name, value in limits.items():
            linux.write_control(agent, BOX + b"/" + name, b"%d" % value)
        size, blocks, _, _, _ = linux.space(agent, SCRATCH)
        reserved = max(0, blocks - -(-options.fs_limit_bytes // size))
        linux.write_control(agent, _RESERVED, b"%d" % reserved)

    def clean(self, agent: Agent, identity: int) -> None:
        """Remove the cgroup of an ended command, and those of earlier ones whose last process has
        ended meanwhile."""
        with self._cleaning:
            self._leftovers.add(identity)
            waiting = sorted(self._leftovers)
        for each in waiting:
            with suppress(KernelError):
                linux.rmdir(agent, BOX + b"/c%d" % each)
                with self._cleaning:
                    self._leftovers.discard(each)

    def was_out_of_memory(self, agent: Agent, identity: int) -> bool:
        """Whether the kernel has ended a process of a command for want of memory."""
        try:
            events = linux.read_control(agent, BOX + b"/c%d/memory.events" % identity)
        except KernelError:
            return False
        counts = dict(line.split(b" ", 1) for line in events.splitlines() if b" " in line)
        return counts.get(b"oom_kill", b"0") != b"0"

    def close(self) -> None:
        """End the machine; idempotent."""
        with self._lock:
            self._is_closed = True
            current = self._current
        if current is not None:
            current.close()
