#| packages: numpy
import numpy as np

x = np.linspace(-3, 3, 13)
with np.errstate(all="ignore"):
    for f in (
        np.sin,
        np.cos,
        np.tan,
        np.exp,
        np.expm1,
        np.log1p,
        np.tanh,
        np.arctan,
        np.cbrt,
        np.sinh,
        np.floor,
        np.ceil,
        np.rint,
        np.sign,
        np.square,
    ):
        print(f.__name__, f(x).round(10))
    print(
        np.sqrt(np.array([4.0, -1.0])),
        np.log(np.array([0.0, 1.0])),
        np.divide(1.0, np.array([0.0, 2.0])),
    )
print(
    np.add.reduce([1, 2, 3]), np.multiply.accumulate([1, 2, 3, 4]), np.add.outer([1, 2], [10, 20])
)
print(np.maximum([1, np.nan, 3], 2), np.fmax([1, np.nan], 2), np.hypot(3, 4), np.arctan2(1, -1))
print(np.clip(x, -1, 1)[:5], np.percentile(x, [10, 50, 90]), np.median(x), np.quantile(x, 0.3))
print(
    np.bitwise_and(12, 10),
    np.left_shift(1, 5),
    np.invert(np.uint8(5)),
    np.gcd(12, 18),
    np.lcm(4, 6),
)
print(
    np.isclose(0.1 + 0.2, 0.3),
    np.allclose([1e10, 1e-7], [1.00001e10, 1e-8]),
    np.array_equal([1], [1]),
)
print(
    np.float32(1) / np.float32(3),
    np.int32(7) // 2,
    np.int8(100) + np.array([27], np.int8),
    7 % np.array([-3, 3]),
)
print(np.nansum([1, np.nan, 2]), np.nanmean([1, np.nan, 3]), np.isfinite([1, np.inf, np.nan]))
print(np.float64(2**53) + 1, np.modf(3.75), np.frexp(10.0), np.ldexp(0.5, 3), np.nextafter(1, 2))
print(
    np.sort(np.array([3 + 1j, 1, 2 - 1j])),
    np.exp(1j * np.pi).round(12),
    np.angle(1 + 1j),
    np.conj(2 + 3j),
)
print(np.vectorize(lambda a, b: a + b)([1, 2], [3, 4]), np.frompyfunc(str, 1, 1)(np.arange(3)))
