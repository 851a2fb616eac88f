"""The README's Python code runs as printed, in order, and says the truth.

An expression with a comment `# → value` must have that value.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ARROW = "# → "


def python_blocks(document: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)


class CheckedExpressions(ast.NodeTransformer):
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


def check(actual: object, text: str, expected: object) -> None:
    assert actual == expected, f"the README says {text}, and it is {actual!r}"


def test_readme_code_runs_and_its_values_are_true(repository: Path) -> None:
    blocks = python_blocks((repository / "README.md").read_text(encoding="utf-8"))
    assert blocks
    names: dict[str, object] = {"_check": check}
    claims = 0
    for block in blocks:
        transformer = CheckedExpressions(block.splitlines())
        tree = ast.fix_missing_locations(transformer.visit(ast.parse(block)))
        exec(compile(tree, "README.md", "exec"), names)
        assert transformer.checked == block.count(ARROW), "a claim stands beside no expression"
        claims += transformer.checked
    assert claims > 10


@pytest.mark.no_userland
def test_readme_shows_the_whole_api_in_thirty_lines_of_code(repository: Path) -> None:
    tour = python_blocks((repository / "README.md").read_text(encoding="utf-8"))[1]
    assert len([line for line in tour.splitlines() if line.strip()]) <= 30
