"""Generators, itertools, functools, operator: pipelines of data."""

import functools
import itertools as it
import operator
from collections import ChainMap, OrderedDict, deque, namedtuple


def primes():
    composites: dict[int, list[int]] = {}
    for n in it.count(2):
        if n not in composites:
            yield n
            composites[n * n] = [n]
        else:
            for p in composites.pop(n):
                composites.setdefault(n + p, []).append(p)


def running():
    total = 0
    while True:
        total += yield total


print(list(it.islice(primes(), 15)), sum(it.takewhile(lambda p: p < 2000, primes())))
average = running()
next(average)
print([average.send(x) for x in (1, 5, 10)])
print(list(it.accumulate([1, 2, 3, 4], operator.mul)), list(it.pairwise("abcd")), list(it.batched("abcdefg", 3)))
print([(k, len(list(g))) for k, g in it.groupby("aaabbc")], list(it.product("ab", repeat=2))[:3])
print(list(it.combinations("abc", 2)), list(it.permutations([1, 2, 3], 2))[:3], list(it.zip_longest("ab", "xyz", fillvalue="-")))
print(functools.reduce(operator.add, [[1], [2, 3]]), sorted("bAc", key=functools.cmp_to_key(lambda a, b: ord(a) - ord(b))))


@functools.lru_cache(maxsize=None)
def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(fib(100), fib.cache_info(), functools.partial(int, base=2)("1011"))
Point = namedtuple("Point", "x y", defaults=[0])
print(Point(1)._replace(y=5), deque([1, 2, 3], maxlen=2), ChainMap({"a": 1}, {"a": 2, "b": 3})["b"], OrderedDict(a=1))
print([*map(operator.itemgetter(1), [(1, "b"), (2, "a")])], any(x > 3 for x in range(5)), {x: x * x for x in range(3)})
