#!/usr/bin/env python3
"""Builds LAPACK from its Fortran source, with a translator from Fortran 77 to C.

    build.py SOURCE_DIR SYSROOT      with CC, CFLAGS, AR and JOBS in the environment

The `script` of the recipe. It leaves SYSROOT/lib/liblapack.a. For each routine: Fortran 90 becomes
Fortran 77 (`fortran77.py`), f2c makes C of it, and the C gets the interface that callers use
(`c_interface.py`). `support.c` has what cannot be translated, `f2c.h` what translated code uses.

Rules: a routine that cannot be translated is named in `_LEFT_OUT` or `_IN_SUPPORT`, everything else
must be translated; the BLAS is another recipe's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from userland.recipes.lapack import c_interface, fortran77

HERE = Path(__file__).resolve().parent
_IN_SUPPORT = (
    *("[sd]roundup_lwork", "xerbla_array", "chla_transtype"),
    # The BLAS has it.
    "xerbla",
)
_LEFT_OUT = (
    # Timing.
    *("dsecnd*", "second*"),
    # Extra-precise refinement, which needs a library of its own, XBLAS.
    *("*rfsx", "*svxx", "*_extended", "*rcond_[cx]", "*rpvgrw", "?la_??amv"),
    # Written in Fortran 90 with arrays as values, and what calls it. Nothing in scipy uses it.
    *("*gedmd*", "*laqz[0-4]", "*gges3", "*ggev3", "*trsyl3", "*bdsvdx", "*gesvdx", "*getsqrhrt"),
    # For several threads, partly written for a preprocessor.
    *("*2stage*", "*b2st*", "*_he2hb", "*_sy2sb"),
    # Constants for Fortran 90.
    "la_constants",
)
# Fortran's order of evaluation allows contraction; results must not depend on the compiler.
_FLAGS = ("-std=gnu11", "-ffp-contract=off", "-w")


def main() -> int:
    tree, sysroot = (Path(argument).resolve() for argument in sys.argv[1:3])
    work = tree / "translated"
    work.mkdir()
    sources = [*tree.glob("SRC/*.f"), *tree.glob("SRC/*.f90"), tree / "INSTALL/ilaver.f"]
    routines = sorted(file for file in sources if not _matches(file, *_IN_SUPPORT, *_LEFT_OUT))
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        results = list(pool.map(lambda file: _translate_and_compile(file, work), routines))
        results.append(_compile(HERE / "support.c", work / "support.o"))
    if problems := [problem for problem in results if problem]:
        print(*problems, sep="\n", file=sys.stderr)
        print(f"build.py: {len(problems)} routines failed", file=sys.stderr)
        return 1
    print(f"{len(routines)} routines translated")
    library = sysroot / "lib/liblapack.a"
    library.parent.mkdir(parents=True, exist_ok=True)
    # A command line for 1,900 objects is too long for some systems.
    objects = sorted(work.glob("*.o"))
    for start in range(0, len(objects), 500):
        part = map(str, objects[start : start + 500])
        subprocess.run([os.environ["AR"], "rcsD", str(library), *part], check=True)
    return 0


def _matches(file: Path, *patterns: str) -> bool:
    return any(fnmatch(file.stem.lower(), pattern) for pattern in patterns)


def _translate_and_compile(source: Path, work: Path) -> str:
    """Leave the object of a routine in `work`; returns what went wrong."""
    name = source.stem.lower()
    text = source.read_text(encoding="utf-8", errors="replace")
    if source.suffix == ".f90":
        fortran = fortran77.from_free_form(text, name)
    else:
        fortran = fortran77.rewritten(text, name, free_form=False)
    (work / f"{name}.f").write_text(fortran, encoding="ascii")
    # Locals on the stack, since some routines are recursive; REAL functions return a float.
    argv = ["f2c", "-a", "-A", "-R", "-w", f"{name}.f"]
    done = subprocess.run(argv, cwd=work, capture_output=True, text=True, check=False)
    code = work / f"{name}.c"
    if done.returncode != 0:
        return f"{name}: {done.stderr.strip()}"
    code.write_text(c_interface.rewritten(code.read_text(encoding="ascii")), encoding="ascii")
    return _compile(code, work / f"{name}.o")


def _compile(code: Path, target: Path) -> str:
    flags = [*os.environ["CFLAGS"].split(), *_FLAGS, f"-I{HERE}"]
    argv = [os.environ["CC"], *flags, "-c", str(code), "-o", str(target)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return f"{code.stem}: {done.stderr.strip()}" if done.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
