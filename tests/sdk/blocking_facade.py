"""`AsyncSandbox` driven like `Sandbox`, so that the SDK's tests run on it too.

Owns one event loop, in a thread. Every call of a facade is a task there, and returns the task's
result, which is wrapped in a facade if it is asynchronous itself.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from typing import Any

from wasmsand import AsyncSandbox

_CALLBACKS = ("on_stdout", "on_stderr", "on_result", "on_input", "on_progress", "on_data")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="facade-loop", daemon=True).start()
    return loop


def _in_loop(function: Callable[[], Any]) -> Any:
    """Call `function` in the event loop; returns its result."""

    async def run() -> Any:
        result = function()
        return await result if inspect.isawaitable(result) else result

    return asyncio.run_coroutine_threadsafe(run(), _loop()).result()


def _callback(function: Any) -> Any:
    """A callback that may block, for example by using the sandbox: not on the loop's thread."""
    if not callable(function):
        return function

    async def deliver(value: object) -> object:
        return await asyncio.to_thread(function, value)

    return deliver


class Facade:
    """An asynchronous object with the methods of its blocking twin."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not inspect.ismethod(value) or name in ("all", "get", "set", "unset"):
            return _outside(value)

        def method(*args: Any, **kwargs: Any) -> Any:
            for key in _CALLBACKS:
                if key in kwargs:
                    kwargs[key] = _callback(kwargs[key])
            return _outside(_in_loop(lambda: value(*args, **kwargs)))

        return method

    def __iter__(self) -> Iterator[Any]:
        return _iterate(aiter(self._inner))

    def __enter__(self) -> Facade:
        _in_loop(self._inner.__aenter__)
        return self

    def __exit__(self, *error: object) -> None:
        _in_loop(lambda: self._inner.__aexit__(*error))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facade) and self._inner is other._inner

    def __hash__(self) -> int:
        return hash(self._inner)

    def __repr__(self) -> str:
        return repr(self._inner).replace("<Async", "<", 1)


def _outside(value: Any) -> Any:
    if type(value).__name__.startswith("Async"):
        return Facade(value)
    if isinstance(value, list):
        return [_outside(item) for item in value]
    if isinstance(value, AsyncIterator):
        return _eager(value)
    return value


def _iterate(items: AsyncIterator[Any]) -> Iterator[Any]:
    end = object()
    while (item := _in_loop(lambda: anext(items, end))) is not end:
        yield item


def _eager(items: AsyncIterator[Any]) -> Iterator[Any]:
    """Blocking streams report a missing file when they are made, not when they are read."""
    iterator = _iterate(items)
    first = list(next_items(iterator))
    return (item for part in (first, iterator) for item in part)


def next_items(iterator: Iterator[Any]) -> Iterator[Any]:
    """The next item, if there is one."""
    for item in iterator:
        yield item
        return


def make(**options: Any) -> Any:
    """An `AsyncSandbox` with the API of `Sandbox`."""
    return Facade(_in_loop(lambda: AsyncSandbox.create(**options)))


def from_snapshot(snapshot: Any) -> Any:
    """`AsyncSandbox.from_snapshot`, with the API of `Sandbox`."""
    return Facade(_in_loop(lambda: AsyncSandbox.from_snapshot(snapshot)))
