"""The processors on which guest threads run.

Owns `Place`, the processors of one guest thread, `CallerPlace`, and `free_this_thread`. Rules: a
thread that starts a guest keeps it on its own processor for the guest's first moments; a guest that
starts another one stays there too. So does a guest with a request of the host, which is about to
wait for the answer. After two ticks, and with them at most 20 ms of computing, the guest may run on
every processor that the thread may use. Other threads of the host are left alone, except that one
that waits for a guest's answer may be pinned while it wakes up (`CallerPlace`).

Linux moves a thread that is woken to an idle processor. But a shell that starts a child waits for
it, and the child wakes the shell when it ends: on two processors, each sleeps while the other one
works, and waking a processor takes longer than what such a guest computes. Together on one
processor, with other load on both, `( : )` takes 0.5 ms instead of 0.8 to 1.4, a pipeline of three
programs 2.6 ms instead of 4.7 to 6.2, in wall-clock time and in CPU time. Programs that compute are
apart again after two ticks.

Threads and processes inherit the processors of the thread that creates them: code that creates some
on a guest's thread, to outlive a system call, calls `free_this_thread` first.
"""

from __future__ import annotations

import _thread  # in a page it has no get_native_id
import os
import sys
from _thread import get_ident
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from wasmsand.engine.compiled import COMPILED
from wasmsand.engine.forking import in_child

_TICKS: Final = 2
"""How many ticks a guest stays on one processor."""
_PINNED_CALLERS: Final = 100
"""After how many requests it is tried again whether Linux moves the caller."""
_ALONE: Final = 10
"""After how many calls in a row a thread counts as the only one that calls sessions."""
_last_caller = -1
"""The thread of this process that has called a session last."""
_calls_in_a_row = 0
"""How often it has called, without calls of others in between."""
_is_uninterrupted = COMPILED is not None
"""Whether no signal handler of the host can run between a wait and what undoes the pinning. A
thread or process that such a handler creates would be pinned for ever."""
_places: dict[int, Place] = {}
"""The places of all guest threads, by thread."""
in_child(_places.clear)
_processor_now: Callable[[], int] | None = None
"""Tells the processor of the calling thread; None if nobody can."""


def tell_processor_by(function: Callable[[], int]) -> None:
    """From now on, this function tells the processor of the calling thread."""
    global _processor_now
    _processor_now = function


class Place:
    """The processors of one guest thread. It moves itself, or is moved by the thread that is about
    to wake it, so never by two threads at once."""

    __slots__ = ("_allowed", "_native", "_processor", "_ticks")

    def __init__(self, creator: Place | None) -> None:
        """For the calling thread, which `creator` has started."""
        self._native = _thread.get_native_id()
        self._allowed: frozenset[int] = processors() if creator is None else creator._allowed
        self._processor: int | None = None if creator is None else creator._processor
        """The processor on which it has to stay; None if it may use all that are allowed."""
        self._ticks = 0
        _places[get_ident()] = self

    def leave(self) -> None:
        """The thread is about to end."""
        _places.pop(get_ident(), None)

    def stay(self, processor: int) -> None:
        """Let the thread run on this processor only, for two ticks."""
        self._ticks = 0
        if processor != self._processor and processor in self._allowed:
            self._set(processor)

    def come_here(self) -> None:
        """Let the thread run on the processor of the calling thread, which wakes it and is about
        to wait itself."""
        if _processor_now is not None and len(self._allowed) > 1:
            self.stay(_processor_now())

    def ticked(self) -> None:
        """A tick of the guest that runs on this thread."""
        if self._processor is not None:
            self._ticks += 1
            if self._ticks >= _TICKS:
                self.free()

    def free(self) -> None:
        """Let the thread run on every processor that it may use."""
        if self._processor is not None:
            self._set(None)

    def _set(self, processor: int | None) -> None:
        chosen = self._allowed if processor is None else (processor,)
        try:
            os.sched_setaffinity(self._native, chosen)
        except OSError:  # the host has fewer processors now, or forbids it
            return
        self._processor = processor


class CallerPlace:
    """Where the threads of the host that call one session wait for its answers.

    If another processor is idle, Linux wakes a caller there, which takes longer than most requests.
    So a caller that was moved is pinned to the guest's processor the next times, from the moment at
    which it is woken until it runs (see `Gate`). Then it is tried again without that: on a busy
    machine Linux does not move it, and pinning costs 5 us. Several threads that call guests at the
    same time are never pinned: they need all processors.
    """

    __slots__ = ("_before", "_left")

    def __init__(self) -> None:
        self._before = -1
        """The processor on which the caller began to wait; -1 if nobody can tell."""
        self._left = 0
        """How many of the next requests pin their caller."""

    def about_to_wait(self) -> int | None:
        """The calling thread is about to wait. Its native ID if it is to be pinned, or None."""
        global _last_caller, _calls_in_a_row
        if _processor_now is None or not _is_uninterrupted:
            return None
        if _last_caller == get_ident():
            _calls_in_a_row += 1
        else:
            _last_caller, _calls_in_a_row = get_ident(), 0
        self._before = _processor_now()
        if not self._left or _calls_in_a_row < _ALONE:
            return None
        self._left -= 1
        return _thread.get_native_id()

    def has_waited(self) -> None:
        """The thread runs again."""
        if _processor_now is None or _last_caller != get_ident():
            return
        if _processor_now() != self._before:
            self._left = _PINNED_CALLERS


def pin_here(thread: int) -> set[int] | None:
    """Let a thread, which is about to be woken, run on the processor of the calling thread only.
    Returns what it was allowed to use; None if nothing was changed."""
    if _processor_now is None:
        return None
    try:
        allowed = os.sched_getaffinity(thread)
        processor = _processor_now()
        if len(allowed) < 2 or processor not in allowed:
            return None
        os.sched_setaffinity(thread, (processor,))
    except OSError:  # the host forbids it, or the thread has ended
        return None
    return allowed


def unpin_this_thread(allowed: set[int]) -> None:
    """Undo `pin_here`, on the thread that it has pinned."""
    with suppress(OSError):  # the host has fewer processors now
        os.sched_setaffinity(0, allowed)


def processors() -> frozenset[int]:
    """The processors that this thread may use; empty if the system cannot tell."""
    return frozenset(os.sched_getaffinity(0)) if sys.platform == "linux" else frozenset()


def place_of_this_thread() -> Place | None:
    """The place of the calling thread; None if it is not a guest's."""
    return _places.get(get_ident())


def free_this_thread() -> None:
    """The calling thread is about to create a thread or a process, which must be able to run on
    every processor."""
    place = _places.get(get_ident())
    if place is not None:
        place.free()
