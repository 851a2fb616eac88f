"""Runs the blocking calls of `Sandbox` on threads, for the asynchronous API.

Owns what the generated classes of `async_sandbox` use. Rules: the event loop never blocks. Every
waiting call has its own thread, and their number is not limited: with a bounded pool, calls that
wait for each other (a reader for a writer) could deadlock. Threads are daemons, so a thread that
waits for a command does not keep the interpreter alive. Cancelling a task kills the command that
the task waits for.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import copy_context
from typing import Final, Generic, ParamSpec, TypeVar, cast
from weakref import WeakValueDictionary

from wasmsand.sdk.backend import CANCELLATION, Cancellation
from wasmsand.sdk.results import DisplayItem

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
AsyncTextSink = Callable[[str], Awaitable[None] | None]
"""A callback for output: a function or a coroutine function; it runs in the event loop."""
AsyncDataSink = Callable[[bytes], Awaitable[object] | object]
"""A callback for the output of a terminal."""
AsyncResultSink = Callable[[DisplayItem], Awaitable[None] | None]
"""A callback for what a Python program displays."""
AsyncInputSource = Callable[[str], Awaitable[str | None] | str | None]
"""A callback that answers a Python program's `input()`."""

_IDLE_SECONDS: Final = 10.0
_ENDING_SECONDS: Final = 10.0
"""How long a cancelled task waits for its command to end."""
_END: Final = object()


_twins: Final[WeakValueDictionary[int, object]] = WeakValueDictionary()
"""The asynchronous twins of blocking objects, by the object's `id`. A twin keeps its object alive,
so an `id` is valid as long as its entry exists."""


def remember_twin(blocking: object, twin: object) -> None:
    """From now on, `twin` is the twin of `blocking`."""
    _twins[id(blocking)] = twin


def known_twin(blocking: object) -> object | None:
    """The twin of `blocking`; None if nobody has one."""
    return _twins.get(id(blocking))


class _Workers:
    """A pool of threads without a limit; idle threads are reused."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[queue.SimpleQueue[Callable[[], None]]] = []  # guarded by the lock

    def start(self, work: Callable[[], None]) -> None:
        """Call `work` on a thread."""
        with self._lock:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = queue.SimpleQueue()
            name = "wasmsand-async"
            threading.Thread(target=self._serve, args=(inbox,), name=name, daemon=True).start()
        inbox.put(work)

    def _serve(self, inbox: queue.SimpleQueue[Callable[[], None]]) -> None:
        while True:
            try:
                work = inbox.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if inbox in self._idle:
                        self._idle.remove(inbox)
                        return
                continue  # `start` has just chosen this thread
            work()
            del work  # an idle thread must not keep objects alive
            with self._lock:
                self._idle.append(inbox)


_workers = _Workers()


def _forget_workers() -> None:
    global _workers
    _workers = _Workers()


if hasattr(os, "register_at_fork"):  # the threads do not exist in a forked process
    os.register_at_fork(after_in_child=_forget_workers)


def _start(function: Callable[[], T], cancellation: Cancellation | None) -> asyncio.Future[T]:
    """Call `function` on a thread. Returns a future of the running event loop."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = copy_context()
    context.run(CANCELLATION.set, cancellation)

    def work() -> None:
        try:
            result = context.run(function)
        except BaseException as error:
            _tell(loop, _fail, future, error)
        else:
            _tell(loop, _succeed, future, result)

    _workers.start(work)
    return future


def _tell(
    loop: asyncio.AbstractEventLoop,
    settle: Callable[[asyncio.Future[T], T], None]
    | Callable[[asyncio.Future[T], BaseException], None],
    future: asyncio.Future[T],
    value: object,
) -> None:
    try:
        loop.call_soon_threadsafe(cast("Callable[..., None]", settle), future, value)
    except RuntimeError:
        pass  # the loop is closed


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # mark it as retrieved: a cancelled task does not ask for it


async def call(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function on a thread. If the task is cancelled, the command that the function
    waits for is killed, and the task ends when the command has ended."""
    cancellation = Cancellation()
    future = _start(lambda: function(*args, **kwargs), cancellation)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if not future.done():
            _workers.start(cancellation.cancel)
            if cancellation.has_effect:
                await asyncio.wait([future], timeout=_ENDING_SECONDS)
        raise


async def obtain(
    give_back: Callable[[T], object], function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Like `call`, for results that must be freed: if the task is cancelled but the function
    still returns a result, `give_back` gets the result."""
    future = _start(lambda: function(*args, **kwargs), None)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        future.add_done_callback(
            lambda done: (
                None
                if done.cancelled() or done.exception()
                else _workers.start(lambda: cast("None", give_back(done.result())))
            )
        )
        raise


class Turns:
    """Runs one call at a time. A call continues after its task was cancelled, and the next call
    waits for it, so that two calls never compete for output."""

    def __init__(self) -> None:
        self._last: asyncio.Future[object] | None = None

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Like the function `call`, but cancelling the task does not cancel the call."""
        while self._last is not None and not self._last.done():
            await asyncio.wait([self._last])
        future = _start(lambda: function(*args, **kwargs), None)
        self._last = cast("asyncio.Future[object]", future)
        return await asyncio.shield(future)


class Stream(Generic[T], AsyncIterator[T]):
    """A blocking iterator as an asynchronous one. If a task is cancelled while it waits for an
    item, the next caller gets the item."""

    def __init__(self, make: Callable[[], Iterator[T]]) -> None:
        """`make` is called on a thread, when the first item is requested."""
        self._make = make
        self._iterator: Iterator[T] | None = None
        self._next: asyncio.Future[object] | None = None

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        if self._next is None:
            self._next = _start(self._step, None)
        future = self._next
        try:
            item = await asyncio.shield(future)
        finally:
            if future.done():
                self._next = None
        if item is _END:
            raise StopAsyncIteration
        return cast("T", item)

    def _step(self) -> object:
        if self._iterator is None:
            self._iterator = self._make()
        return next(self._iterator, _END)


def in_loop(function: Callable[[T], Awaitable[R] | R] | None) -> Callable[[T], R] | None:
    """A callback for the blocking API that runs `function` in the event loop. The calling thread
    waits for its result, so an exception of `function` ends the command."""
    if function is None or not callable(function):
        return function  # the blocking API raises the error
    loop = asyncio.get_running_loop()

    async def deliver(value: T) -> R:
        outcome = function(value)
        return await outcome if inspect.isawaitable(outcome) else outcome

    return lambda value: asyncio.run_coroutine_threadsafe(deliver(value), loop).result()
