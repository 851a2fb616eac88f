"""The benchmark's command: `wasmsand bench`, or `python -m bench.run`."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

from rich.console import Console

from bench.cases import Case, all_cases
from bench.memory import measure_in_fresh_process
from bench.packages import PackageRun, package_sides
from bench.programs import ProgramRun
from bench.reference import reference_folders
from bench.report import Report, Row
from bench.sides import NativeSide, SandboxSide, ScriptFailed, Side
from conformance.supplies import RECIPES, ROOT
from userland.builder.errors import BuildError
from userland.builder.recipe import load_recipes
from wasmsand.machine.image import image_programs

_SHELL = ("bash", "coreutils")
_VERSIONS = "echo bash $BASH_VERSION, $(sort --version | head -n 1)"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="wasmsand bench",
        description="Measure programs in the sandbox and natively. Both run the same scripts, "
        "alternating; the table shows medians. The native programs are built from the same "
        "sources with the same compiler, which takes some time at the first run.",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer rounds, only shell operations, compared with the programs of this machine",
    )
    parser.add_argument(
        "--only",
        metavar="TEXT",
        action="append",
        help="measure only cases whose name contains TEXT; may be given several times",
    )
    parser.add_argument(
        "--installed",
        action="store_true",
        help="compare with the programs of this machine, and build no native ones",
    )
    parser.add_argument(
        "--no-memory", action="store_true", help="do not measure the memory of idle sandboxes"
    )
    parser.add_argument(
        "--cpu",
        action="store_true",
        help="measure CPU time instead of wall-clock time: for a busy machine",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    options = parser.parse_args(argv)

    progress = Console(stderr=True)
    cases = all_cases(quick=options.quick)
    if options.quick and not options.only:
        cases = [case for case in cases if not isinstance(case, ProgramRun | PackageRun)]
    if options.only:
        cases = [case for case in cases if any(text in case.name for text in options.only)]
        if not cases:
            parser.error(f"no case has {' or '.join(map(repr, options.only))} in its name")
    counts = () if options.no_memory else (1, 10) if options.quick else (1, 10, 100)
    build = not options.installed and (
        not options.quick or any(isinstance(case, ProgramRun) for case in cases)
    )
    try:
        report = _measure(cases, counts, progress, reference=build, cpu=options.cpu)
    except (ScriptFailed, BuildError) as failure:
        print(f"wasmsand bench: {failure}", file=sys.stderr)
        return 1
    if options.json:
        print(report.as_json())
    elif options.markdown:
        print(report.as_markdown())
    else:
        report.print(Console())
    return 0


def _measure(
    cases: Sequence[Case],
    counts: Sequence[int],
    progress: Console,
    *,
    reference: bool,
    cpu: bool,
) -> Report:
    cases = _in_image(cases, progress)
    folders = []
    if reference:
        needed = {case.needs for case in cases if isinstance(case, ProgramRun)}
        found = reference_folders({*needed, *_SHELL}, progress.print)
        folders = list(found.values())
    with (
        SandboxSide(cpu=cpu) as sandbox,
        NativeSide(folders, cpu=cpu) as native,
        progress.status("") as status,
    ):
        rows = []
        for case in cases:
            if not isinstance(case, PackageRun):
                status.update(f"measuring: {case.name}")
                rows.append(_row(case, sandbox, native))
        if kernels := [case for case in cases if isinstance(case, PackageRun)]:
            with package_sides(progress.print) as (installed, wheels):
                for kernel in kernels:
                    status.update(f"measuring: {kernel.name}")
                    rows.append(_row(kernel, installed, wheels))
        versions = {side.name: side.output(_VERSIONS).strip() for side in (sandbox, native)}
        memory = []
        for count in counts:
            status.update(f"measuring: memory of {count} idle sandboxes")
            memory.append(measure_in_fresh_process(count))
    return Report(versions, rows, memory)


def _in_image(cases: Sequence[Case], progress: Console) -> list[Case]:
    """The cases whose programs are in the image; prints a line about each other one."""
    recipes = load_recipes(RECIPES, ROOT)
    built = {program.name for program in image_programs()}
    present = {
        name for name, recipe in recipes.items() if built & {p.name for p in recipe.programs}
    }
    chosen = []
    for case in cases:
        if isinstance(case, ProgramRun | PackageRun) and case.needs not in present:
            progress.print(f"skipped: {case.name} ({case.needs} is not in the image)")
        else:
            chosen.append(case)
    return chosen


def _row(case: Case, sandbox: Side, native: Side) -> Row:
    times: dict[str, list[float]] = {sandbox.name: [], native.name: []}
    for side in (sandbox, native):
        case.prepare(side)
    if isinstance(case, ProgramRun | PackageRun):
        case.check((sandbox, native))
    for _ in range(case.rounds):
        for side in (sandbox, native):
            seconds = case.measure(side)
            if seconds is not None:
                times[side.name].append(seconds)
    wasm_times, native_times = times[sandbox.name], times[native.name]
    return Row(
        case.name,
        statistics.median(wasm_times),
        statistics.median(native_times) if native_times else None,
    )


if __name__ == "__main__":
    sys.exit(main())
