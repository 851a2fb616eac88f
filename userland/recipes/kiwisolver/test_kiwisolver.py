"""kiwisolver: constraints are solved, and errors of C++ become exceptions."""

from __future__ import annotations

from collections.abc import Callable


def test_constraints_are_solved_and_conflicts_are_errors(full_python: Callable[[str], str]) -> None:
    printed = full_python(
        """
from kiwisolver import Solver, UnsatisfiableConstraint, Variable, __version__, strength
left, width, right = Variable("left"), Variable("width"), Variable("right")
solver = Solver()
wishes = [(width >= 100) | "strong", (right <= 80) | "weak"]
for constraint in [right == left + width, left >= 0, *wishes]:
    solver.addConstraint(constraint)
solver.addEditVariable(left, "strong")
solver.suggestValue(left, 30)
solver.updateVariables()
print(left.value(), width.value(), right.value(), left + 1 <= 50)
solver.addConstraint((width == 40) | "required")
solver.updateVariables()
print(right.value())
try:
    solver.addConstraint(width == 50)
except UnsatisfiableConstraint as error:
    print(type(error).__module__, error)
try:
    left * right
except TypeError as error:
    print(error)
print(strength.create(1, 0, 0), strength.required, __version__)
"""
    )
    assert printed.splitlines() == [
        "30.0 100.0 130.0 1 * left + -49 <= 0 | strength = 1.001e+09",
        "70.0",
        "kiwisolver.exceptions 1 * width + -50 == 0 | strength = 1.001e+09 (VIOLATED)",
        "unsupported operand type(s) for *: 'kiwisolver.Variable' and 'kiwisolver.Variable'",
        "1000000.0 1001001000.0 1.5.1",
    ]
