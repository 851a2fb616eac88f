"""A command that runs while the test continues."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.waiting import PATIENCE
from wasmsand.machine import Completed


class Running:
    """A command on a thread of its own; `command` runs it to its end."""

    def __init__(self, command: Callable[[], Completed]) -> None:
        self.results: list[Completed | BaseException] = []
        self._thread = threading.Thread(target=self._run, args=(command,))
        self._thread.start()

    def _run(self, command: Callable[[], Completed]) -> None:
        try:
            self.results.append(command())
        except BaseException as error:
            self.results.append(error)

    def wait(self) -> Completed | BaseException:
        """Wait for the command; returns its result, or what it raised."""
        self._thread.join(PATIENCE)
        return self.results[0]

    def result(self) -> Completed:
        """Wait for the command; returns its result, or raises what it raised."""
        result = self.wait()
        if isinstance(result, BaseException):
            raise result
        return result
