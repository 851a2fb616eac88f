"""The command `python -m conformance`.

Rules: only this module reads arguments; the exit status is 1 if a difference has no explanation,
and 2 if the arguments are wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from conformance import automake_suites, package_suites
from conformance.bash_suite import BashSuite
from conformance.bc_suite import BcSuite
from conformance.curl_suite import CurlSuite
from conformance.explanations import load_explanations, needless, unexplained
from conformance.file_suite import FileSuite
from conformance.findutils_suite import FindutilsSuite
from conformance.gawk_suite import GawkSuite
from conformance.git_http_suite import GitHttpSuite
from conformance.git_suite import GitSuite
from conformance.jq_suite import JqSuite
from conformance.native import let_native_programs_be_interrupted
from conformance.python_suite import PythonSuite
from conformance.quickjs_suite import QuickjsSuite
from conformance.report import update
from conformance.requests_suite import RequestsSuite
from conformance.runner import KeptOutcomes, kept_comparisons, run_suite
from conformance.suite import SIDES, Comparison, Outcome, Side, Suite, Verdict
from conformance.supplies import ROOT, Supplies
from conformance.tar_suite import TarSuite
from userland.builder.cache import default_root
from userland.builder.errors import BuildError

DOCUMENT = ROOT / "docs/conformance.md"
_SUITES: dict[str, Callable[[Supplies], Suite]] = {
    **automake_suites.SUITES,
    **package_suites.SUITES,
    "bash": BashSuite,
    "bc": BcSuite,
    "curl": CurlSuite,
    "file": FileSuite,
    "findutils": FindutilsSuite,
    "gawk": GawkSuite,
    "git": GitSuite,
    "git-http": GitHttpSuite,
    "jq": JqSuite,
    "python": PythonSuite,
    "quickjs": QuickjsSuite,
    "requests": RequestsSuite,
    "tar": TarSuite,
}

_CASES_SHOWN = 500

_DESCRIPTION = """\
Run the programs' own test suites in the sandbox and natively, side by side, and write
the tables of docs/conformance.md. Outcomes are stored in the build cache, keyed by the content
of everything that affects them, so a second run of the same code takes no time.
"""
_EPILOG = """\
examples:
  python -m conformance                          all suites; writes docs/conformance.md
  python -m conformance bash                     one suite
  python -m conformance bash run-trap 'run-s*'   some tests; shows differences, writes nothing
  python -m conformance coreutils '*/mv/*'       some tests of another suite
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m conformance",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "suite", nargs="?", choices=sorted(_SUITES), help="the suite to run (default: all)"
    )
    parser.add_argument(
        "tests", nargs="*", metavar="TEST", help="run only these tests; patterns are allowed"
    )
    parser.add_argument(
        "--fresh",
        choices=["native", "sandbox", "both"],
        help="run this side again even if its outcome is cached",
    )
    parser.add_argument(
        "--kept",
        action="store_true",
        help="run nothing: write the tables from the tests whose outcomes are cached on both sides",
    )
    parser.add_argument(
        "--earlier",
        action="store_true",
        help="with --kept: use outcomes of earlier images where the present one has none; "
        "the table of all tests names the image of each outcome",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=2,
        help="number of tests to run at once (default: %(default)s)",
    )
    parser.add_argument(
        "--patience",
        type=float,
        default=1.0,
        metavar="TIMES",
        help="factor for the tests' time limits, for a busy machine (default: %(default)s)",
    )
    parser.add_argument(
        "--document", type=Path, default=DOCUMENT, help="file to write the tables to"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(argv)
    console = Console()
    let_native_programs_be_interrupted()
    try:
        supplies = Supplies(lambda message: console.print(Text(message), soft_wrap=True))
        chosen = [options.suite] if options.suite else sorted(_SUITES)
        return max(_suite(_SUITES[name](supplies), options, console) for name in chosen)
    except BuildError as error:
        print(f"conformance: {error}\n{error.advice or ''}".rstrip(), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _suite(suite: Suite, options: argparse.Namespace, console: Console) -> int:
    suite.patience = options.patience
    suite.prepare()
    tests = [
        test
        for test in suite.tests()
        if not options.tests or any(fnmatch(test, pattern) for pattern in options.tests)
    ]
    if not tests:
        print(f"conformance: {suite.name} has no test of that name", file=sys.stderr)
        return 2
    if options.kept:
        kept = KeptOutcomes(_outcomes(), suite)
        comparisons = kept_comparisons(tests, kept, earlier=options.earlier)
        console.print(Text(f"{suite.title}: {len(comparisons)} of {len(tests)} tests are cached"))
    else:
        fresh: frozenset[Side] = frozenset(
            side for side in SIDES if options.fresh in (side, "both")
        )
        comparisons = _run(suite, tests, fresh, options.workers, console)
    explanations = load_explanations().get(suite.name, ())
    different = [comparison for comparison in comparisons if not comparison.as_native]
    if options.tests:
        _show(different, console)
    else:
        update(options.document, suite, comparisons, explanations)
    for test in needless(comparisons, explanations):
        console.print(Text(f"{test} passes now: remove it from explanations.toml"))
    open_cases = [
        f"{comparison.test}::{case}" if case else comparison.test
        for comparison in different
        for case in unexplained(comparison, explanations)
    ]
    alike = len(comparisons) - len(different)
    console.print(
        Text(f"{suite.title}: {alike} of {len(comparisons)} tests do as well as natively")
    )
    if open_cases:
        console.print(Text(f"differ without an explanation ({len(open_cases)}):"))
        for name in open_cases[:_CASES_SHOWN]:
            console.print(Text(name), soft_wrap=True)
    return 1 if open_cases else 0


def _outcomes() -> Path:
    return default_root() / "conformance"


def _run(
    suite: Suite, tests: Sequence[str], fresh: frozenset[Side], workers: int, console: Console
) -> list[Comparison]:
    kept = KeptOutcomes(_outcomes(), suite)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        bar = progress.add_task(suite.title, total=len(tests) * len(SIDES))

        def observe(test: str, side: Side, outcome: Outcome, from_before: bool) -> None:
            progress.advance(bar)
            if not from_before:
                style = "" if outcome.verdict is Verdict.PASS else "red"
                line = f"{side:8}{outcome.verdict:5}{outcome.seconds:7.1f} s  {test}"
                progress.console.print(Text(line, style=style))

        return run_suite(suite, tests, kept, workers=workers, fresh=fresh, observe=observe)


def _show(different: Sequence[Comparison], console: Console) -> None:
    for comparison in different:
        console.rule(comparison.test)
        console.print(Text(comparison.sandbox.detail), soft_wrap=True)
