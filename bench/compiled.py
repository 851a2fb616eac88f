"""What compiling the kernel would gain: `python -m bench.compiled`.

Copies the package, compiles the kernel, the ABIs and the core of the machine in the copy with mypyc
(two minutes of CPU time; needs clang-22, setuptools and the headers of this Python), and measures
both copies in turns. Rules: CPU time of the process, the fastest of several runs; the copy is only
for measurements, because compiled modules do not behave like their sources in all cases yet
(docs/performance.md). `--keep DIRECTORY` leaves the compiled package there, for tests with
PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
COMPILER: Final = "clang-22"
_PACKAGES: Final = ("kernel", "abi")
_MODULES: Final = (
    "engine/asyncify", "engine/placement", "engine/wasmtime/hostcalls", "engine/wasmtime/traps",
    "machine/charging", "machine/command", "machine/dispatcher", "machine/driver",
    "machine/guest", "machine/host_access", "machine/launch", "machine/lock",
    "machine/module_source", "machine/mounts/asking", "machine/parking", "machine/program_start",
    "machine/thread_driver", "machine/thread_locals", "machine/turns",
)  # fmt: skip
_LEFT_OUT: Final = frozenset({"wasmsand/abi/wasi/errno.py", "wasmsand/kernel/errno.py"})
"""mypyc cannot translate the enumeration of the first; layers above derive exceptions from the
second."""

_MEASURED: Final = r"""
import json, sys, time
from wasmsand import Sandbox

def best(work, count=1):
    times = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(count):
            work()
        times.append((time.process_time() - began) / count)
    return min(times)

with Sandbox(timeout_ms=120_000) as sandbox:
    run = sandbox.commands.run
    run("mkdir -p t/{1..20}; for f in t/{1..20}/{1..100}; do echo hello > $f; done")
    figures = {
        "`run(['true'])`": best(lambda: run(["true"]), 30),
        "`run('echo hi')`": best(lambda: run("echo hi"), 30),
        "100 times `( : )`": best(lambda: run("for i in {1..100}; do ( : ); done")),
        "20 pipelines of 3": best(lambda: run("for i in {1..20}; do echo a | tr a b | cat; done")),
        "`tar c` of 2,000 files": best(lambda: run("tar cf /tmp/x.tar t")),
        "`grep -r` in 2,000 files": best(lambda: run("grep -r absent t")),
        "`ls -lR` of 2,000 files": best(lambda: run("ls -lR t > /tmp/listing")),
        "10,000 echoes to a file": best(lambda: run("for i in {1..10000}; do echo $i; done > o")),
    }
print(json.dumps(figures))
"""


def compile_package(package: Path, work: Path) -> None:
    """Compile modules of the copy `package`, and put the results beside their sources."""
    from mypyc.build import mypycify

    os.chdir(package.parent)
    files = [file for name in _PACKAGES for file in Path("wasmsand", name).rglob("*.py")]
    names = {str(file) for file in files if file.name != "__init__.py"}
    names |= {f"wasmsand/{name}.py" for name in _MODULES}
    extensions: list[Any] = mypycify(
        ["--config-file", str(ROOT / "pyproject.toml"), *sorted(names - _LEFT_OUT)],
        opt_level="2",
        debug_level="0",
        multi_file=True,
        group_name="wasmsand",
        target_dir=str(work),
    )
    objects = _compile_all(extensions, work)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for extension in extensions:
        made = [str(objects[source]) for source in extension.sources]
        place = Path(extension.name.replace(".", "/") + suffix)
        subprocess.run([COMPILER, "-shared", "-Wl,-s", "-o", str(place), *made], check=True)


def _compile_all(extensions: Sequence[Any], work: Path) -> dict[str, Path]:
    """The object file of each C file."""
    headers = (sysconfig.get_path("include"), sysconfig.get_path("platinclude"))
    commands: dict[str, list[str]] = {}
    for extension in extensions:
        includes = [f"-I{folder}" for folder in (*extension.include_dirs, *headers)]
        flags = [flag for flag in extension.extra_compile_args if flag != "-Werror"]
        for source in extension.sources:
            commands[source] = [
                COMPILER, "-fPIC", "-fwrapv", "-DNDEBUG", "-w", *includes, *flags, "-c", source
            ]  # fmt: skip
    objects = {source: work / f"{number}.o" for number, source in enumerate(commands)}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        waiting = [
            pool.submit(subprocess.run, [*command, "-o", str(objects[source])], check=True)
            for source, command in commands.items()
        ]
        for done in waiting:
            done.result()
    return objects


def _measure(place: Path) -> dict[str, float]:
    """Figures of the package in `place`, in a new process."""
    ended = subprocess.run(
        [sys.executable, "-c", _MEASURED],
        env={**os.environ, "PYTHONPATH": str(place)},
        stdout=subprocess.PIPE,
        check=True,
    )
    figures: dict[str, float] = json.loads(ended.stdout)
    return figures


def main(argv: Sequence[str] | None = None) -> int:
    """Compile, measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.compiled", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="how often both take turns")
    parser.add_argument("--keep", type=Path, help="a directory for the compiled package")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        place = options.keep.absolute() if options.keep else Path(scratch)
        built = shutil.ignore_patterns("_image", "_v86*", "_playground", "__pycache__")
        shutil.copytree(ROOT / "src/wasmsand", place / "wasmsand", ignore=built)
        (place / "wasmsand/_image").symlink_to(ROOT / "src/wasmsand/_image")
        compile_package(place / "wasmsand", Path(scratch, "c"))
        sources = [_measure(ROOT / "src"), _measure(place)]
        for _ in range(options.rounds - 1):
            for kept, found in zip(sources, (_measure(ROOT / "src"), _measure(place)), strict=True):
                kept.update({name: min(kept[name], seconds) for name, seconds in found.items()})
    print("| | sources | compiled | ratio |\n|---|--:|--:|--:|")
    for name, before in sources[0].items():
        after = sources[1][name]
        print(f"| {name} | {before * 1e3:.2f} ms | {after * 1e3:.2f} ms | {after / before:.2f}x |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
