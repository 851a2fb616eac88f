"""Which parts of wasmsand an input reaches.

Owns the import hook that puts a mark, `MARKS[n] = 1`, at the beginning of every block of code
(functions, branches, loops, handlers). Rules: install the hook before wasmsand is imported; line
numbers do not change; a mark is one store to a bytearray, so any thread can set it, and it is
cheap on every Python, unlike `sys.settrace`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Final

PACKAGE: Final = "wasmsand"
MARKS: Final = bytearray()
_NAME: Final = "__fuzz_marks__"


def install() -> None:
    """Mark every module of wasmsand that is imported from now on."""
    loaded = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
    if loaded:
        raise RuntimeError(f"already imported, so its code cannot be marked: {loaded[0]}")
    sys.meta_path.insert(0, _Finder())


class Coverage:
    """The blocks that all inputs of one target have reached."""

    def __init__(self) -> None:
        self._seen = 0

    @property
    def blocks(self) -> int:
        """How many blocks were reached."""
        return self._seen.bit_count()

    def begin(self) -> None:
        """Prepare for an input."""
        MARKS[:] = bytes(len(MARKS))

    def end(self) -> int:
        """How many blocks this input was the first to reach."""
        reached = int.from_bytes(MARKS, "little")
        new = reached & ~self._seen
        self._seen |= reached
        return new.bit_count()


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader) and spec.origin:
            spec.loader = _MarkingLoader(fullname, spec.origin)
        return spec


class _MarkingLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compile from the source, because the code in `__pycache__` has no marks."""
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        marked = ast.fix_missing_locations(_Marker().visit(tree))
        code: CodeType = compile(marked, path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__[_NAME] = MARKS
        super().exec_module(module)


class _Marker(ast.NodeTransformer):
    """Puts a mark at the beginning of every block."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.ClassDef | ast.Module):
            return node
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list) and block:
                block.insert(_has_docstring(node, field), _mark(block[0]))
        return node


def _has_docstring(node: ast.AST, field: str) -> bool:
    if field != "body" or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return ast.get_docstring(node, clean=False) is not None


def _mark(before: ast.AST) -> ast.stmt:
    """`MARKS[n] = 1`, on the line of the statement that follows."""
    number = len(MARKS)
    MARKS.append(0)
    (statement,) = ast.parse(f"{_NAME}[{number}] = 1").body
    for node in ast.walk(statement):
        if isinstance(node, ast.expr | ast.stmt):
            ast.copy_location(node, before)
    return statement
