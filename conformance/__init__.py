"""The programs' own test suites, in the sandbox and natively, side by side.

`python -m conformance` runs them and writes the tables of `docs/conformance.md`.

    suite.py            what a suite is; outcomes and how two are compared
    area.py             where a test runs: what both sides have in common
    native.py           ... natively
    sandboxed.py        ... in a machine
    supplies.py         tarballs, compilers, things made once: kept in the build cache
    builds.py           what a suite needs of a built tree, on either side
    program_suite.py    what all suites of programs do alike
    exit_status.py      the verdict by an exit status
    automake_suite.py   suites of shell tests in automake's manner
    automake_suites.py  those that need no more: coreutils, diffutils, grep, gzip, patch, sed, xz
    bash_suite.py       GNU bash's suite
    bc_suite.py         GNU bc's suite
    file_suite.py       file's suite
    findutils_suite.py  GNU findutils' suite, with tests for DejaGnu
    gawk_suite.py       GNU awk's suite
    git_suite.py        git's suite
    git_scripts.py      ... which of its scripts
    jq_suite.py         jq's suite
    quickjs_suite.py    QuickJS's suite
    tar_suite.py        GNU tar's suite
    runner.py           all tests of a suite on both sides, in parallel; kept outcomes
    explanations.py     why a test differs: reads explanations.toml
    report.py           the document
    cli.py              the command

Rules: both sides run the same test files under the same rules; no test is special-cased
by name; a difference without an explanation is shown as unexplained.
"""
