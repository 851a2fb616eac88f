"""Questions to the user's code about hosts that no rule names.

Owns `Questions`, one per sandbox. Rules: the user's code may take as long as it likes, for example
because it asks a person. So it runs on a thread of its own, which exists only while there are
questions; one question at a time, and none twice. The number of waiting questions is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from wasmsand.engine.placement import free_this_thread
from wasmsand.kernel.limits import NETWORK_LOOKUPS_MAX
from wasmsand.machine.bug_log import log_bug

Ask = Callable[[str, int], bool]
Place = tuple[str, int]
"""A host and a port."""
_ANSWERS_MAX: Final = 1024


class TooManyQuestions(Exception):
    """As many questions wait as may."""


class Questions:
    """What the user's code was asked, and what it answered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[Place, bool] = {}
        self._waiting: dict[Place, list[Callable[[bool], None]]] = {}
        self._running = False

    def answer_to(self, place: Place) -> bool | None:
        """What was answered about a place; None if nothing yet."""
        return self._answers.get(place)

    def forget(self) -> None:
        """The rules have changed: ask again."""
        with self._lock:
            self._answers.clear()

    def put(self, ask: Ask, place: Place, done: Callable[[bool], None]) -> None:
        """Call `done` with the answer, on another thread. Raises `TooManyQuestions`."""
        with self._lock:
            waiting = self._waiting.get(place)
            if waiting is not None:
                waiting.append(done)
                return
            if len(self._waiting) >= NETWORK_LOOKUPS_MAX:
                raise TooManyQuestions
            self._waiting[place] = [done]
            if not self._running:
                free_this_thread()
                threading.Thread(
                    target=self._run, args=(ask,), name="wasmsand-ask", daemon=True
                ).start()
                self._running = True

    def _run(self, ask: Ask) -> None:
        while True:
            with self._lock:
                place = next(iter(self._waiting), None)
                if place is None:
                    self._running = False
                    return
                known = self._answers.get(place)
            answer = known if known is not None else _answer(ask, place)
            with self._lock:
                while len(self._answers) >= _ANSWERS_MAX:
                    del self._answers[next(iter(self._answers))]
                self._answers[place] = answer
                waiting = self._waiting.pop(place)
            for done in waiting:
                done(answer)


def _answer(ask: Ask, place: Place) -> bool:
    """What the user's code says; an exception is a no."""
    try:
        return ask(*place) is True
    except Exception:
        log_bug("ask failed for %s:%d", *place)
        return False
