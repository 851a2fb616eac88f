"""The source of the Python driver, as the command line of an interpreter.

Owns how `python_driver` and its parts (`python_guest`) get into the sandbox. Rules: the interpreter
compiles the driver at every start, so docstrings, annotations and type-checking blocks are left
out; the parts travel compressed, and are compiled only if they are used.
"""

from __future__ import annotations

import ast
import base64
import json
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

_NAME: Final = "<session>"
_PIECE: Final = 1200
"""Characters of the driver that are compiled at once, unless one statement is longer."""
_HERE: Final = Path(__file__).parent

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


@cache
def driver_command(requests_fd: int, answers_fd: int) -> str:
    """The code for `python3 -c`. The driver has its own namespace, because `__main__` belongs to
    the program."""
    statements = [ast.unparse(node) for node in _reduced(_place() / "python_driver.py").body]
    space = {
        "__name__": _NAME,
        "__file__": _NAME,
        "pieces": _pieces(statements),
        "stored_parts": base64.b64encode(zlib.compress(json.dumps(_parts()).encode(), 9)),
    }
    load = "for piece in pieces: exec(compile(piece, __file__, 'exec'))\n"
    call = f"serve({requests_fd}, {answers_fd})\n"
    return f"exec(compile({load + call!r}, {_NAME!r}, 'exec'), {space!r})"


def _pieces(statements: list[str]) -> list[str]:
    """Statements, joined to pieces. The interpreter keeps the memory that its compiler has used:
    compiling the driver at once would take 0.4 MB more, and compiling each statement alone 1 ms
    longer."""
    pieces = [""]
    for statement in statements:
        if len(pieces[-1]) + len(statement) > _PIECE:
            pieces.append("")
        pieces[-1] += f"{statement}\n"
    return pieces


def _parts() -> dict[str, str]:
    paths = {path.name.removesuffix(".py"): path for path in (_place() / "python_guest").iterdir()}
    return {name: ast.unparse(_reduced(paths[name])) for name in sorted(paths) if name[0] != "_"}


def _place() -> Traversable:
    """This directory, which may be inside an archive."""
    if _HERE.is_dir():
        return _HERE
    from importlib.resources import files  # slow to import, and hardly ever needed

    return files(__package__ or "")


def _reduced(path: Traversable) -> ast.Module:
    """The syntax tree of a file without what only readers and type checkers need."""
    tree = _Reducer().visit(ast.parse(path.read_text(encoding="utf-8")))
    assert isinstance(tree, ast.Module)
    return ast.fix_missing_locations(tree)


class _Reducer(ast.NodeTransformer):
    """Removes docstrings, annotations, type-checking blocks and `__future__` imports."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Remove strings that stand alone."""
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        """Remove `__future__` imports, and the types of annotations."""
        return None if node.module in ("__future__", "typing") else node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """Remove type-checking blocks."""
        is_typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_typing else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        """Make an annotated assignment a plain one."""
        if node.value is None:
            return None
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Remove the annotation of a parameter."""
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Remove the annotation of the result."""
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Remove the annotation of the result."""
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Keep a class that has only a docstring valid."""
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node
