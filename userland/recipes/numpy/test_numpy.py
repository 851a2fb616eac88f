"""numpy: its extension modules are part of the interpreter."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[[str], str]


def test_arithmetic_and_linear_algebra_are_right(full_python: Run) -> None:
    printed = full_python(
        """
import numpy as np
print(np.arange(10).sum())
print(np.linalg.svd(np.diag([3.0, 2.0, 1.0]))[1].tolist())
a = np.array([[4.0, 1.0], [1.0, 3.0]])
print(np.linalg.solve(a, [1.0, 2.0]).round(12).tolist())
print((a @ a).tolist(), np.fft.fft([1, 2, 3, 4]).tolist())
"""
    )
    assert printed.splitlines() == [
        "45",
        "[3.0, 2.0, 1.0]",
        "[0.090909090909, 0.636363636364]",
        "[[17.0, 7.0], [7.0, 10.0]] [(10+0j), (-2+2j), (-2+0j), (-2-2j)]",
    ]


def test_random_numbers_are_those_of_every_machine(full_python: Run) -> None:
    printed = full_python(
        """
import numpy as np
print(np.random.default_rng(42).integers(0, 1000, 5).tolist())
print(np.random.RandomState(42).randint(0, 1000, 5).tolist())
"""
    )
    assert printed.splitlines() == ["[89, 773, 654, 438, 433]", "[102, 435, 860, 270, 106]"]


def test_errors_and_warnings_are_raised(full_python: Run) -> None:
    printed = full_python(
        """
import warnings
import numpy as np
warnings.simplefilter("error")
for action in (lambda: np.linalg.inv(np.zeros((2, 2))), lambda: np.array([1]) // 0):
    try:
        action()
    except Exception as error:
        print(type(error).__name__, error)
"""
    )
    assert printed.splitlines() == [
        "LinAlgError Singular matrix",
        "RuntimeWarning divide by zero encountered in floor_divide",
    ]


def test_methods_getters_and_setters_that_lacked_parameters_can_be_called(full_python: Run) -> None:
    printed = full_python(
        """
import copy
import numpy as np
from numpy._core._multiarray_umath import _array_converter
print(copy.copy(np.float64(2.5)), copy.deepcopy(np.int8(3)))
print(_array_converter([1], 2).scalar_input)
array = np.array([1.0], "float32")
array.dtype = "int32"
print(array)
"""
    )
    assert printed.splitlines() == ["2.5 3", "(False, True)", "[1065353216]"]


def test_metadata_is_found(full_python: Run) -> None:
    program = """
from importlib.metadata import version
import numpy
print(version("numpy"), numpy.__version__)
"""
    assert full_python(program) == "2.5.4 2.5.4\n"
