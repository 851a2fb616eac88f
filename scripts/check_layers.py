"""Checks that imports only point downwards.

It reads the rules from the table "Layers" in docs/architecture.md, so that document and check
cannot differ. The same page states more rules: only the engine imports a WebAssembly runtime or
foreign functions (but `confinement` and `machine/mounts/beneath.py` make system calls with ctypes);
only `engine/choosing.py` imports the engines; the kernel and `web` have no threads; the kernel has
no access to the host's network and processes; and only `web` imports what Pyodide adds. The check
prints one line per broken rule, and then exits with status 1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "wasmsand"

RUNTIME_MODULES = frozenset({"wasmtime", "cffi", "_cffi_backend", "ctypes"})
THREAD_MODULES = frozenset(
    {"threading", "_thread", "concurrent", "multiprocessing", "asyncio", "select", "selectors"}
)
OUTSIDE_MODULES = frozenset(
    {"socket", "_socket", "socketserver", "ssl", "_ssl", "http", "urllib", "ftplib", "smtplib",
     "subprocess", "_posixsubprocess", "pty"}
)  # fmt: skip
"""Modules for the host's network and processes."""
PAGE_MODULES = frozenset({"js", "pyodide", "pyodide_js", "_pyodide"})
"""What Pyodide adds to Python."""
ENGINES = ("engine.wasmtime",)
"""The packages of engines that a host may lack."""
SYSTEM_CALLS = ("machine.mounts.beneath",)
"""Modules that make system calls which Python does not offer."""
CHOOSER = "engine.choosing"
"""The only other module that may import them."""


class TableError(Exception):
    """docs/architecture.md has no table that this check can read."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One row of the table; module names are relative to the package, like `engine.protocol`."""

    name: str
    may_import: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Import:
    """The target of one import statement."""

    target: str
    line: int


def read_layers(document: str) -> dict[str, Layer]:
    """The rows of the table, from top to bottom, by the first part of their package's name."""
    rows: list[tuple[str, str]] = []
    lines = iter(document.splitlines())
    for line in lines:
        if line.replace(" ", "").startswith("|layer|package|"):
            next(lines)
            break
    for line in lines:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        package = cells[1].strip("`").removeprefix(f"{PACKAGE}.").split(".")[0]
        rows.append((package, cells[-1]))
    if not rows:
        raise TableError("no table that starts with | layer | package |")
    names = [package for package, _ in rows]
    layers = {}
    for index, (package, words) in enumerate(rows):
        if words == "everything below":
            allowed = tuple(names[index + 1 :])
        elif words == "nothing else of ours":
            allowed = ()
        else:
            allowed = tuple(word.strip().strip("`") for word in words.split(","))
        unknown = [name for name in allowed if name.split(".")[0] not in names]
        if unknown:
            raise TableError(f"{package} may import {unknown}, which is not a layer")
        layers[package] = Layer(package, allowed)
    return layers


def imports_of(tree: ast.Module, module: str, is_package: bool) -> Iterator[Import]:
    """The absolute names of all modules that `tree` imports, at any place."""
    parts = module.split(".")
    package = parts if is_package else parts[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = (node.module or "").split(".") if node.module else []
            if node.level:
                base = package[: len(package) - node.level + 1] + base
            for alias in node.names:
                # `from a import b` may name the module a.b: the check sees both parts.
                yield Import(".".join([*base, alias.name]), node.lineno)


def is_within(module: str, ancestor: str) -> bool:
    """Whether `module` is `ancestor` or inside it."""
    return module == ancestor or module.startswith(f"{ancestor}.")


def complaints(source: Path, layers: dict[str, Layer]) -> Iterator[str]:
    """The broken rules in the package; `source` is the directory that contains it."""
    for path in sorted((source / PACKAGE).rglob("*.py")):
        relative = path.relative_to(source).with_suffix("")
        parts = list(relative.parts)
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        inside = module.split(".")[1:]
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for found in imports_of(tree, module, is_package):
            problem = _problem(inside, found.target, layers)
            if problem:
                yield f"{path.relative_to(source)}:{found.line}: {problem}"


def _problem(inside: list[str], target: str, layers: dict[str, Layer]) -> str | None:
    top = inside[0] if inside else ""
    first = target.split(".")[0]
    if first == "ctypes" and (top == "confinement" or ".".join(inside) in SYSTEM_CALLS):
        return None
    if first in RUNTIME_MODULES and top != "engine":
        return f"only the engine may import {first}"
    if first in THREAD_MODULES and top in ("kernel", "web"):
        return f"the layer {top} has no threads and never waits: it may not import {first}"
    if first in PAGE_MODULES and top != "web":
        return f"only wasmsand.web knows that it may run in a page: no {first}"
    if first in OUTSIDE_MODULES and top == "kernel":
        return f"the kernel does not know the host's network and processes: no {first}"
    if first in ("userland", "bench", "conformance", "fuzz", "tests", "scripts"):
        return f"the package may not import {first}/, which is not installed"
    if first != PACKAGE:
        return None
    wanted = target.removeprefix(PACKAGE).lstrip(".")
    here = ".".join(inside)
    for engine in ENGINES:
        if is_within(wanted, engine) and not is_within(here, engine) and here != CHOOSER:
            return f"ask {PACKAGE}.{CHOOSER} for an engine: nothing else imports {engine}"
    if top in ("", "__main__", "cli"):
        # The package's root re-exports names; the command is above everything.
        return None
    if top not in layers:
        return f"{PACKAGE}.{top} is not in the table of layers in docs/architecture.md"
    if wanted.split(".")[0] not in layers:
        return f"{top} may not import the package's root or {target}"
    if is_within(wanted, top):
        return None
    if any(is_within(wanted, allowed) for allowed in layers[top].may_import):
        return None
    allowed_names = ", ".join(layers[top].may_import) or "nothing else of ours"
    return f"{top} may not import {PACKAGE}.{wanted} (it may import: {allowed_names})"


def main() -> int:
    """Check the repository."""
    layers = read_layers((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    found = list(complaints(ROOT / "src", layers))
    for line in found:
        print(line)
    if not found:
        print(f"layers: imports point downwards ({' > '.join(layers)})")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
