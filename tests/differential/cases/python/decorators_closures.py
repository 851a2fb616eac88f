"""Decorators, closures, keyword-only arguments, walrus, star expressions, lambdas, scopes."""

import functools
import time


def retry(times, *, on=Exception):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            for attempt in range(1, times + 1):
                try:
                    return function(*args, **kwargs)
                except on as error:
                    print(f"attempt {attempt}: {error}")
            raise RuntimeError("gave up")

        wrapper.attempts = times
        return wrapper

    return decorate


calls = iter([ValueError("a"), ValueError("b"), "fine"])


@retry(3, on=ValueError)
def flaky(x, /, y, *, z=0):
    """Does things."""
    result = next(calls)
    if isinstance(result, Exception):
        raise result
    return result, x, y, z


print(flaky(1, y=2, z=3), flaky.__name__, flaky.__doc__, flaky.attempts)
for bad in (lambda: flaky.__wrapped__(x=1, y=2), lambda: flaky.__wrapped__(1, 2, 3), lambda: flaky.__wrapped__()):
    try:
        bad()
    except TypeError as error:
        print(error)


def counters():
    counts = [0, 0]
    total = 0

    def bump(i):
        nonlocal total
        counts[i] += 1
        total += 1
        return counts, total

    return bump


bump = counters()
bump(0)
print(bump(1), [f() for f in [lambda i=i: i * i for i in range(4)]])
first, *middle, last = range(6)
print(first, middle, last, {**{"a": 1}, "b": 2}, [*"ab", *range(2)], (lambda *a, **k: (a, k))(1, b=2))
if (n := len("walrus")) > 5:
    print(n, f"{n=}", f"{'nested ' + f'{n:>3}'!r}", rf"\{n}")


class Timer:
    def __enter__(self):
        self.start = time.perf_counter()
        return self

    def __exit__(self, *exc):
        self.elapsed = time.perf_counter() - self.start
        return exc[0] is KeyError


with Timer() as timer:
    {}["x"]
print(timer.elapsed >= 0, functools.singledispatch(lambda x: "any")("x"))
