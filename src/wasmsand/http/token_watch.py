"""Notices changes of the file of tokens.

Owns `watch_tokens`. Rules: a file that cannot be used changes nothing; the log says why. Tokens of
the environment stay.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from wasmsand.http.tokens import Token, TokensRejected, read_token_file, read_token_variable

_STEP_SECONDS: Final = 1.0

log = logging.getLogger("wasmsand.http")


async def watch_tokens(path: str, use: Callable[[Sequence[Token]], Awaitable[None]]) -> None:
    """Call `use` with all tokens whenever the file has changed, without end."""
    seen: object = "not read by us"  # it may have changed since the server read it
    while True:
        await asyncio.sleep(_STEP_SECONDS)
        now = _state(path)
        if now == seen:
            continue
        seen = now
        try:
            await use([*read_token_variable(os.environ), *read_token_file(Path(path))])
            log.info("the tokens were read again")
        except TokensRejected as error:
            log.error("the old tokens stay: %s", error)


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
