"""Deep recursion ends with an exception, in Python and in C, and the program goes on."""

import json
import sys


def down(n):
    return down(n + 1)


class Loop:
    def __repr__(self):
        return repr(self)

    def __eq__(self, other):
        return self == other


nested = []
for _ in range(100_000):
    nested = [nested]
sys.setrecursionlimit(2000)
for act in (lambda: down(0), lambda: repr(Loop()), lambda: json.dumps(nested), lambda: sorted([Loop()] * 2, key=repr)):
    try:
        act()
    except RecursionError as error:
        print("RecursionError")
print(sum(range(10)))


def fine(n):
    return 0 if n == 0 else 1 + fine(n - 1)


print(fine(1500))
