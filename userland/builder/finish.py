"""From a linked module to one that may go into the image.

Owns the wasm-opt flags and the inspection against the guest ABI of
`docs/architecture.md`. Rules: features are listed one by one (with "all", wasm-opt
writes an encoding that wasmtime refuses); exceptions stay in their old form until the
last pass, because Asyncify knows only that; a module with any import but the kernel's
is an error here, not a surprise at run time. This file's content is part of every
recipe's key.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from userland.builder.doubled import SUFFIX, doubled, functions_of_profile
from userland.builder.errors import BadModule
from userland.builder.recipe import Program
from userland.builder.wasm_module import summarise

_FEATURES = (
    "exception-handling",
    "reference-types",
    "bulk-memory",
    "bulk-memory-opt",
    "mutable-globals",
    "sign-ext",
    "nontrapping-float-to-int",
    "multivalue",
    "simd",
)
_STRIP = ("--strip-debug", "--strip-producers", "--strip-target-features")
_AS_TEXT = ("--emit-text", "--debuginfo")

_SYSCALL = ("linux", "syscall")
_FORK = ("linux", "fork")
_EXPORTS = {"memory", "_start", "__stack_pointer", "__signal_flag", "__signal_run"}
_ASYNCIFY_EXPORTS = {
    "asyncify_start_unwind",
    "asyncify_stop_unwind",
    "asyncify_start_rewind",
    "asyncify_stop_rewind",
    "asyncify_get_state",
}


def wasm_opt_arguments(program: Program, linked: Path, finished: Path) -> list[str]:
    """The arguments of wasm-opt for this program."""
    return [*_files(linked, finished), *_asyncify(program), *_last_passes(program)]


def _files(source: Path, target: Path) -> list[str]:
    return [str(source), "-o", str(target), *(f"--enable-{feature}" for feature in _FEATURES)]


def _asyncify(program: Program) -> list[str]:
    arguments = []
    if program.fork:
        arguments += [
            "--asyncify",
            f"--pass-arg=asyncify-imports@{'.'.join(_FORK)}",
            "--pass-arg=asyncify-ignore-unwind-from-catch",
        ]
        if program.fork_through_pointers is not None:
            arguments += [
                "--pass-arg=asyncify-ignore-indirect",
                f"--pass-arg=asyncify-addlist@{','.join(program.fork_through_pointers)}",
                "--pass-arg=asyncify-propagate-addlist",
                "--pass-arg=asyncify-verbose",
            ]
    return arguments


def _last_passes(program: Program) -> list[str]:
    optimise = [] if program.optimise == "none" else [f"-{program.optimise}"]
    return [*optimise, "--translate-to-exnref", *_STRIP]


def finish_program(
    program: Program, linked: Path, finished: Path, run: Callable[[Sequence[str]], str]
) -> None:
    """Make `finished` of `linked`; `run` runs wasm-opt and returns what it printed."""
    if not linked.is_file():
        raise BadModule(f"the build left no {program.binary}", "Check `make` in the recipe.")
    shutil.copyfile(linked, finished.with_suffix(".linked"))
    copy = finished.with_suffix(".linked")
    if program.profile is None:
        printed = run(wasm_opt_arguments(program, copy, finished))
    else:
        printed = _finish_doubled(program, program.profile, copy, finished, run)
    copy.unlink()
    _check_fork_path(program, printed)
    inspect(program, finished)


def _finish_doubled(
    program: Program,
    profile: Path,
    linked: Path,
    finished: Path,
    run: Callable[[Sequence[str]], str],
) -> str:
    """Like wasm-opt with `wasm_opt_arguments`, with two forms of the functions in the profile."""
    plain, optimised = finished.with_suffix(".plain"), finished.with_suffix(".optimised")
    run([*_files(linked, plain), *_asyncify(program), *_AS_TEXT])
    # The level without its passes: Asyncify then optimises what it writes, nothing else.
    level = "--optimize-level=2"
    printed = run([*_files(linked, optimised), level, *_asyncify(program), *_AS_TEXT])
    hot = functions_of_profile(profile.read_text(encoding="utf-8"))
    texts = (plain.read_text(encoding="utf-8"), optimised.read_text(encoding="utf-8"))
    optimised.write_text(doubled(*texts, hot), encoding="utf-8")
    # The form that resumes has one caller, and would become a part of it.
    run([*_files(optimised, finished), f"--no-inline=*{SUFFIX}", *_last_passes(program)])
    plain.unlink()
    optimised.unlink()
    return printed


def _check_fork_path(program: Program, printed: str) -> None:
    """A list of functions that Asyncify must treat can only be trusted if it is complete."""
    if program.fork_through_pointers is None:
        return
    advice = "Correct fork_through_pointers in the recipe, or remove it."
    if unknown := re.findall(r"warning: Asyncify.*'(.*)'", printed):
        raise BadModule(f"{program.file} has no function {', '.join(unknown)}", advice)
    if "_start can change the state" not in printed:
        raise BadModule(f"{program.file}: no path of listed functions leads to fork", advice)


def inspect(program: Program, module: Path) -> None:
    """Raise `BadModule` unless the kernel can run the module."""
    summary = summarise(module.read_bytes())
    allowed = {_SYSCALL, _FORK} if program.fork else {_SYSCALL}
    if foreign := sorted(set(summary.imports) - allowed):
        names = ", ".join(f"{namespace}.{name}" for namespace, name in foreign)
        raise BadModule(
            f"{program.file} imports {names}",
            "An import from env is a function that the libc lacks: configure believed it "
            "exists (give the answer in the recipe), or it belongs into userland/libc. "
            "linux.fork is allowed only with fork = true.",
        )
    wanted = _EXPORTS | (_ASYNCIFY_EXPORTS if program.fork else set())
    if missing := sorted(wanted - summary.exports):
        raise BadModule(
            f"{program.file} does not export {', '.join(missing)}",
            "It was not linked by the sysroot's wasm-cc, or wasm-cc lost the flag.",
        )
    if summary.custom_sections:
        names = ", ".join(sorted(summary.custom_sections))
        raise BadModule(f"{program.file} still has custom sections: {names}")
