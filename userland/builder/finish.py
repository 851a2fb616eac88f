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
    arguments = [str(linked), "-o", str(finished)]
    arguments += [f"--enable-{feature}" for feature in _FEATURES]
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
    if program.optimise != "none":
        arguments.append(f"-{program.optimise}")
    return [*arguments, "--translate-to-exnref", *_STRIP]


def finish_program(
    program: Program, linked: Path, finished: Path, run: Callable[[Sequence[str]], str]
) -> None:
    """Make `finished` of `linked`; `run` runs wasm-opt and returns what it printed."""
    if not linked.is_file():
        raise BadModule(f"the build left no {program.binary}", "Check `make` in the recipe.")
    shutil.copyfile(linked, finished.with_suffix(".linked"))
    printed = run(wasm_opt_arguments(program, finished.with_suffix(".linked"), finished))
    finished.with_suffix(".linked").unlink()
    _check_fork_path(program, printed)
    inspect(program, finished)


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
