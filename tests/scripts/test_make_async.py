"""The asynchronous API is up to date with the blocking one."""

from __future__ import annotations

from scripts import make_async


def test_the_generated_module_is_up_to_date() -> None:
    made = make_async.formatted(make_async.generate())
    assert made == make_async.TARGET.read_text(encoding="utf-8"), (
        "outdated: run python scripts/make_async.py"
    )
