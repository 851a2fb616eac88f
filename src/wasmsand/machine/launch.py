"""Starting a program on the thread that will run it.

Owns `Launch`. A signal handler of the host can raise an exception (Ctrl-C) at any point of the main
thread, even in the middle of a change to kernel state. So the caller only waits; a pool thread, on
which no signal handlers run, creates the process and then runs it. That costs no more than passing
a finished process to the thread. Rules: if the caller gives up before the process exists, the
process is ended as soon as it does. Nothing that lives as long as the process references the
machine.
"""

from __future__ import annotations

import threading
from _thread import allocate_lock, get_ident
from collections.abc import Callable
from typing import TYPE_CHECKING

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.process.process import Process
from wasmsand.machine.parking import OneShot

if TYPE_CHECKING:
    from wasmsand.engine.protocol import Engine
    from wasmsand.machine.lock import SandboxLock
    from wasmsand.machine.thread_driver import ThreadDriver


class Launch:
    """A process that is being started."""

    def __init__(self, make: Callable[[], ThreadDriver], settled: Callable[[Launch], None]) -> None:
        """`make` creates the process without running it. `settled` is called, on the thread that
        will run it, when the process exists or could not be created."""
        self._make: Callable[[], ThreadDriver] | None = make
        self._settled: Callable[[Launch], None] | None = settled
        self.process: Process | None = None
        self.error: BaseException | None = None
        self.given_up = False

    def begin(self, engine: Engine, lock: SandboxLock) -> None:
        """Start it on a pool thread."""
        lock.release_mine()  # an interrupted operation may have left it locked
        try:
            engine.start_thread(self._run)
        except RuntimeError as error:  # the host has no thread available
            raise KernelError(Errno.EAGAIN, str(error)) from error

    def _run(self) -> None:
        make, settled = self._make, self._settled
        self._make = self._settled = None
        assert make is not None
        assert settled is not None
        driver = None
        try:
            driver = make()
            self.process = driver.process
        except BaseException as error:
            self.error = error
        del make
        settled(self)
        del settled
        if driver is not None:
            driver.run()


def steadily(engine: Engine, lock: SandboxLock, act: Callable[[], object]) -> None:
    """Call `act` on a thread where no signal handler can interrupt it, and wait for its end. An
    exception that a handler raised meanwhile is raised afterwards."""
    if get_ident() != threading.main_thread().ident:
        act()
        return
    lock.release_mine()  # an interrupted operation may have left it locked
    ended = OneShot()
    failures: list[BaseException] = []
    claim = allocate_lock()  # taken by the thread when it begins, or by an interrupted caller

    def work() -> None:
        if not claim.acquire(False):
            return
        try:
            act()
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()

    interruption: BaseException | None = None
    started = False
    while not ended.happened:
        try:
            if not started:
                started = True
                engine.start_thread(work)
            ended.wait()
        except BaseException as error:
            if claim.acquire(False):
                raise  # the thread has not begun to act, and never will
            interruption = error
    if failures:
        raise failures[0]
    if interruption is not None:
        raise interruption
