"""`input()` in a session: the host answers.

Rules: only the main thread may ask, and only while a cell runs, because the answer arrives where
requests do; an answer to an earlier question, which was interrupted, is skipped.
"""

from __future__ import annotations

import itertools
import json
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    from wasmsand.sdk.python_driver import driver

numbers = itertools.count(1)


def ask(prompt: object, requests: BinaryIO, request: dict[str, Any], running: bool) -> str:
    """Ask the host, and return the line."""
    driver.flush()
    if not request.get("asks"):
        raise EOFError("input() has no answer here: pass on_input= to run()")
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
