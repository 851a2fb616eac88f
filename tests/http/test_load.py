"""A small version of `python -m bench.http_load`."""

from __future__ import annotations

from bench.http_load import measure


def test_many_clients_leave_nothing_behind() -> None:
    report = measure(clients=12, sandboxes=60, seconds=3)
    assert report.errors == []
    assert report.leaks == []
    assert {name: len(times) for name, times in report.times.items()} == {
        "create": 60,
        "run true": 60,
        "write a file": 60,
        "run a pipeline": 60,
        "read a file": 60,
        "kill": 60,
        "print 1 MB": 12,
        "sleep 0.2 s": 12,
        "time out at 0.2 s": 12,
        "talk to a command": 12,
        "fail": 12,
    }
