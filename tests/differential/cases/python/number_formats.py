"""Numbers: floats as they print, decimals, fractions, integers of any size, formatting."""

import math
import statistics
from decimal import ROUND_HALF_UP, Decimal, getcontext
from fractions import Fraction

print(0.1 + 0.2, 1e16, 1e-5, 123456789.123456789, float("inf"), -0.0, 5e-324, 2**0.5)
print(f"{1234567.891:,.2f} {0.000012345:.3e} {255:#x} {255:08b} {0.5:.0%} {42:+d} {1e20:g} {math.pi:.15f}")
print(2**200, -(7 // 2), -7 // 2, -7 % 3, divmod(-7, 2), pow(3, 1000, 1007), int("ff", 16), (255).bit_length())
print(round(2.5), round(3.5), round(2.675, 2), round(-1.5), round(1234, -2))
getcontext().prec = 40
print(Decimal(2).sqrt(), Decimal("1.005").quantize(Decimal("0.01"), ROUND_HALF_UP), Decimal(0.1))
print(Fraction(1, 3) + Fraction("0.25"), Fraction(0.75), Fraction(355, 113).limit_denominator(50))
print(math.factorial(30), math.comb(50, 25), math.gcd(84, 36, 120), math.isqrt(10**20 + 1), math.hypot(3, 4))
print(math.sin(1), math.exp(1.5), math.log(10), math.atan(0.3), math.gamma(4.5), math.erf(0.5), math.fsum([0.1] * 10))
print(statistics.mean([1, 2, 3, 4]), statistics.stdev([2, 4, 4, 4, 5, 5, 7, 9]), statistics.median([3, 1, 2]))
print(complex(1, 2) * 3j, abs(3 + 4j), (1 + 2j).conjugate(), float.fromhex("0x1.8p3"), (0.1).hex(), (0.1).as_integer_ratio())
for bad in ("1 / 0", "math.sqrt(-1)", "int('12x')", "10.0 ** 400", "float('abc')"):
    try:
        print(eval(bad))
    except Exception as error:
        print(type(error).__name__, error)
