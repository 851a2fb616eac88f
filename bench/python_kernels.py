"""Small programs that measure the interpreter: `python3 python_kernels.py NAME`.

They run inside the sandbox and natively, so they use only the standard library. Rule: each
kernel computes for some tenths of a second and prints a number that depends on all its work.
"""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import re
import sqlite3
import sys
import zlib
from collections.abc import Callable


def fib() -> int:
    """Function calls."""

    def compute(n: int) -> int:
        return n if n < 2 else compute(n - 1) + compute(n - 2)

    return compute(30)


def loop() -> int:
    """Integer arithmetic in a loop."""
    total = 0
    for i in range(6_000_000):
        total += i & 7
    return total


def nbody() -> float:
    """Floating point and lists."""
    bodies = [[float(i), i * 0.5, i * 0.25, 0.0, 0.1 * i, 0.0, 1.0 + i] for i in range(5)]
    for _ in range(30_000):
        for i, a in enumerate(bodies):
            for b in bodies[i + 1 :]:
                dx, dy, dz = a[0] - b[0], a[1] - b[1], a[2] - b[2]
                square = dx * dx + dy * dy + dz * dz + 0.01
                pull = 0.001 / (square * math.sqrt(square))
                for axis, d in enumerate((dx, dy, dz), 3):
                    a[axis] -= d * b[6] * pull
                    b[axis] += d * a[6] * pull
        for body in bodies:
            for axis in range(3):
                body[axis] += 0.001 * body[axis + 3]
    return round(sum(body[0] for body in bodies), 6)


class _Task:
    """A worker of `objects`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.work: list[int] = []
        self.done = 0

    def give(self, item: int) -> None:
        """Queue an item."""
        self.work.append(item)

    def step(self) -> int | None:
        """Work on one item."""
        if not self.work:
            return None
        self.done += 1
        return (self.work.pop() * 31 + self.number) % 65_521


def objects() -> int:
    """Objects that send each other work, as in the benchmark richards."""
    tasks = [_Task(number) for number in range(16)]
    for task in tasks:
        task.give(task.number)
    for _ in range(120_000):
        for task in tasks[:6]:
            item = task.step()
            if item is not None:
                tasks[item % 6].give(item)
    return sum(task.done for task in tasks)


def strings() -> int:
    """Building and splitting text."""
    parts = [f"{i}:{i * i:x}" for i in range(400_000)]
    text = ",".join(parts)
    words = [word.upper().replace("A", "aa").strip("0") for word in text.split(",")]
    return len("".join(words)) + text.count("f")


def containers() -> int:
    """Dictionaries, lists, sets and comprehensions."""
    counts: dict[int, int] = {}
    for i in range(1_200_000):
        key = i * 7919 % 5003
        counts[key] = counts.get(key, 0) + 1
    pairs = sorted((value, key) for key, value in counts.items())
    return len({a * b for a, b in pairs}) + sum(x for x in [i * 2 for i in range(300_000)] if x & 4)


def sort() -> int:
    """Sorting with and without a key."""
    numbers = _numbers(400_000)
    by_digits = sorted(numbers, key=lambda n: n % 1000)
    return sorted(numbers)[1000] + by_digits[-1]


def _numbers(count: int) -> list[int]:
    state, numbers = 12345, []
    for _ in range(count):
        state = (state * 1_103_515_245 + 12_345) & 0x7FFF_FFFF
        numbers.append(state)
    return numbers


def regex() -> int:
    """Searching text."""
    text = "".join(f"user{i}@host{i % 50}.example.org wrote {i} lines; " for i in range(40_000))
    mail = re.compile(r"([a-z]+\d+)@((?:\w+\.)+org)")
    return len(mail.findall(text)) + len(re.sub(r"\d{2,}", lambda m: m[0][::-1], text))


def json_both() -> int:
    """Writing and reading JSON."""
    rows = [
        {"id": i, "name": f"n{i}", "tags": ["a", "é"], "score": i / 7, "ok": None}
        for i in range(30_000)
    ]
    text = json.dumps(rows)
    return len(json.loads(text)) + len(json.dumps(rows, indent=1, sort_keys=True))


def pickles() -> int:
    """Pickling objects."""
    rows = [(i, str(i), {"k": [i, i + 1]}, float(i)) for i in range(60_000)]
    return len(pickle.loads(pickle.dumps(rows))) + len(pickle.dumps(rows, 2))


def sha256() -> str:
    """Hashing 128 MB."""
    digest = hashlib.sha256()
    block = bytes(range(256)) * 4096
    for _ in range(128):
        digest.update(block)
    return digest.hexdigest()


def compress() -> int:
    """Deflating and inflating 8 MB of text."""
    data = b"".join(b"%d lines of text, %d in all\n" % (i % 100, i) for i in range(250_000))
    packed = zlib.compress(data, 6)
    return len(zlib.decompress(packed)) + len(packed)


def database() -> int:
    """A table in memory: filling, an index, a join."""
    db = sqlite3.connect(":memory:")
    db.execute("create table t(a integer primary key, b, c text)")
    db.executemany("insert into t values(?, ?, ?)", ((i, i % 997, f"r{i}") for i in range(60_000)))
    db.execute("create index i on t(b)")
    query = "select sum(x.a + y.b), count(distinct x.c) from t x join t y on y.b = x.a % 997"
    (total, distinct) = db.execute(query + " where x.a < 9000").fetchone()
    return int(total) + int(distinct)


KERNELS: dict[str, Callable[[], object]] = {
    "fib": fib,
    "loop": loop,
    "nbody": nbody,
    "objects": objects,
    "strings": strings,
    "containers": containers,
    "sort": sort,
    "regex": regex,
    "json": json_both,
    "pickle": pickles,
    "sha256": sha256,
    "zlib": compress,
    "sqlite": database,
}

if __name__ == "__main__":
    print(KERNELS[sys.argv[1]]())
