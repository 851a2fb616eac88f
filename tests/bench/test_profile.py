"""Profiles: what is kept of the counts of a training."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.profile import TRAININGS, functions_of, hot
from conformance.supplies import RECIPES

_TEXT = """\
# a comment
main
# Func Hash:
24
# Num Counters:
2
# Counter Values:
1
200000

file.c;inner
99
1
200001

seldom
7
2
1
0
"""


def test_functions_are_read_without_comments() -> None:
    main, inner, seldom = functions_of(_TEXT)
    assert (main.name, main.digest, main.counts) == ("main", "24", (1, 200_000))
    assert (inner.name, inner.counts) == ("file.c;inner", (200_001,))
    assert seldom.counts == (1, 0)


def test_only_functions_that_run_often_are_kept() -> None:
    kept = hot(list(functions_of(_TEXT)))
    assert [function.name for function in kept] == ["main", "file.c;inner"]


def test_what_is_written_can_be_read_again() -> None:
    found = list(functions_of(_TEXT))
    assert list(functions_of("\n\n".join(map(str, found)))) == found


@pytest.mark.parametrize("name", sorted(TRAININGS))
def test_a_profile_is_small_and_has_hot_functions_only(name: str) -> None:
    profile = Path(RECIPES, name, "profile/hot.proftext")
    found = list(functions_of(profile.read_text("utf-8")))
    assert profile.stat().st_size < 300_000
    assert found == hot(found)
