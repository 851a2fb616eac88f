"""Builds the wheels: `make wheel`.

`python scripts/make_wheels.py [--outdir dist] [NAME ...]` builds the named distributions, by
default all that this checkout can build:

    wasmsand                   the package with the portable programs
    wasmsand-native            the same programs, compiled for this machine's architecture, and the
                               kernel, compiled for this Python
    wasmsand-packages          Python with numpy and others, if `make packages` has built it
    wasmsand-packages-native   the same interpreter, compiled

Rules: modules are compiled for the least processor of an architecture (see
`engine/wasmtime/processors`), once: the cache of compiled modules keeps them. The release of
wasmtime that compiles them is the one that the wheel's metadata requires. An index names each file
with its hash. For platforms that have no compiled modules there is an empty wheel, so that every
platform can install the same requirement.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import compile_kernel  # noqa: E402
from wasmsand.compiled_kernel import NATIVE_DIRECTORY  # noqa: E402
from wasmsand.engine.shipped_modules import (  # noqa: E402
    INDEX_NAME,
    SUFFIX,
    ShippedFile,
    ShippedIndex,
    index_text,
)
from wasmsand.engine.wasmtime.bindings import RELEASE  # noqa: E402
from wasmsand.engine.wasmtime.compile_cache import CompileCache, default_directory  # noqa: E402
from wasmsand.engine.wasmtime.compiler import compile_module, serialise  # noqa: E402
from wasmsand.engine.wasmtime.config import EngineSettings, fingerprint, new_engine, probe  # noqa: E402
from wasmsand.engine.wasmtime.processors import BASELINES, Processor  # noqa: E402
from wasmsand.engine.wasmtime.shipped import ENGINE_NAME  # noqa: E402
from wasmsand.machine.image import image_programs  # noqa: E402
from wasmsand.machine.image_directory import ProgramFile  # noqa: E402

LARGEST = 100_000_000
"""The package index accepts larger files only on request."""


@dataclass(frozen=True)
class Wheel:
    """One distribution."""

    name: str
    project: Path
    """The directory with its pyproject.toml."""
    image: Path
    """The built programs that belong to it."""
    is_native: bool = False
    """Whether it has the compiled modules, rather than the portable ones."""
    kernel: Path | None = None
    """The Python package whose compiled kernel it has too."""


WHEELS = (
    Wheel("wasmsand", ROOT, ROOT / "src/wasmsand/_image"),
    Wheel(
        "wasmsand-native",
        ROOT / "packaging/wasmsand-native",
        ROOT / "src/wasmsand/_image",
        is_native=True,
        kernel=ROOT / "src/wasmsand",
    ),
    Wheel(
        "wasmsand-packages",
        ROOT / "packaging/wasmsand-packages",
        ROOT / "src/wasmsand_packages/_image",
    ),
    Wheel(
        "wasmsand-packages-native",
        ROOT / "packaging/wasmsand-packages-native",
        ROOT / "src/wasmsand_packages/_image",
        is_native=True,
    ),
)
PLATFORM_TAGS = {"x86_64": "manylinux1_x86_64", "aarch64": "manylinux2014_aarch64"}
"""Those of wasmtime's own wheels. The modules themselves use no library of the system."""


def main(arguments: Sequence[str]) -> int:
    """Build the wheels, and print their sizes."""
    parser = argparse.ArgumentParser(description="Build the wheels.")
    parser.add_argument("--outdir", type=Path, default=ROOT / "dist")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all that are built")
    options = parser.parse_args(arguments)
    known = {wheel.name: wheel for wheel in WHEELS}
    if unknown := set(options.names) - known.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
    for wheel in WHEELS:
        if options.names and wheel.name not in options.names:
            continue
        if not (wheel.image / "manifest.json").is_file():
            if options.names:
                parser.error(f"{wheel.name}: {wheel.image} is not built")
            continue
        for path in build(wheel, options.outdir):
            size = path.stat().st_size
            print(f"{size / 1e6:8.1f} MB  {path.name}", flush=True)
            if size > LARGEST:
                print(f"make: {path.name} is larger than {LARGEST} bytes", file=sys.stderr)
                return 1
    return 0


