"""git on a terminal: the pager, colours, questions."""

from __future__ import annotations

from userland.recipes.screen import Screen
from wasmsand.machine import Machine

_HISTORY = """
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.org
export GIT_COMMITTER_NAME=Bob GIT_COMMITTER_EMAIL=bob@example.org
git init -q -b main r && cd r && for i in $(seq 60); do git commit -q --allow-empty -m "no $i"; done
"""


def test_a_long_log_is_paged(machine: Machine) -> None:
    with Screen(machine, f"{_HISTORY} git log --format=%s; echo status $?; read") as screen:
        screen.wait_until(lambda lines: lines[0] == "no 60" and lines[-1] == ":")
        screen.type("G")
        screen.wait_until(lambda lines: lines[-2] == "no 1" and lines[-1] == "(END)")
        screen.type("q")
        screen.wait_until(lambda lines: "status 0" in lines)


def test_a_short_log_is_shown_at_once(machine: Machine) -> None:
    with Screen(machine, f"{_HISTORY} git log --format=%s -3; read") as screen:
        screen.wait_until(lambda lines: lines[:3] == ["no 60", "no 59", "no 58"])


def test_hunks_are_added_by_answers(machine: Machine) -> None:
    script = f"""{_HISTORY} seq 30 > f; git add f; git commit -q -m f
    sed -i -e s/^2$/two/ -e s/^29$/almost/ f; git add -p; git diff --cached --numstat; read"""
    with Screen(machine, script) as screen:
        screen.wait_until(lambda lines: any("(1/2) Stage this hunk" in line for line in lines))
        screen.type("y\n")
        screen.wait_until(lambda lines: any("(2/2) Stage this hunk" in line for line in lines))
        screen.type("n\n")
        screen.wait_until(lambda lines: "1       1       f" in lines)
