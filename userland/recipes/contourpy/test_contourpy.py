"""contourpy: contours by all its algorithms, threads among them."""

from __future__ import annotations

from collections.abc import Callable


def test_contours_are_those_of_other_machines(full_python: Callable[[str], str]) -> None:
    printed = full_python(
        """
import numpy as np
from contourpy import FillType, contour_generator
x, y = np.meshgrid(np.linspace(-2, 2, 9), np.linspace(-2, 2, 9))
z = np.sin(x) * np.cos(y)
for name in ("serial", "mpl2014", "mpl2005", "threaded"):
    generator = contour_generator(x=x, y=y, z=z, name=name)
    lines = generator.lines(0.3)
    points = np.concatenate(lines[0] if isinstance(lines, tuple) else lines)
    print(type(generator).__name__, len(lines), round(float(np.abs(points).sum()), 9))
masked = np.ma.masked_where(z > 0.8, z)
filled = contour_generator(x=x, y=y, z=masked, fill_type=FillType.OuterOffset).filled(0.1, 0.5)
print([points.shape for points in filled[0]], [offsets.tolist() for offsets in filled[1]])
print(contour_generator(z=[[0, 1], [1, 2]]).lines(0.5)[0].tolist())
"""
    )
    assert printed.splitlines() == [
        "SerialContourGenerator 3 50.461967209",
        "Mpl2014ContourGenerator 2 50.461967209",
        "Mpl2005ContourGenerator 2 50.461967209",
        "ThreadedContourGenerator 3 50.461967209",
        "[(10, 2), (31, 2), (10, 2)] [[0, 10], [0, 31], [0, 10]]",
        "[[0.0, 0.5], [0.5, 0.0]]",
    ]


def test_errors_of_the_module_become_exceptions(full_python: Callable[[str], str]) -> None:
    printed = full_python(
        """
import numpy as np
from contourpy import contour_generator
from contourpy._contourpy import SerialContourGenerator
z = np.zeros((3, 3))
for call in (
    lambda: contour_generator(z=[1, 2]),
    lambda: contour_generator(z=z).filled(2, 1),
    lambda: contour_generator(z=z, name="none"),
    lambda: SerialContourGenerator(z, z, z[:2], line_type=0),
):
    try:
        call()
    except (TypeError, ValueError) as error:
        print(type(error).__name__, str(error).splitlines()[0])
"""
    )
    assert printed.splitlines()[:3] == [
        "TypeError Input z must be 2D, not 1D",
        "ValueError upper_level must be larger than lower_level",
        "ValueError Unrecognised contour generator name: none",
    ]
    assert printed.splitlines()[3].startswith("TypeError __init__(): incompatible")
