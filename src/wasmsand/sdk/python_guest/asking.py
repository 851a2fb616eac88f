"""`input()` in a session: the host answers, or standard input if the host does not.

Rules: only the main thread may ask, and only while a cell runs, because the answer arrives where
requests do; an answer to an earlier question, which was interrupted, is skipped.
"""

from __future__ import annotations

import itertools
import json
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from wasmsand.sdk.python_driver import driver

NO_ANSWER = (
    "input() has no answer here; answer it with on_input= (over HTTP and JSON-RPC: inputs), "
    "or give the session text as stdin"
)
numbers = itertools.count(1)


def ask(prompt: object, requests: BinaryIO, asks: bool, running: bool) -> str:
    """Ask the host, and return the line."""
    driver.flush()
    if not asks:
        try:
            return str(driver.input(prompt))  # reads standard input
        except EOFError:
            raise EOFError(NO_ANSWER) from None
    if get_ident() != driver.main_thread or not running:
        raise RuntimeError("input() works only in the main thread of a session")
    number = next(numbers)
    driver.send(
        f'"kind": "input", "number": {number}, "segments": ["prompt"]',
        [driver.encoded(driver.cut(str(prompt)))],
    )
    for line in requests:
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if answer.get("number") == number:
            if answer["text"] is None:
                break
            return str(answer["text"])
    raise EOFError("on_input returned None")
