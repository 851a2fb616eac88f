"""Runs the Python code of a document as printed, in order, and checks what it claims.

An expression with a comment `# → value` must have that value.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ARROW = "# → "


def python_blocks(document: str) -> list[str]:
    """The code between ```python and ```."""
    return re.findall(r"^```python\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)


def run_document(path: Path) -> int:
    """Run every block in one namespace; returns how many claims were checked."""

    def check(actual: object, text: str, expected: object) -> None:
        assert actual == expected, f"{path.name} says {text}, and it is {actual!r}"

    names: dict[str, object] = {"_check": check, "__name__": path.stem}
    claims = 0
    for block in python_blocks(path.read_text(encoding="utf-8")):
        transformer = _CheckedExpressions(block.splitlines())
        tree = ast.fix_missing_locations(transformer.visit(ast.parse(block)))
        exec(compile(tree, str(path), "exec"), names)
        assert transformer.checked == block.count(ARROW), "a claim is not beside an expression"
        claims += transformer.checked
    return claims


class _CheckedExpressions(ast.NodeTransformer):
    """Turns `expression  # → value` into a comparison that reports both sides."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.checked = 0

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        _, arrow, expected = self.lines[(node.end_lineno or 0) - 1].partition(ARROW)
        if not arrow:
            return node
        self.checked += 1
        check = ast.parse(f"_check(None, {expected!r}, {ast.literal_eval(expected)!r})").body[0]
        assert isinstance(check, ast.Expr)
        assert isinstance(check.value, ast.Call)
        check.value.args[0] = node.value
        return ast.copy_location(check, node)
