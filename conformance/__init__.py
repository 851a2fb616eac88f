"""The programs' own test suites, in the sandbox and natively, side by side.

`python -m conformance` runs them and writes the tables of `docs/conformance.md`.

    suite.py            what a suite is; outcomes and how two are compared
    area.py             where a test runs: the interface that both sides implement
    native.py           ... natively, as an ordinary user of the host
    sandboxed.py        ... in a machine
    supplies.py         tarballs, compilers, built files: all kept in the build cache
    builds.py           reference programs and parts of a built tree, for either side
    program_suite.py    the base class of all suites
    exit_status.py      runs a test's command and judges it by its exit status
    automake_suite.py   suites of shell tests that follow automake's conventions
    automake_suites.py  those declared only: coreutils, diffutils, grep, gzip, patch, sed, xz
    bash_suite.py       GNU bash's suite
    bc_suite.py         GNU bc's suite
    file_suite.py       file's suite
    findutils_suite.py  GNU findutils' suite, with tests for DejaGnu
    gawk_suite.py       GNU awk's suite
    git_suite.py        git's suite
    git_scripts.py      ... the list of its scripts that run
    jq_suite.py         jq's suite
    quickjs_suite.py    QuickJS's suite
    tar_suite.py        GNU tar's suite
    runner.py           runs all tests of a suite on both sides, in parallel; keeps outcomes
    explanations.py     why a test differs: reads explanations.toml
    report.py           writes the document
    cli.py              the command line

Rules: both sides run the same test files under the same rules; no test is special-cased
by name; a difference without an explanation is shown as unexplained.
"""
