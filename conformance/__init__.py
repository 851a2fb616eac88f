"""The programs' own test suites, in the sandbox and natively, side by side.

`python -m conformance` runs them and writes the tables of `docs/conformance.md`.

    suite.py           what a suite is; outcomes and how two are compared
    supplies.py        tarballs, native builds, the cross compiler: kept in the build cache
    native.py          running a command natively as an ordinary user
    sandboxed.py       running a command in a machine
    cross.py           programs that only a suite needs, built for the sandbox
    bash_suite.py      GNU bash's suite
    coreutils_suite.py GNU coreutils' suite
    runner.py          all tests of a suite on both sides, in parallel; kept outcomes
    explanations.py    why a test differs: reads explanations.toml
    report.py          the tables
    cli.py             the command

Rules: both sides run the same test files under the same rules; no test is special-cased
by name; a difference without an explanation is shown as unexplained.
"""
