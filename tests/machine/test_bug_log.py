"""A bug that a guest can cause repeatedly does not fill the host's log."""

from __future__ import annotations

import logging

import pytest

from wasmsand.machine import bug_log

pytestmark = pytest.mark.no_userland


def test_bugs_are_logged_at_a_bounded_rate(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bug_log, "_began", float("-inf"))
    monkeypatch.setattr(bug_log, "_logged", 0)
    monkeypatch.setattr(bug_log, "_left_out", 0)
    with caplog.at_level(logging.DEBUG):
        for number in range(1_000):
            try:
                raise ZeroDivisionError
            except ZeroDivisionError:
                bug_log.log_bug("bug %d", number)
    assert [record.getMessage() for record in caplog.records] == [
        f"bug {number}" for number in range(bug_log.PER_MINUTE)
    ]
