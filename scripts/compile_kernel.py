"""Compiles the kernel with mypyc: `make compiled-kernel`.

`python scripts/compile_kernel.py` compiles the modules that `wasmsand.compiled_kernel` lists into
one shared library, in the build cache, and puts it and its index into this checkout
(`src/wasmsand/_compiled`), where imports find it. Rules: the key of the cache's entry is made of
all sources that the result depends on, the release of mypyc, this Python and the compiler's flags,
so that clones share entries. A warning of mypyc that it treats a generator expression as a list is
an error: the compiled code would behave differently. The exit status is 3 on a machine that lacks a
C compiler or Python's headers.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.metadata
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.check_layers import imports_of  # noqa: E402
from userland.builder.cache import Cache, Entry, default_root  # noqa: E402
from wasmsand.compiled_kernel import (  # noqa: E402
    DIRECTORY,
    INDEX_FORMAT,
    INDEX_SUFFIX,
    LEFT_OUT,
    LIBRARY,
    MODULES,
    PACKAGES,
    SUFFIX,
    hash_of,
    is_compiled,
)

PACKAGE: Final = "wasmsand"
OWN_SOURCES: Final = (ROOT / "scripts/compiled_start.c", ROOT / "scripts/compiled_entry.c")
OWN_HEADER: Final = ROOT / "scripts/compiled_entry.h"
CONFIGURATION: Final = ROOT / "pyproject.toml"
ENTRY: Final = "compiled-kernel"
FLAGS: Final = ("-O2", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-DNDEBUG", "-w", "-g0")
LINK_FLAGS: Final = ("-shared", "-Wl,-s", "-Wl,--gc-sections")
_FORMAT: Final = 1
"""Raise it if the same inputs would give another result."""


class CannotCompile(Exception):
    """This machine lacks something; the message says what."""


def compiled_modules(source: Path) -> list[str]:
    """The names of all modules to compile; `source` is the directory of the package."""
    found = set(MODULES)
    for package in PACKAGES:
        for path in (source / package).rglob("*.py"):
            name = ".".join(path.relative_to(source).with_suffix("").parts)
            if path.name != "__init__.py" and name not in LEFT_OUT:
                found.add(name)
    return sorted(f"{PACKAGE}.{name}" for name in found)


def inputs_of(source: Path, modules: Sequence[str]) -> list[str]:
    """The modules, and all of ours that they import, directly or not: constants and types of these
    are part of the compiled code."""
    found = set(modules)
    queue = list(modules)
    while queue:
        module = queue.pop()
        tree = ast.parse(_path(source, module).read_bytes())
        for target in {each.target for each in imports_of(tree, module, is_package=False)}:
            for name in (target, target.rpartition(".")[0]):
                if (
                    name.startswith(f"{PACKAGE}.")
                    and name not in found
                    and _path(source, name).is_file()
                ):
                    found.add(name)
                    queue.append(name)
    return sorted(found)


def _path(source: Path, module: str) -> Path:
    return source.joinpath(*module.split(".")[1:]).with_suffix(".py")


def key_of(source: Path, inputs: Sequence[str], compiler: str) -> str:
    """The key of the result in the cache."""
    parts = [
        str(_FORMAT),
        _version(),
        SUFFIX,
        f"{sys.version_info.major}.{sys.version_info.minor}",
        importlib.metadata.version("mypy"),
        os.path.basename(compiler),
        *FLAGS,
        *LINK_FLAGS,
        *(file.read_text("utf-8") for file in (*OWN_SOURCES, OWN_HEADER)),
    ]
    for module in inputs:
        digest = hashlib.sha256(_path(source, module).read_bytes()).hexdigest()
        parts.append(f"{digest} {module} {is_compiled(module.partition('.')[2])}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _version() -> str:
    import wasmsand

    return wasmsand.__version__


def find_compiler() -> str:
    """A C compiler, if everything else is here too."""
    compiler = shutil.which("clang-22") or shutil.which("cc")
    if compiler is None:
        raise CannotCompile("no C compiler (clang-22 or cc)")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        raise CannotCompile("the headers of this Python are missing (Debian: python3-dev)")
    try:
        import mypyc.build  # noqa: F401
    except ImportError as error:
        raise CannotCompile(f"mypyc cannot be imported: {error}; `make lint` installs it") from None
    return compiler


def build(source: Path) -> Entry:
    """The entry of the cache with library and index; compiles if it is not there."""
    compiler = find_compiler()
    modules = compiled_modules(source)
    inputs = inputs_of(source, modules)
    key = key_of(source, inputs, compiler)
    cache = Cache(default_root())
    cache.prepare()
    with cache.lock(f"{ENTRY}-{key}"):
        entry = cache.find(ENTRY, key)
        if entry is not None:
            return entry
        print(f"compile {len(modules)} modules of the kernel with mypyc", flush=True)
        began = time.monotonic()
        with cache.scratch(f"{ENTRY}-{key}") as work:
            made = work / "made"
            made.mkdir()
            library = made / (LIBRARY + SUFFIX)
            _compile(source, modules, work / "c", library, compiler)
            index = [INDEX_FORMAT, f"version {_version()}"]
            for module in inputs:
                kind = "compiled" if module in modules else "source"
                index.append(f"{kind} {hash_of(_path(source, module).read_bytes())} {module}")
            Path(f"{library}{INDEX_SUFFIX}").write_text("\n".join(index) + "\n", encoding="utf-8")
            return cache.publish(ENTRY, key, made, {"compile": time.monotonic() - began})


def _compile(
    source: Path, modules: Sequence[str], work: Path, library: Path, compiler: str
) -> None:
    """Compile the modules to one shared library."""
    work.mkdir()
    extensions = _translate(source, modules, work)
    headers = (sysconfig.get_path("include"), sysconfig.get_path("platinclude"))
    commands: dict[str, list[str]] = {}
    for extension in extensions:
        if extension.name != LIBRARY:
            continue  # a shared library for each module, which `compiled_start.c` replaces
        includes = [f"-I{folder}" for folder in (*extension.include_dirs, *headers)]
        defines = [flag for flag in extension.extra_compile_args if flag.startswith("-D")]
        for file in [*extension.sources, *map(str, OWN_SOURCES)]:
            commands[file] = [compiler, *FLAGS, *defines, *includes, "-c", file]
    objects = {file: work / f"{number}.o" for number, file in enumerate(commands)}
    # The largest first, so that none is left alone at the end.
    order = sorted(commands, key=lambda file: -os.path.getsize(file))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        waiting = [
            pool.submit(subprocess.run, [*commands[file], "-o", str(objects[file])], check=True)
            for file in order
        ]
        for done in waiting:
            done.result()
    made = [str(path) for path in objects.values()]
    subprocess.run([compiler, *LINK_FLAGS, "-o", str(library), *made], check=True)


def _translate(source: Path, modules: Sequence[str], work: Path) -> list[Any]:
    """Translate to C."""
    from mypyc.build import mypycify

    paths = [str(_path(source, module).relative_to(source.parent)) for module in modules]
    before = Path.cwd()
    said = io.StringIO()
    os.chdir(source.parent)
    try:
        with redirect_stdout(said), redirect_stderr(said):
            extensions: list[Any] = mypycify(
                ["--config-file", str(CONFIGURATION), "--cache-dir", str(work / "mypy"), *paths],
                multi_file=True,
                group_name=PACKAGE,
                target_dir=str(work),
            )
    except SystemExit:
        print(said.getvalue(), file=sys.stderr)
        raise
    finally:
        os.chdir(before)
    if "Treating generator comprehension as list" in said.getvalue():
        raise SystemExit(said.getvalue() + "make: write a list where mypyc makes one")
    return extensions


def put(entry: Entry, directory: Path) -> None:
    """Copy library and index to a directory; the index last, because it makes the library valid."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in sorted(entry.files, key=lambda name: name.endswith(INDEX_SUFFIX)):
        fresh = directory / f"{name}.new-{os.getpid()}"
        shutil.copyfile(entry.folder / name, fresh)
        fresh.replace(directory / name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile, and put the result into the checkout."""
    parser = argparse.ArgumentParser(description="Compile the kernel with mypyc.")
    parser.parse_args(arguments)
    source = ROOT / "src" / PACKAGE
    try:
        entry = build(source)
    except CannotCompile as reason:
        print(f"make: the kernel cannot be compiled here: {reason}", file=sys.stderr)
        return 3
    put(entry, source / DIRECTORY)
    return 0


if __name__ == "__main__":
    sys.exit(main())
