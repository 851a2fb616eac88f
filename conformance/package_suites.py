"""Which tests of each package are run.

Owns the lists of files, and no code that runs one; `package_suite.py` explains the fields. Rules:
a suite runs the parts that programs use most, if all of it would take hours; tests that a package
marks as slow are left out where the package's own command leaves them out.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from conformance.package_suite import PackageSuite
from conformance.suite import Side
from conformance.supplies import Workplace

_NOT_SLOW = ("-m", "not slow")


class NumpySuite(PackageSuite):
    """All tests but those of Fortran, of type checkers, of tools that freeze programs, and of the
    instructions of the processor."""

    name = folder = "numpy"
    program = "numpy"
    test_modules = "numpy-tests"
    options = _NOT_SLOW
    files = ("numpy/**/tests/test_*.py",)
    left_out = (
        "numpy/f2py/*",
        "numpy/typing/*",
        "numpy/_pyinstaller/*",
        "numpy/tests/test_public_api.py",
        "numpy/_core/tests/test_cpu_*.py",
        "numpy/_core/tests/test_simd*.py",
    )


class PandasSuite(PackageSuite):
    """The parts that programs use most: all would take hours."""

    name = folder = "pandas"
    program = "pandas"
    options = ("-m", "not slow and not network and not db")
    files = tuple(
        f"pandas/tests/{files}.py"
        for files in (
            "apply/test_frame_apply", "apply/test_series_apply",
            "arithmetic/test_*", "arrays/*/test_*", "base/test_*", "dtypes/test_*",
            "frame/test_*", "frame/indexing/test_*", "frame/methods/test_*",
            "groupby/test_*", "groupby/aggregate/test_aggregate",
            "indexes/test_*", "indexes/*/test_*", "indexing/test_*", "indexing/multiindex/test_*",
            "io/excel/test_*", "io/formats/test_*", "io/json/test_*", "io/parser/test_*",
            "io/parser/*/test_*",
            "io/test_html", "io/test_pickle",
            "reductions/test_*", "resample/test_*", "reshape/test_*", "reshape/concat/test_*",
            "reshape/merge/test_*",
            "series/test_*", "series/accessors/test_*", "series/indexing/test_*",
            "series/methods/test_*",
            "strings/test_*", "tools/test_*", "tseries/*/test_*", "window/test_*",
        )
    )  # fmt: skip
    left_out = (
        "*/test_arrow_interface.py",  # pyarrow is on neither side
        "*/test_numba.py",  # nor is numba
        "*/test_network.py",
    )


class ScipySuite(PackageSuite):
    """The parts that programs use most."""

    name = folder = "scipy"
    program = "scipy"
    options = _NOT_SLOW
    files = tuple(
        f"scipy/{part}/tests/test_*.py"
        for part in (
            "fft", "linalg", "optimize", "signal", "sparse", "sparse/csgraph", "sparse/linalg",
            "sparse/linalg/_dsolve", "sparse/linalg/_eigen", "sparse/linalg/_eigen/*",
            "sparse/linalg/_isolve", "stats",
        )
    )  # fmt: skip
    left_out = (
        "*/test_axis_nan_policy.py",  # 30,000 combinations of arguments
        "*/test_extending.py",  # needs a C compiler
    )


class SklearnSuite(PackageSuite):
    """The parts that programs use most."""

    name = "scikit-learn"
    folder = "sklearn"
    program = "scikit-learn"
    files = (
        *(
            f"sklearn/{part}/tests/test_*.py"
            for part in ("cluster", "compose", "decomposition", "ensemble",
                         "ensemble/_hist_gradient_boosting", "feature_extraction",
                         "feature_selection", "impute", "linear_model", "linear_model/_glm",
                         "metrics", "metrics/cluster", "mixture", "model_selection", "neighbors",
                         "neural_network", "preprocessing", "svm", "tree")
        ),
        "sklearn/tests/test_dummy.py",
        "sklearn/tests/test_naive_bayes.py",
        "sklearn/tests/test_pipeline.py",
    )  # fmt: skip


class PillowSuite(PackageSuite):
    """All tests of the source; the wheel has none."""

    name = "pillow"
    folder = "PIL"
    program = "Pillow"
    source_tests = ("Tests", "Tests")
    tests_use_current_directory = True
    files = ("Tests/test_*.py",)

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`."""
        return [*super().ingredients(side), *(["tests only"] if side == "sandbox" else [])]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """As for other packages, but without the wheel's modules: `python -m PIL` would find them
        in the current directory."""
        super().make_tree(side, tree, place)
        if side == "sandbox":
            shutil.rmtree(tree / "added" / self.folder)


class MatplotlibSuite(PackageSuite):
    """All tests but those of windows: image tests compare with the images of the source."""

    name = folder = "matplotlib"
    program = "matplotlib"
    source_tests = ("lib/matplotlib/tests", "matplotlib/tests")
    files = ("matplotlib/tests/test_*.py",)
    left_out = (
        "*/test_backend_cairo.py",
        "*/test_backend_gtk3.py",
        "*/test_backend_macosx.py",
        "*/test_backend_qt.py",
        "*/test_backend_tk.py",
        "*/test_backend_nbagg.py",
        "*/test_backend_webagg.py",
        "*/test_backends_interactive.py",
    )


SUITES: dict[str, type[PackageSuite]] = {
    suite.name: suite
    for suite in (MatplotlibSuite, NumpySuite, PandasSuite, PillowSuite, ScipySuite, SklearnSuite)
}
