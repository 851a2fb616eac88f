"""jq's files of tests are taken apart as jq reads them."""

from __future__ import annotations

import pytest

from conformance.jq_suite import cases

pytestmark = pytest.mark.no_userland


def texts(file: str) -> list[tuple[int, str]]:
    return [(case.line, case.text) for case in cases(file)]


def test_a_program_its_input_and_its_results_are_one_test() -> None:
    assert texts("# comment\n\n.a\n{}\nnull\n\n.[]\n[1, 2]\n1\n2\n") == [
        (3, ".a\n{}\nnull\n"),
        (7, ".[]\n[1, 2]\n1\n2\n"),
    ]


def test_a_comment_ends_the_results() -> None:
    assert texts(".\n1\n1\n# next\n.\n2\n2\n") == [(1, ".\n1\n1\n"), (5, ".\n2\n2\n")]


def test_a_program_may_have_no_result() -> None:
    assert texts("empty\nnull\n\n.\n1\n1\n") == [(1, "empty\nnull\n"), (4, ".\n1\n1\n")]


def test_a_program_that_must_fail_has_a_message_and_no_blank_line_after_it() -> None:
    file = "%%FAIL\n{\njq: error\n%%FAIL IGNORE MSG\n}\nwhatever\n\n.\n1\n1\n"
    assert texts(file) == [
        (1, "%%FAIL\n{\njq: error\n"),
        (4, "%%FAIL IGNORE MSG\n}\nwhatever\n"),
        (8, ".\n1\n1\n"),
    ]
