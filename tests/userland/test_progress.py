"""What a build shows: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from userland.builder.progress import LiveProgress, PlainProgress, progress_on, seconds_text


def test_display_fits_the_console() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True)
    pipe = Console(file=io.StringIO(), force_terminal=False)
    assert isinstance(progress_on(terminal), LiveProgress)
    assert isinstance(progress_on(pipe), PlainProgress)


def test_plain_lines_tell_each_step_and_what_the_one_before_took() -> None:
    output = io.StringIO()
    with PlainProgress(Console(file=output, width=40)) as progress:
        progress.add("tool", "1.0")
        progress.step("tool", "configure")
        progress.step("tool", "make")
        progress.end("tool", "failed", "exit status 2, and a reason too long for the width")
    lines = output.getvalue().splitlines()
    assert lines[0] == "tool 1.0: configure"
    assert lines[1] == "tool 1.0: make  (configure: 0.0 s)"
    assert lines[2].startswith("tool 1.0: failed, exit status 2, and a reason too long for")
    assert len(lines) == 3


def test_live_table_ends_with_the_state_of_every_recipe() -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=60, color_system=None)
    with LiveProgress(console) as progress:
        progress.add("musl", "1.2.5")
        progress.add("bash", "5.3")
        progress.end("musl", "cached", "")
        progress.step("bash", "configure")
        progress.end("bash", "built", "")
    last = [line for line in output.getvalue().splitlines() if "1.2.5" in line or "5.3" in line][
        -2:
    ]
    assert [line.split()[1:4] for line in last] == [
        ["musl", "1.2.5", "cached"],
        ["bash", "5.3", "built"],
    ]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (60, "1 min 00 s"), (185.6, "3 min 05 s")],
)
def test_times_are_short(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
