"""Which of curl's tests are run, and what the suite's output means."""

from __future__ import annotations

import pytest

from conformance.curl_suite import is_chosen, judge
from conformance.suite import Verdict

_OUTPUT = """\
PASS: 1 - HTTP GET
test 0002 SKIPPED: curl lacks IDN support

 3: protocol FAILED!
FAIL: 3 - HTTP PUT - protocol
PASS: 5 - HTTP POST
TESTDONE: 3 tests were considered during 2 seconds.
TESTDONE: 2 tests out of 3 reported OK: 66%

TESTFAIL: These test cases failed: 3
"""


def _test(*keywords: str, servers: tuple[str, ...] = ("http",), more: str = "") -> str:
    words = "".join(f"{word}\n" for word in keywords)
    lines = "".join(f"{server}\n" for server in servers)
    return (
        f"<keywords>\n{words}</keywords>\n<client>\n<server>\n{lines}</server>\n{more}</client>\n"
    )


@pytest.mark.parametrize(
    "test",
    [
        _test("HTTP", "HTTP GET"),
        _test("HTTPS", servers=("https test-localhost.pem", "http-proxy")),
        "<keywords>\nHTTP\n</keywords>\n",
    ],
)
def test_tests_of_the_command_over_http_are_run(test: str) -> None:
    assert is_chosen(test)


@pytest.mark.parametrize(
    "test",
    [
        _test("FTP"),
        _test("HTTP", servers=("http", "ftp")),
        _test("HTTP", servers=("http/2",)),
        _test("HTTP", more="<tool>\nlib500\n</tool>\n"),
    ],
)
def test_other_tests_are_left_out(test: str) -> None:
    assert not is_chosen(test)


def test_each_number_is_a_case() -> None:
    outcome = judge(_OUTPUT, [1, 2, 3, 4, 5], 2.0)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.cases == {
        "1": Verdict.PASS,
        "2": Verdict.SKIP,
        "3": Verdict.FAIL,
        "4": Verdict.SKIP,
        "5": Verdict.PASS,
    }
    assert "3: protocol FAILED!" in outcome.detail


def test_what_a_suite_that_broke_off_did_not_reach_has_failed() -> None:
    outcome = judge(_OUTPUT.partition("TESTDONE")[0], [1, 2], 2.0)
    assert outcome.cases == {"1": Verdict.PASS, "2": Verdict.FAIL}


def test_a_hundred_without_failures_passes() -> None:
    assert judge(_OUTPUT, [1, 2, 5], 2.0).verdict is Verdict.PASS
    assert judge(_OUTPUT, [2, 4], 2.0).verdict is Verdict.SKIP
