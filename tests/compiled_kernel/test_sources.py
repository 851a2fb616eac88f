"""The sources keep to what their compiled form can do."""

from __future__ import annotations

import ast
from pathlib import Path

from wasmsand.compiled_kernel import is_compiled

NOT_NATIVE = {"NamedTuple", "Enum", "IntEnum", "IntFlag", "Flag", "Protocol", "TypedDict"}
"""Classes with these bases are ordinary ones in the compiled form too."""


def classes(source: Path) -> dict[str, list[str]]:
    """The names of the bases of each class, both with their modules; `source` is the package."""
    found: dict[str, list[str]] = {}
    places = [path for path in source.iterdir() if path.is_dir() and path.name[0] != "_"]
    for path in (path for place in places for path in place.rglob("*.py")):
        module = "wasmsand." + ".".join(path.relative_to(source).with_suffix("").parts)
        tree = ast.parse(path.read_bytes())
        names = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
                found[f"{module}.{node.name}"] = [
                    names.get(base, f"{module}.{base}") for base in bases
                ]
    return found


def test_no_other_class_derives_from_a_compiled_one(repository: Path) -> None:
    found = classes(repository / "src/wasmsand")

    def is_native(name: str) -> bool:
        module = name.rpartition(".")[0].removeprefix("wasmsand.")
        bases = {base.rpartition(".")[2] for base in found.get(name, ())}
        return name in found and is_compiled(module) and not bases & NOT_NATIVE

    wrong = [
        (name, base)
        for name, bases in found.items()
        if not is_compiled(name.rpartition(".")[0].removeprefix("wasmsand."))
        for base in bases
        if is_native(base)
    ]
    assert wrong == []
