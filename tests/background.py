"""A call that runs while the test continues."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from tests.waiting import PATIENCE

Result = TypeVar("Result")


class Running(Generic[Result]):
    """A call on a thread of its own."""

    def __init__(self, call: Callable[[], Result]) -> None:
        self.results: list[Result | BaseException] = []
        """Empty while the call runs; then its result, or what it raised."""
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], Result]) -> None:
        try:
            self.results.append(call())
        except BaseException as error:
            self.results.append(error)

    def is_over(self, seconds: float) -> bool:
        """Wait for at most that long; whether the call has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def wait(self) -> Result | BaseException:
        """Wait for the end; returns the result, or what the call raised."""
        assert self.is_over(PATIENCE), "the call did not end"
        return self.results[0]

    def result(self) -> Result:
        """Wait for the end; returns the result, or raises what the call raised."""
        result = self.wait()
        if isinstance(result, BaseException):
            raise result
        return result
