"""Renews the profiles of recipes: `python -m bench.profile bash python sqlite3`.

A profile says how often each branch of a program runs while it does its `profile/train.sh`. The
compiler counts in the source, so the counts of a native build serve the sandbox's build too: where
the source differs, it ignores them. Rules: `profile/hot.proftext` has only functions that matter,
as text; a build only reads it; renewing needs the Debian package `libclang-rt-22-dev`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.builds import native_variant
from conformance.supplies import Supplies
from userland.builder.recipe import installed_path
from userland.builder.target import FILES
from userland.builder.toolchain import LLVM

_COUNT = "-fprofile-instr-generate"
_PROFDATA = f"llvm-profdata-{LLVM}"
_SELDOM = 100_000
"""A function is left out if its busiest branch runs this many times less than that of all."""


@dataclass(frozen=True)
class Training:
    """What a build that counts needs besides the recipe."""

    configure: tuple[str, ...] = ()
    """Further arguments of configure, so that the source is that of the sandbox."""


TRAININGS: Mapping[str, Training] = {
    "bash": Training(),
    "python": Training(("--with-computed-gotos=no",)),
    "sqlite3": Training(),
}


@dataclass(frozen=True)
class Function:
    """The counts of one function."""

    name: str
    digest: str
    counts: tuple[int, ...]

    def __str__(self) -> str:
        return "\n".join([self.name, self.digest, str(len(self.counts)), *map(str, self.counts)])


def functions_of(text: str) -> Iterator[Function]:
    """The functions of a profile in LLVM's text form, without what else it may say of them."""
    for part in text.split("\n\n"):
        lines = [line for line in part.splitlines() if line and not line.startswith(("#", ":"))]
        if lines:
            name, digest, number = lines[:3]
            yield Function(name, digest, tuple(map(int, lines[3 : 3 + int(number)])))


def hot(found: Sequence[Function]) -> list[Function]:
    """The functions that matter."""
    busiest = max(max(function.counts) for function in found)
    return [function for function in found if max(function.counts) * _SELDOM >= busiest]


def check_runtime() -> None:
    """Say what is missing if the compiler cannot link a program that counts. The builds of programs
    would fail in the middle, with a message of the linker."""
    clang = f"clang-{LLVM}"
    command = [clang, _COUNT, "-x", "c", "-", "-o", os.devnull]
    try:
        subprocess.run(
            command, input=b"int main(void) { return 0; }", check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        package = f"libclang-rt-{LLVM}-dev"
        raise SystemExit(
            f"{clang} cannot link programs that count their branches. "
            f"Install the Debian packages {clang} and {package}."
        ) from error


def renew(name: str, supplies: Supplies) -> None:
    """Build with counters, run the training, and write the profile."""
    recipe = supplies.recipe(name)
    folder = recipe.folder / "profile"
    with tempfile.TemporaryDirectory(prefix="profile-") as scratch:
        work = Path(scratch)
        outputs = native_variant(
            supplies,
            recipe,
            work / "build",
            cflags=(_COUNT,),
            ldflags=(_COUNT,),
            configure=TRAININGS[name].configure,
        )
        program = outputs / FILES / installed_path(recipe.programs[0].names[0])[1:]
        (work / "run").mkdir()
        environment = {
            **os.environ,
            "LC_ALL": "C.UTF-8",
            "LLVM_PROFILE_FILE": f"{work}/counts/%4m.profraw",
            "PATH": f"{program.parent}:{os.environ.get('PATH', os.defpath)}",
        }
        # The shell is the one that counts, if it is bash that is trained.
        subprocess.run(
            ["env", "bash", folder / "train.sh"], cwd=work / "run", env=environment, check=True
        )
        raw = sorted((work / "counts").iterdir())
        text = work / "all.proftext"
        subprocess.run([_PROFDATA, "merge", "-text", "-o", text, *raw], check=True)
        everything = list(functions_of(text.read_text("utf-8")))
    kept = hot(everything)
    (folder / "hot.proftext").write_text("\n\n".join(map(str, kept)) + "\n", "utf-8")
    print(f"{name}: {len(kept)} of {len(everything)} functions")


def main() -> None:
    """Renew the named profiles."""
    parser = argparse.ArgumentParser(description="Renew the profiles of recipes.")
    parser.add_argument("recipe", nargs="+", choices=sorted(TRAININGS))
    names = parser.parse_args().recipe
    supplies = Supplies(print)
    check_runtime()
    for name in names:
        renew(name, supplies)


if __name__ == "__main__":
    main()
