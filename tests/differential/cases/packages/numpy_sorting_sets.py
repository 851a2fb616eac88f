#| packages: numpy
import numpy as np

rng = np.random.default_rng(3)
for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint32, np.float32, np.float64):
    a = (rng.random(3000) * 100).astype(dtype)
    s = np.sort(a)
    print(
        np.dtype(dtype).name,
        s[:3],
        s[-2:],
        bool((s[1:] >= s[:-1]).all()),
        np.argsort(a, kind="stable")[:4],
    )
b = rng.integers(0, 20, (4, 6))
print(np.sort(b, axis=0), np.argsort(b, axis=1, kind="stable"), np.lexsort((b[0], b[1])))
print(
    np.partition(b.ravel(), 5)[5],
    np.argpartition(b.ravel(), 3)[:3].size,
    np.searchsorted([1, 3, 5], [0, 3, 6]),
)
print(
    [part.tolist() for part in np.unique(b, return_counts=True)],
    np.union1d([1, 2], [2, 3]),
    np.intersect1d([1, 2, 3], [2, 3, 4]),
)
print(
    np.setdiff1d([1, 2, 3], [2]),
    np.isin([1, 5], [5, 6]),
    np.bincount([0, 1, 1, 3]),
    np.digitize([0.5, 2.5], [0, 1, 2]),
)
print(
    np.histogram(rng.random(100), 5),
    np.histogram2d([1, 2, 2], [1, 1, 2], 2)[0],
    np.argmax(b, axis=1),
    np.ptp(b),
)
nan = np.array([3, np.nan, 1])
print(
    np.sort(nan),
    np.nanargmax(nan),
    np.flip([1, 2, 3]),
    np.roll(np.arange(5), 2),
    np.rot90([[1, 2], [3, 4]]),
)
print(
    np.sort(np.array(["pear", "apple", "fig"])),
    np.sort(np.array(["2024-02", "2023-01"], "datetime64[M]")),
)
