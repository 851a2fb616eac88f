#| packages: numpy
import numpy as np

x = np.arange(10, 1, -1)
print(x[np.array([3, 3, 1, 8])], x[[1, -1]], np.take(x, [0, 2]))
y = np.arange(35).reshape(5, 7)
print(y[np.array([0, 2, 4]), np.array([0, 1, 2])], y[y > 20], y[1:5:2, ::3])
print(np.where(y % 5 == 0, y, -y)[0], np.argwhere(y > 30).tolist(), np.nonzero(y > 32))
grid = np.ix_([0, 2], [1, 3])
print(y[grid], np.meshgrid([1, 2], [3, 4]), np.indices((2, 2)).tolist())
print(np.newaxis is None, x[:, None].shape, y[..., 0], np.squeeze(y[None]).shape)
a = np.array([[0, 10, 20, 30]]).T + np.array([0, 1, 2])
print(a, np.broadcast_shapes((3, 1), (1, 4)), np.broadcast_to([1, 2], (2, 2)))
z = np.zeros(5, int)
np.add.at(z, [0, 0, 3], 1)
print(
    z,
    np.put_along_axis(y.copy(), np.array([[0]]), 7, 1),
    np.select([x < 4, x > 8], [x, x * 10], -1),
)
for bad in (
    lambda: y[5],
    lambda: y[0, 0, 0],
    lambda: np.ones(3) + np.ones(4),
    lambda: np.array([1, 2]).reshape(3),
):
    try:
        bad()
    except (IndexError, ValueError) as error:
        print(type(error).__name__, error)
