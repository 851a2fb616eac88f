"""The suites in automake's manner, one declaration each.

Owns what is particular about them, and nothing that runs. What the fields mean is in
`automake_suite.py`.
"""

from __future__ import annotations

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

_COREUTILS_SETUP = """
    . ./tests/lang-default
    . ./tests/envvar-check
    export CU_TEST_NAME=coreutils,${test//\\//-}
"""


def _coreutils(supplies: Supplies) -> AutomakeTests:
    (program,) = supplies.recipe("coreutils").programs
    # Before it is installed, install is called ginstall.
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


def coreutils_suite(supplies: Supplies) -> AutomakeSuite:
    """GNU coreutils: the tests that need no root."""
    return AutomakeSuite(supplies, _coreutils(supplies))


def diffutils_suite(supplies: Supplies) -> AutomakeSuite:
    """GNU diffutils."""
    return AutomakeSuite(supplies, _DIFFUTILS)


def grep_suite(supplies: Supplies) -> AutomakeSuite:
    """GNU grep."""
    return AutomakeSuite(supplies, _GREP)


def patch_suite(supplies: Supplies) -> AutomakeSuite:
    """GNU patch."""
    return AutomakeSuite(supplies, _PATCH)


def sed_suite(supplies: Supplies) -> AutomakeSuite:
    """GNU sed."""
    return AutomakeSuite(supplies, _SED)
