"""`wasmsand warm`: compiles programs now, so that no command has to wait for it later.

Rules: without arguments it does what is missing, so it can run in an installation script or an
image build, any number of times. The progress bar is on standard error, the summary on standard
output.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wasmsand.cli.failure import CliError

if TYPE_CHECKING:
    from wasmsand.engine.protocol import Engine
    from wasmsand.machine.image_directory import ProgramFile

HELP = "compile programs now, so that no command waits for it later"
DESCRIPTION = (
    "Compile the programs that are not compiled for this machine yet, several at a time, and keep "
    "the result in the cache ($WASMSAND_CACHE, by default ~/.cache/wasmsand). Without this, each "
    "program is compiled when it is used for the first time. Programs that an installed package "
    "brings compiled are only checked."
)
EXAMPLES = """\
examples:
  wasmsand warm                  everything that is installed
  wasmsand warm bash python3     these programs only
  wasmsand warm --packages       only Python with numpy, pandas and the others
  wasmsand warm --this-cpu       compile for all features of this processor, even what is compiled
                                 for every processor of its kind already
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument(
        "programs", metavar="PROGRAM", nargs="*", help="programs by name (default: all)"
    )
    parser.add_argument("--all", action="store_true", help="all programs; the same as naming none")
    parser.add_argument(
        "--packages",
        action="store_true",
        help="the programs of wasmsand-packages: Python with numpy, pandas and the others",
    )
    parser.add_argument(
        "--this-cpu",
        action="store_true",
        help="compile for all features of this processor; only vector-heavy code gets faster",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Compile."""
    from wasmsand.cli.warming import is_ready, only_process
    from wasmsand.engine.choosing import new_engine

    programs = _chosen(arguments)
    engine = new_engine(with_shipped=not arguments.this_cpu)
    missing = [program for program in programs if not is_ready(engine, program)]
    started = time.monotonic()
    if missing:
        with only_process(wait=True):
            # Another process may have compiled them while this one waited.
            missing = [program for program in missing if not is_ready(engine, program)]
            _compile(engine, missing)
    left = [program.name for program in programs if not is_ready(engine, program)]
    if left:
        raise CliError(f"could not be prepared: {', '.join(left)}; see `wasmsand doctor`")
    seconds = f" in {time.monotonic() - started:.1f} s" if missing else ""
    print(f"{len(programs)} programs are ready; {_how(engine, missing)}{seconds}")
    return 0


def _chosen(arguments: argparse.Namespace) -> Sequence[ProgramFile]:
    """The programs that the arguments name."""
    from wasmsand.machine.image import IMAGE_DIRECTORY, image_programs
    from wasmsand.machine.image_directory import ImageMissing

    try:
        programs = image_programs()
    except ImageMissing as missing:
        raise CliError(str(missing)) from None
    named = set(arguments.programs)
    if arguments.all and (named or arguments.packages):
        raise CliError("--all is all programs: give neither names nor --packages")
    if not named and not arguments.packages:
        return programs
    further = [program for program in programs if program.path.parent != IMAGE_DIRECTORY]
    if arguments.packages and not further:
        raise CliError("wasmsand-packages is not installed: pip install wasmsand-packages")
    chosen = {program.name for program in further} if arguments.packages else set()
    for name in arguments.programs:
        called = {program.name for program in programs if name in _names(program)}
        if not called:
            raise CliError(f"no program {name!r} in the image")
        chosen |= called
    return [program for program in programs if program.name in chosen]


def _names(program: ProgramFile) -> set[str]:
    """The names by which a user may call a program."""
    return {program.name, *(path.rsplit("/", 1)[-1] for path in program.all_names)}


def _how(engine: Engine, missing: Sequence[ProgramFile]) -> str:
    if not missing:
        return "nothing was left to do"
    came = sum(engine.comes_compiled(program.sha256) for program in missing)
    parts = [f"{came} came compiled and were checked"] if came else []
    if len(missing) > came:
        parts.append(f"{len(missing) - came} were compiled now")
    return ", ".join(parts)


def _compile(engine: Engine, programs: Sequence[ProgramFile]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from wasmsand.cli.warming import make_ready

    running: list[str] = []
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=sum(program.size for program in programs))

        def show() -> None:
            progress.update(task, description=f"compiling {', '.join(list(running)) or '...'}")

        def began(program: ProgramFile) -> None:
            running.append(program.name)
            show()

        def done(program: ProgramFile) -> None:
            running.remove(program.name)
            progress.advance(task, program.size)
            show()

        make_ready(engine, programs, began=began, done=done)
