"""python-dateutil, which pandas needs."""

from __future__ import annotations

from collections.abc import Callable


def test_dates_are_understood(full_python: Callable[[str], str]) -> None:
    program = "from dateutil.parser import parse; print(parse('1 May 2024 10:30').isoformat())"
    assert full_python(program) == "2024-05-01T10:30:00\n"
