"""A sandbox's machine in a JavaScript host.

Owns `WebMachine`: kernel, files and guests without threads. Rules: every method returns at once.
What takes longer ends with a call of a function that the caller gave. After each entry from
JavaScript, `Loop.settle` runs what became ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wasmsand.abi.wasi.table import HOST_FUNCTIONS
from wasmsand.engine.javascript.engine import JavaScriptEngine
from wasmsand.kernel.clock import Clock
from wasmsand.kernel.files.description import OpenFile
from wasmsand.kernel.files.terminal import Terminal
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import TIMER_GAP_NS, Limits
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.timers import fire_timers
from wasmsand.kernel.vfs import FrozenTree, TreeFs
from wasmsand.machine.command import CommandRequest
from wasmsand.machine.files import SandboxFiles
from wasmsand.machine.host_process import USER, new_process
from wasmsand.machine.lock import SandboxLock
from wasmsand.web.contents import ImageContents
from wasmsand.web.host import WebHost
from wasmsand.web.loop import Loop
from wasmsand.web.modules import WebModules
from wasmsand.web.mounts import WebMounts
from wasmsand.web.network.bridge import PageNetwork, WebBridge


class WebMachine:
    """One sandbox."""

    def __init__(
        self,
        host: WebHost,
        engine: JavaScriptEngine,
        image: FrozenTree,
        limits: Limits | None = None,
        network: PageNetwork | None = None,
        hostname: str = "sandbox",
    ) -> None:
        limits = limits or Limits()
        clock = Clock()
        engine.offer(HOST_FUNCTIONS)
        self.engine = engine
        self.lock = SandboxLock()
        self.identity = USER
        self.loop = Loop(host, clock)
        self.modules = WebModules(engine, host)
        self.kernel = kernel = Kernel(
            TreeFs(image, limits, clock.realtime), limits, clock=clock, hostname=hostname.encode()
        )
        kernel.interrupt = self.loop.look_at_computing
        kernel.timer_armed = self._timer_armed
        kernel.process_ended = self._process_ended
        self.contents = ImageContents(host, self.loop)
        kernel.content_wanted = self.contents.want
        self.bridge = WebBridge(self.lock, kernel, self.loop, network or PageNetwork(host))
        self._watchers: dict[int, Callable[[], None]] = {}
        self.closed = False
        self.mounts = WebMounts(self, host)
        self.files = SandboxFiles(self)

    # Hooks of the kernel.

    def _timer_armed(self, when_ns: int) -> None:
        self.loop.not_after(when_ns, self._fire_timers)

    def _fire_timers(self) -> None:
        again = fire_timers(self.kernel)
        if again is not None:
            # A timer with a tiny interval must not keep the kernel's worker busy.
            soonest = self.kernel.clock.monotonic() + TIMER_GAP_NS
            self._timer_armed(max(again, soonest))

    def _process_ended(self, process: Process) -> None:
        watcher = self._watchers.pop(process.pid, None)
        if watcher is not None:
            watcher()

    # Commands.

    def make_process(
        self,
        request: CommandRequest,
        files: Mapping[int, OpenFile],
        on_end: Callable[[], None],
        *,
        terminal: Terminal | None = None,
    ) -> Process:
        """Create a process for the requested program, and run it. Raises `KernelError`, and
        `WouldBlock` if its module is being fetched: then call again with the same files."""
        guest = new_process(
            self.kernel,
            self.modules,
            request,
            files,
            load=self.modules.module,
            is_closed=lambda: self.closed,
            terminal=terminal,
        )
        self._watchers[guest.process.pid] = on_end
        self.loop.add(guest)
        return guest.process

    def notices(self, job: int) -> list[str]:
        """What the sandbox did to a command."""
        kernel, found = self.kernel, []
        if job in kernel.out_of_memory_jobs:
            kernel.out_of_memory_jobs.discard(job)
            limit = kernel.limits.memory_limit_bytes
            found.append(
                f"out of memory ({limit} bytes), a process was ended; raise memoryLimitBytes"
            )
        found += kernel.job_notices.pop(job, ())
        return found

    def close(self) -> None:
        """End every process."""
        self.closed = True
        self.kernel.kill_all()
        self.loop.settle()
