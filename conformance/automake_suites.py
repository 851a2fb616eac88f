"""The suites that follow automake's conventions, one declaration each.

Owns what is particular to each suite, and no code that runs one. `automake_suite.py` explains
the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from conformance.automake_suite import AutomakeSuite, AutomakeTests
from conformance.supplies import Supplies

_GREP = AutomakeTests(
    recipe="grep",
    title="GNU grep",
    sources=("tests",),
    makefile="tests",
    extensions=("",),
    helpers=("tests/get-mb-cur-max",),
    helpers_make=("check", "SUBDIRS=lib tests", "TESTS="),
    setup="""
        . ./envvar-check
        export LC_ALL=C GREP_TEST_NAME=$test PCRE_WORKS=0
        if err=$(echo . | grep -Pq . 2>&1) && [ -z "$err" ]; then PCRE_WORKS=1; fi
    """,
    environment={"MALLOC_PERTURB_": "1"},
)

_SED = AutomakeTests(
    recipe="sed",
    title="GNU sed",
    sources=("testsuite", "init.cfg"),
    helpers=("testsuite/get-mb-cur-max", "testsuite/test-mbrtowc"),
    helpers_make=("check", "SUBDIRS=.", "TESTS=", "MANS=", "INFO_DEPS="),
    setup=". ./testsuite/envvar-check; export LC_ALL=C SED_TEST_NAME=${test//\\//-}",
)

_DIFFUTILS = AutomakeTests(
    recipe="diffutils",
    title="GNU diffutils",
    sources=("tests",),
    makefile="tests",
    extensions=("",),
    config_header="lib/config.h",
    setup=". ./envvar-check; export LC_ALL=C DIFFUTILS_TEST_NAME=$test",
    environment={
        "GREP_OPTIONS": "",
        "PREFERABLY_POSIX_SHELL": "/bin/sh",
        "REPLACE_GETCWD": "0",
    },
)

_PATCH = AutomakeTests(
    recipe="patch",
    title="GNU patch",
    sources=("tests",),
    makefile="tests",
    extensions=("",),
)

_GZIP_SCRIPTS = (
    *("gunzip", "gzexe", "zcat", "zcmp", "zdiff", "zegrep", "zfgrep", "zforce", "zgrep"),
    *("zless", "zmore", "znew"),
)
_GZIP = AutomakeTests(
    recipe="gzip",
    title="GNU gzip",
    sources=("tests",),
    makefile="tests",
    extensions=("",),
    helpers_make=_GZIP_SCRIPTS,
    config_header="lib/config.h",
    built_files=_GZIP_SCRIPTS,
    setup="export LC_ALL=C GZIP_TEST_NAME=$test",
    environment={"built_programs": " ".join(["gzip", *_GZIP_SCRIPTS]), "GREP": "grep"},
    # One test compresses 4 GB.
    timeout_seconds=240.0,
)

_XZ_PROGRAMS = tuple(
    f"tests/test_{name}"
    for name in (
        *("bcj_exact_size", "block_header", "check", "filter_flags", "filter_str", "hardware"),
        *("index", "index_hash", "lzip_decoder", "memlimit", "microlzma", "stream_flags", "vli"),
    )
)
_XZ = AutomakeTests(
    recipe="xz",
    title="XZ Utils",
    sources=("tests",),
    makefile="tests",
    extensions=("", ".sh"),
    helpers=("tests/create_compress_files", *_XZ_PROGRAMS),
    helpers_make=("check", "TESTS="),
    built_files=("src/scripts/xzdiff", "src/scripts/xzgrep"),
    # Most tests are programs: run them directly, not as shell scripts.
    setup="""case $test in
        *.sh | test_compress_*) ;;
        *) "./$test"; exit ;;
    esac""",
)

_COREUTILS_SETUP = """
    . ./tests/lang-default
    . ./tests/envvar-check
    export CU_TEST_NAME=coreutils,${test//\\//-}
"""


def _coreutils(supplies: Supplies) -> AutomakeTests:
    (program,) = supplies.recipe("coreutils").programs
    # In the build tree, install is called ginstall.
    names = sorted({*program.names, "ginstall"} - {"coreutils", "install"})
    return AutomakeTests(
        recipe="coreutils",
        title="GNU coreutils",
        sources=("tests", "init.cfg", "src/remove.c", "src/stty.c", "src/tail.c"),
        tests="all_tests",
        without="all_root_tests",
        helpers=("src/getlimits",),
        helpers_make=supplies.recipe("coreutils").build.make,
        config_header="lib/config.h",
        built_files=("src/coreutils.h",),
        links={f"src/{name}": "coreutils" for name in names},
        setup=_COREUTILS_SETUP,
        environment={"built_programs": " ".join([*names, "coreutils"])},
    )


_DECLARED = (_DIFFUTILS, _GREP, _GZIP, _PATCH, _SED, _XZ)
SUITES: Mapping[str, Callable[[Supplies], AutomakeSuite]] = {
    "coreutils": lambda supplies: AutomakeSuite(supplies, _coreutils(supplies)),
    **{tests.recipe: partial(AutomakeSuite, tests=tests) for tests in _DECLARED},
}
"""What makes each suite, by the name of its recipe."""
