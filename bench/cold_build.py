"""How long a cold build takes: `python -m bench.cold_build [NAME ...]`.

Builds into an empty cache of its own, which is removed afterwards, with the sources and tools that
were downloaded before. Rules: CPU time is what counts on a busy machine, so it is printed beside
wall time; the wall time of two quiet cores is estimated, not measured.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from conformance.supplies import ROOT
from userland.builder.cache import Cache, default_root
from userland.builder.cli import RECIPES
from userland.builder.commands import Commands
from userland.builder.durations import known_seconds, longest_chain
from userland.builder.recipe import built_by_default, load_recipes, with_dependencies
from userland.builder.target_wasm import WasmTarget
from userland.builder.toolchain import find_toolchain

_CORES = 2
# Part of the time, one build waits for another and a core has nothing to do.
_SHARE_IN_USE = 0.9


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.cold_build",
        description="Measure a build with an empty cache. Downloads are not measured.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="recipes (default: all)")
    parser.add_argument(
        "--native", action="store_true", help="the unoptimised programs that tests compare with"
    )
    options = parser.parse_args(argv)
    have = Cache(default_root())
    if not any(have.sources.glob("*")):
        print("nothing is downloaded yet: run make build first", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="wasmsand-cold-", dir=have.root) as made:
        cold = Cache(Path(made))
        cold.root.mkdir()
        for folder in (have.sources, have.tools):
            shutil.copytree(folder, cold.root / folder.name, copy_function=os.link, symlinks=True)
        shutil.copytree(have.apt, cold.root / have.apt.name, symlinks=True)
        target = ["--native", "--unoptimised"] if options.native else [f"--image={made}/image"]
        command = [sys.executable, "-m", "userland.builder", *target, *options.names]
        began = time.monotonic()
        status = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "WASMSAND_CACHE": made}, check=False
        ).returncode
        wall = time.monotonic() - began
    _print_chain(options.names)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    quiet = cpu / _CORES / _SHARE_IN_USE
    print(
        f"wall time {wall / 60:.1f} min, CPU {cpu / 60:.1f} min; "
        f"on {_CORES} quiet cores about {quiet / 60:.1f} min"
    )
    return status


def _print_chain(names: Sequence[str]) -> None:
    """Print the chain of builds that no number of cores makes shorter."""
    recipes = load_recipes(RECIPES, ROOT)
    chosen = with_dependencies(names or built_by_default(recipes), recipes)
    toolchain = find_toolchain(Commands())
    if toolchain is None:
        return
    known = known_seconds()
    chain = longest_chain(chosen, WasmTarget(toolchain))
    shown = ", ".join(f"{name} {known[name]:.0f} s" if name in known else name for name in chain)
    print(f"longest chain, CPU time in durations.toml: {shown}")


if __name__ == "__main__":
    sys.exit(main())
