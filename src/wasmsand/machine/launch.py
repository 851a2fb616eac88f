"""Starting a program on the thread that will run it.

Owns `Launch`. A signal handler of the host can raise an exception (Ctrl-C) at any moment in the
main thread, also in the middle of a change of the kernel's state. So who wants a program started
only waits; a thread of the pool, in which no handler runs, makes the process and then runs it,
which costs no more than handing it the process. Rules: whoever gives up before the process is
known does not leave it behind: it is ended as soon as it is. Nothing that lives as long as the
process holds the machine.
"""

from __future__ import annotations

import threading
from _thread import get_ident
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
    """A process on its way."""

    def __init__(self, make: Callable[[], ThreadDriver], settled: Callable[[Launch], None]) -> None:
        """`make` makes the process, not running yet. `settled` is called when it is made, or
        cannot be, on the thread that will run it."""
        self._make: Callable[[], ThreadDriver] | None = make
        self._settled: Callable[[Launch], None] | None = settled
        self.process: Process | None = None
        self.error: BaseException | None = None
        self.given_up = False

    def begin(self, engine: Engine, lock: SandboxLock) -> None:
        """Have it started, beside this thread."""
        lock.release_mine()  # if an operation that was broken off has left it
        try:
            engine.start_thread(self._run)
        except RuntimeError as error:  # the host has no threads left
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
    """Call `act` where no signal handler can raise in the middle of it, and wait for its end. What
    a handler raised meanwhile is raised then."""
    if get_ident() != threading.main_thread().ident:
        act()
        return
    lock.release_mine()  # if an operation that was broken off has left it
    ended = OneShot()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()

    engine.start_thread(work)
    interruption: BaseException | None = None
    while not ended.happened:
        try:
            ended.wait()
        except BaseException as error:
            interruption = error
    if failures:
        raise failures[0]
    if interruption is not None:
        raise interruption
