"""`until_all_end_or_one_fails`: both directions of a connection."""

from __future__ import annotations

import asyncio
from typing import Any

from wasmsand.http.relaying import until_all_end_or_one_fails


async def _fail() -> None:
    raise ConnectionResetError


async def _wait(ended: list[str]) -> None:
    try:
        await asyncio.sleep(1000)
    finally:
        ended.append("cancelled")


def test_two_failures_at_once_are_both_seen() -> None:
    reported: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: reported.append(what))
        await until_all_end_or_one_fails(_fail(), _fail())

    asyncio.run(main())
    assert reported == []


def test_a_failure_cancels_the_other_direction() -> None:
    ended: list[str] = []
    asyncio.run(until_all_end_or_one_fails(_fail(), _wait(ended)))
    assert ended == ["cancelled"]
