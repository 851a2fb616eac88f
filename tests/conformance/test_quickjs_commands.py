"""The scripts that QuickJS's Makefile runs, as tests of a suite."""

from __future__ import annotations

import pytest

from conformance.quickjs_suite import listed_tests

pytestmark = pytest.mark.no_userland


def test_each_script_has_the_arguments_of_its_command() -> None:
    makefile = (
        "test: qjs\n"
        "\t./qjs tests/test_closure.js\n"
        "\t./qjs --std tests/test_builtin.js\n"
        "ifdef CONFIG_SHARED_LIBS\n"
        "\t./qjs tests/test_bjson.js\n"
        "endif\n"
    )
    assert listed_tests(makefile) == {
        "tests/test_closure.js": ["tests/test_closure.js"],
        "tests/test_builtin.js": ["--std", "tests/test_builtin.js"],
    }


def test_a_makefile_without_the_rule_is_an_error() -> None:
    with pytest.raises(ValueError, match="test: qjs"):
        listed_tests("all:\n\ttrue\n")
