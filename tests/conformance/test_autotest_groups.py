"""The groups of an Autotest script, as tests of a suite."""

from __future__ import annotations

import pytest

from conformance.tar_suite import group_names

pytestmark = pytest.mark.no_userland

_SCRIPT = """#! /bin/sh
# List of the all the test groups.
at_help_all="1;version.at:19;tar version;;
2;pipe.at:29;decompressing from stdin;pipe;
17;testsuite.at:242;compress: gzip;compression compress-gzip gzip;
"
at_groups_all=`printf "%s\\n" "$at_help_all" | sed 's/;.*//'`
"""


def test_groups_are_named_by_number_and_source_in_order() -> None:
    assert group_names(_SCRIPT) == ["001-version", "002-pipe", "017-compress-gzip"]


def test_a_script_that_lists_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="lists no test groups"):
        group_names("#! /bin/sh\n")
