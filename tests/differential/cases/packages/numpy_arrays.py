#| packages: numpy
import numpy as np

a = np.arange(15, dtype=np.int64).reshape(3, 5)
print(a, a.shape, a.ndim, a.dtype.name, a.size, type(a).__name__)
print(np.array([(1.5, 2, 3), (4, 5, 6)]), np.zeros((2, 3)), np.ones((2, 2), dtype=np.int16))
print(np.linspace(0, 2, 9), np.logspace(0, 3, 4), np.geomspace(1, 256, 9))
b = np.array([20, 30, 40, 50])
print(b - np.arange(4), b**2, 10 * np.sin(b), b < 35)
print(np.full((2, 2), np.e), np.eye(3, k=1), np.diag([1, 2, 3]))
print(a.sum(axis=0), a.min(axis=1), a.cumsum(axis=1), a.mean(), a.std(), a.var(ddof=1))
print(a[2, 3], a[:, 1], a[1:3, ::2], a[-1], a[a % 2 == 0])
print(np.vstack([a, a]).shape, np.hstack([a, a]).shape, np.concatenate([b, b]), np.split(b, 2))
print(a.T, a.ravel(order="F"), np.tile([1, 2], (2, 2)), np.repeat([1, 2], 3))
c = a.view()
c[0, 0] = 99
print(a[0, 0], c.base is a or c.base is a.base, a.copy().base is None)
print(np.array2string(np.array([1e-10, 1.5, 1e10])), repr(np.float32(0.1)), np.array([True, False]))
print(np.iinfo(np.int64).max, np.finfo(np.float64).eps, np.dtype(np.int64).itemsize)
