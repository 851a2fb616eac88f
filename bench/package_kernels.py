"""Small programs that measure packages: `python3 package_kernels.py NAME`.

They run inside the sandbox and natively. Rules: a kernel prepares its data first, which is not
timed, and returns the work; the work is done once to warm up and then REPEATS times, and the
program prints the CPU seconds of the fastest one and a number that depends on all of the result.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Work = Callable[[], Any]
REPEATS = 3
CSV_ROWS = 900_000
"""Rows of the table that is read and written: 50 MB as text."""


def _numbers(count: int, kind: str = "f8") -> Any:
    import numpy as np

    random = np.random.default_rng(1)
    if kind[0] == "i":
        return random.integers(-(2**30), 2**30, count).astype(kind)
    return random.random(count).astype(kind)


def _matmul(size: int, kind: str) -> Work:
    a, b = (_numbers(size * size, kind).reshape(size, size) for _ in range(2))
    return lambda: (a @ b).sum(dtype="f8")


def _linalg(name: str, size: int) -> Work:
    import numpy as np

    a = _numbers(size * size).reshape(size, size) + np.eye(size)
    b = _numbers(size)
    if name == "solve":
        return lambda: abs(np.linalg.solve(a, b)).sum()
    return lambda: np.linalg.svd(a)[1].sum()


def _ufunc(name: str, kind: str = "f8") -> Work:
    import numpy as np

    function, a = getattr(np, name), _numbers(1_000_000, kind) + 1
    return lambda: function(a).sum(dtype="f8")


def _sum() -> Work:
    a = _numbers(1_000_000)
    return lambda: sum(a.sum() for _ in range(10))


def _arithmetic() -> Work:
    a, b = _numbers(1_000_000), _numbers(1_000_000)
    return lambda: (a * b + a - b / (a + 1)).sum()


def _sort(name: str, kind: str) -> Work:
    import numpy as np

    function, a = getattr(np, name), _numbers(1_000_000, kind)
    return lambda: float(function(a)[::1000].sum())


def _fft() -> Work:
    import numpy as np

    a = _numbers(1 << 20)
    return lambda: abs(np.fft.fft(a)).sum()


def _table(rows: int) -> Any:
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(1)
    names = np.array([f"name{number:04}" for number in range(1000)], dtype=object)
    return pd.DataFrame(
        {
            "id": np.arange(rows),
            "group": random.integers(0, 1000, rows),
            "name": names[random.integers(0, 1000, rows)],
            "amount": random.random(rows).round(6) * 1000,
            "score": random.random(rows),
        }
    )


def _csv() -> Path:
    file = Path("table.csv")
    if not file.is_file():
        _table(CSV_ROWS).to_csv(file, index=False)
    return file


def _read_csv() -> Work:
    import pandas as pd

    file = _csv()
    return lambda: pd.read_csv(file)["score"].sum()


def _to_csv() -> Work:
    table = _table(100_000)

    def work() -> int:
        text = io.StringIO()
        table.to_csv(text, index=False)
        return text.tell()

    return work


def _group(column: str, function: str) -> Work:
    table = _table(1_000_000)
    grouped = table[[column, "amount", "score"]]
    return lambda: getattr(grouped.groupby(column), function)()["amount"].sum()


def _merge() -> Work:
    left, right = _table(500_000), _table(500_000).sample(frac=0.5, random_state=1)
    return lambda: left.merge(right[["id", "score"]], on="id")["score_y"].sum()


def _sort_values() -> Work:
    table = _table(500_000)
    return lambda: table.sort_values(["group", "score"])["id"].iloc[::100].sum()


def _strings() -> Work:
    names = _table(200_000)["name"]
    return lambda: names.str.upper().str.contains("7").sum() + names.str.len().sum()


def _eigenvalues() -> Work:
    import scipy.linalg

    a = _numbers(300 * 300).reshape(300, 300)
    symmetric = a + a.T
    return lambda: abs(scipy.linalg.eigh(symmetric)[0]).sum()


def _sparse_solve() -> Work:
    import numpy as np
    import scipy.sparse
    import scipy.sparse.linalg

    count = 100
    line = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(count, count))
    one = scipy.sparse.eye_array(count)
    grid = (scipy.sparse.kron(one, line) + scipy.sparse.kron(line, one)).tocsc()
    right = np.ones(count * count)
    return lambda: scipy.sparse.linalg.spsolve(grid, right).sum()


def _minimise() -> Work:
    import numpy as np
    import scipy.optimize

    start = np.full(50, 1.3)
    return lambda: scipy.optimize.minimize(scipy.optimize.rosen, start, method="BFGS").x.sum()


def _samples(rows: int) -> tuple[Any, Any]:
    import numpy as np

    random = np.random.default_rng(1)
    features = random.normal(size=(rows, 20))
    noise = random.normal(size=rows)
    return features, (features[:, :5].sum(axis=1) + noise > 0).astype("i8")


def _logistic_regression() -> Work:
    from sklearn.linear_model import LogisticRegression

    features, classes = _samples(50_000)
    return lambda: abs(LogisticRegression().fit(features, classes).coef_).round(3).sum()


def _random_forest() -> Work:
    from sklearn.ensemble import RandomForestClassifier

    features, classes = _samples(5_000)

    def work() -> Any:
        forest = RandomForestClassifier(n_estimators=50, random_state=1)
        return forest.fit(features, classes).score(features, classes)

    return work


def _plot() -> Work:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import numpy as np

    x = np.linspace(0, 10, 1000)

    def work() -> int:
        figure, axes = plt.subplots(1, 2, figsize=(10, 4))
        axes[0].plot(x, np.sin(x), label="sin")
        axes[0].plot(x, np.cos(x), label="cos")
        axes[0].set_title("waves")
        axes[0].legend()
        axes[1].hist(np.sin(x), bins=40)
        picture = io.BytesIO()
        figure.savefig(picture, format="png")
        plt.close(figure)
        return len(picture.getvalue())

    return work


def _picture() -> Any:
    import numpy as np
    from PIL import Image

    y, x = np.mgrid[0:3000, 0:4000]
    return Image.fromarray(np.stack([x % 256, y % 256, (x + y) % 256], axis=2).astype("u1"))


def _resize() -> Work:
    from PIL import Image

    picture = _picture()
    return lambda: sum(picture.resize((1000, 750), Image.Resampling.LANCZOS).getpixel((500, 300)))


def _jpeg() -> Work:
    from PIL import Image

    picture = _picture()

    def work() -> int:
        data = io.BytesIO()
        picture.save(data, "JPEG", quality=90)
        return len(Image.open(data).convert("L").tobytes())

    return work


KERNELS: dict[str, Callable[[], Work]] = {
    "numpy: matmul 300": lambda: _matmul(300, "f8"),
    "numpy: matmul 1000": lambda: _matmul(1000, "f8"),
    "numpy: matmul 1000, float32": lambda: _matmul(1000, "f4"),
    "numpy: solve 300": lambda: _linalg("solve", 300),
    "numpy: svd 300": lambda: _linalg("svd", 300),
    "numpy: exp of 1e6": lambda: _ufunc("exp"),
    "numpy: log of 1e6": lambda: _ufunc("log"),
    "numpy: sin of 1e6": lambda: _ufunc("sin"),
    "numpy: exp of 1e6, float32": lambda: _ufunc("exp", "f4"),
    "numpy: arithmetic on 1e6": _arithmetic,
    "numpy: sum of 1e6, 10 times": _sum,
    "numpy: sort 1e6 float64": lambda: _sort("sort", "f8"),
    "numpy: sort 1e6 int64": lambda: _sort("sort", "i8"),
    "numpy: sort 1e6 int32": lambda: _sort("sort", "i4"),
    "numpy: argsort 1e6 float64": lambda: _sort("argsort", "f8"),
    "numpy: fft of 2^20": _fft,
    "pandas: read_csv of 50 MB": _read_csv,
    "pandas: to_csv of 100,000 rows": _to_csv,
    "pandas: groupby integers, sum": lambda: _group("group", "sum"),
    "pandas: groupby strings, mean": lambda: _group("name", "mean"),
    "pandas: merge": _merge,
    "pandas: sort_values": _sort_values,
    "pandas: string operations": _strings,
    "scipy: eigh 300": _eigenvalues,
    "scipy: spsolve, 10,000 unknowns": _sparse_solve,
    "scipy: minimize, BFGS, 50 variables": _minimise,
    "scikit-learn: LogisticRegression of 50,000 x 20": _logistic_regression,
    "scikit-learn: RandomForest of 5,000 x 20, 50 trees": _random_forest,
    "matplotlib: plot to PNG": _plot,
    "Pillow: resize 4000 x 3000 to 1000 x 750": _resize,
    "Pillow: 4000 x 3000 to JPEG and back": _jpeg,
}


def main(name: str) -> None:
    """Measure one kernel."""
    work = KERNELS[name]()
    result = work()
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    print(f"{min(seconds):.9f} {result:.7g}")


if __name__ == "__main__":
    main(sys.argv[1])
