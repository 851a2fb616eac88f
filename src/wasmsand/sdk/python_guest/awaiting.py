"""`await` outside of functions: the event loop of the session.

Rules: the loop lives as long as the session, and runs while a cell awaits; tasks that a cell leaves
behind continue with the next cell that awaits.
"""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

    from wasmsand.sdk.python_driver import driver

IS_COROUTINE = 0x80
loop = asyncio.new_event_loop()


def run(codes: list[CodeType]) -> object:
    """Run a cell of which a part awaits; return the value of the last part."""
    global loop
    if loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)

    async def outcome() -> tuple[object, BaseException | None]:
        # The exception is raised outside of the loop, so that its traceback has only the cell.
        value: object = None
        try:
            for code in codes:
                value = eval(code, driver.main)
                if code.co_flags & IS_COROUTINE:
                    value = await value  # type: ignore[misc]
            return value, None
        except BaseException as error:
            return None, error

    task = loop.create_task(outcome())
    try:
        value, error = loop.run_until_complete(task)
    except BaseException:  # an interrupt, or SystemExit in another task
        task.cancel()
        loop.run_until_complete(asyncio.wait([task]))
        raise
    if error is not None:
        raise error
    return value