def build(wheel: Wheel, outdir: Path) -> list[Path]:
    """Build one distribution: its wheels."""
    if not wheel.is_native:
        return [_build(wheel, outdir, {"WASMSAND_RELEASE": "1"})]
    with tempfile.TemporaryDirectory() as scratch:
        empty = _new_package(wheel, Path(scratch, "empty"))
        built = [_build_native(wheel, outdir, empty, "any")]
        machine = platform.machine()
        processor = BASELINES.get(machine) if sys.platform == "linux" else None
        if processor is not None:
            package = _new_package(wheel, Path(scratch, "compiled"))
            write_modules(image_programs(wheel.image), processor, package)
            if wheel.kernel is not None:
                compiled = compile_kernel.build(wheel.kernel)
                compile_kernel.put(compiled, package / NATIVE_DIRECTORY)
            for part in ("LICENCES.md", "licences"):
                _copy(wheel.image / part, package / part)
            built.append(_build_native(wheel, outdir, package, PLATFORM_TAGS[machine]))
        return built


def write_modules(
    programs: Sequence[ProgramFile], processor: Processor, directory: Path
) -> ShippedIndex:
    """Compile programs, and write them and their index to a directory."""
    settings = EngineSettings()
    engine = new_engine(settings, processor=processor)
    probed = probe(engine)
    cache = CompileCache(default_directory(), fingerprint(probed))
    first = directory / f"probe{SUFFIX}"
    first.write_bytes(probed)
    modules: dict[str, ShippedFile] = {}
    for program in programs:
        path = directory / f"{program.name}{SUFFIX}"
        cached = cache.find(program.sha256)
        if cached is None:
            print(f"compile {program.name} for {processor.name}", file=sys.stderr, flush=True)
            content = serialise(compile_module(engine, program.read()))
            cache.store(program.sha256, content)
            path.write_bytes(content)
        else:
            _copy(cached, path)
        path.chmod(0o644)
        modules[program.sha256] = _described(path)
    index = ShippedIndex(
        directory=directory,
        engine=ENGINE_NAME,
        release=RELEASE,
        target=processor.target,
        processor=processor.name,
        probe=_described(first),
        modules=modules,
    )
    (directory / INDEX_NAME).write_text(index_text(index), encoding="utf-8")
    return index


def _new_package(wheel: Wheel, parent: Path) -> Path:
    package = parent / wheel.name.replace("-", "_")
    package.mkdir(parents=True)
    text = (
        f'"""The programs of {wheel.name.removesuffix("-native")}, compiled. See {INDEX_NAME}."""\n'
    )
    (package / "__init__.py").write_text(text, encoding="utf-8")
    return package


def _build_native(wheel: Wheel, outdir: Path, package: Path, tag: str) -> Path:
    required = tomllib.loads((wheel.project / "pyproject.toml").read_text("utf-8"))["project"]
    if required["dependencies"] != [f"{ENGINE_NAME}=={RELEASE}"]:
        raise SystemExit(
            f"make: {wheel.project}/pyproject.toml requires {required['dependencies']}, but "
            f"wasmtime {RELEASE} is installed here and would compile the modules"
        )
    variables = {"WASMSAND_COMPILED_DIRECTORY": str(package), "WASMSAND_COMPILED_TAG": tag}
    return _build(wheel, outdir, variables)


def _build(wheel: Wheel, outdir: Path, variables: dict[str, str]) -> Path:
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", scratch,
             wheel.project],
            env=os.environ | variables,
            stdout=subprocess.DEVNULL,
            check=True,
        )  # fmt: skip
        (built,) = Path(scratch).glob("*.whl")
        outdir.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(built, outdir / built.name))


def _described(path: Path) -> ShippedFile:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return ShippedFile(path, digest, path.stat().st_size)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.is_file():
        shutil.copyfile(source, target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
