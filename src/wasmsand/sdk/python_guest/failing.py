"""The description of an exception that ended a cell.

Rules: the traceback is Python's own, without the frames of the driver.
"""

from __future__ import annotations

import linecache
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wasmsand.sdk.python_driver import driver


def described(error: BaseException) -> dict[str, bytes]:
    """The segments of an answer."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    try:
        message = str(error)
    except Exception:
        message = "<exception str() failed>"
    if isinstance(error, SyntaxError) and error.text is None and error.lineno:
        # Found after the code was parsed: `return` outside a function.
        error.text = linecache.getline(error.filename or "", error.lineno) or None
    whole = traceback.TracebackException(kind, error, error.__traceback__)
    todo = [whole]
    while todo:
        item = todo.pop()
        item.stack[:] = [frame for frame in item.stack if frame.filename != driver.file]
        todo += [other for other in (item.__cause__, item.__context__) if other is not None]
        todo += item.exceptions or []
    texts = {"type": name, "message": message, "traceback": "".join(whole.format())}
    return {key: driver.encoded(driver.cut(text)) for key, text in texts.items()}
