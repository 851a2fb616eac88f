"""What Python programs do all day, for the profile of the interpreter.

Each function is one kind of work, and takes about as long as the others. Only the standard
library is used. Rule: no function is one of `bench/python_kernels.py`, which measures the result.
"""

# Programs have such forms.
# ruff: noqa: B905, C417, UP028, UP031, UP032, UP033

from __future__ import annotations

import base64
import bisect
import collections
import contextlib
import csv
import dataclasses
import datetime
import decimal
import enum
import functools
import hashlib
import heapq
import io
import itertools
import json
import pickle
import random
import re
import sqlite3
import statistics
import string
import struct
import sys
import textwrap
import time
import zlib
from collections.abc import Callable, Iterator

RANDOM = random.Random(7)
WORDS = [
    "".join(RANDOM.choices(string.ascii_lowercase, k=RANDOM.randint(2, 9))) for _ in range(3000)
]
TEXT = " ".join(RANDOM.choices(WORDS, k=40_000))


def primes() -> int:
    sieve = bytearray([1]) * 150_000
    for i in range(2, 388):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(range(i * i, 150_000, i)))
    total = 0
    for n in range(30_000):
        k = 2
        while k * k <= n:
            if n % k == 0:
                break
            k += 1
        else:
            total += n
    return total + sum(sieve)


def collatz() -> int:
    best = 0
    for start in range(1, 6000):
        n, steps = start, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        best = max(best, steps)
    return best


def bits() -> int:
    value, seen = 0x12345, 0
    for _ in range(200_000):
        value ^= (value << 13) & 0xFFFFFFFF
        value ^= value >> 17
        value ^= (value << 5) & 0xFFFFFFFF
        seen |= 1 << (value & 31)
        if value & 0x80 or not value | 1:
            seen -= 0
    return seen


def mandelbrot() -> int:
    inside = 0
    for y in range(60):
        for x in range(60):
            cr, ci = x / 30 - 1.5, y / 30 - 1.0
            zr = zi = 0.0
            for _ in range(40):
                zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
                if zr * zr + zi * zi > 4.0:
                    break
            else:
                inside += 1
    return inside


def matrices() -> float:
    n = 50
    a = [[float(i * j % 7) for j in range(n)] for i in range(n)]
    b = [[float(i + j) for j in range(n)] for i in range(n)]
    c = [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]
    for i in range(n):
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += a[i][k] * b[k][j]
            c[i][j] -= total / 2
    return float(c[3][4])


@dataclasses.dataclass
class Point:
    x: float
    y: float
    name: str = "point"

    def moved(self, dx: float, dy: float) -> Point:
        return Point(self.x + dx, self.y + dy)

    @property
    def length(self) -> float:
        return float((self.x**2 + self.y**2) ** 0.5)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.x == other.x and self.y == other.y


class Shape:
    scale = 2
    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def area(self) -> int:
        return self.size * self.scale

    @staticmethod
    def zero() -> int:
        return 0

    @classmethod
    def unit(cls) -> Shape:
        return cls(1)


class Square(Shape):
    __slots__ = ()

    def area(self) -> int:
        return super().area() * self.size


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


def classes() -> float:
    total = 0.0
    points = [Point(float(i), 1.0) for i in range(2000)]
    for _ in range(5):
        points = [point.moved(0.5, -0.5) for point in points]
        total += sum(point.length for point in points if point.name and point != points[0])
    shapes: list[Shape] = [Square(i) if i % 3 else Shape(i) for i in range(8000)]
    for shape in shapes:
        total += shape.area() + Shape.zero() + Square.unit().size
        if getattr(shape, "missing", None) is None and hasattr(shape, "size"):
            shape.size += 1
    return total + sum(1 for _ in range(3000) if Colour(1) is Colour.RED)


class Node:
    def __init__(self, key: int) -> None:
        self.key = key
        self.left: Node | None = None
        self.right: Node | None = None

    def insert(self, key: int) -> None:
        if key < self.key:
            if self.left is None:
                self.left = Node(key)
            else:
                self.left.insert(key)
        elif self.right is None:
            self.right = Node(key)
        else:
            self.right.insert(key)

    def __iter__(self) -> Iterator[int]:
        if self.left:
            yield from self.left
        yield self.key
        if self.right:
            yield from self.right


def trees() -> int:
    root = Node(5000)
    for _ in range(6000):
        root.insert(RANDOM.randrange(10_000))
    return sum(root)


def recursion() -> int:
    @functools.lru_cache(maxsize=None)
    def ways(n: int, k: int) -> int:
        if n == 0:
            return 1
        return sum(ways(n - part, part) for part in range(1, min(n, k) + 1))

    def hanoi(n: int, a: str, b: str, c: str) -> int:
        return 0 if n == 0 else hanoi(n - 1, a, c, b) + 1 + hanoi(n - 1, c, b, a)

    def solve(row: int, columns: int, left: int, right: int) -> int:
        if row == 7:
            return 1
        found = 0
        for column in range(7):
            bit = 1 << column
            if not (columns & bit or left & (bit << row) or right & (bit << (6 - row + 0))):
                found += solve(row + 1, columns | bit, left | bit << row, right)
        return found

    def ackermann(m: int, n: int) -> int:
        if m == 0:
            return n + 1
        if n == 0:
            return ackermann(m - 1, 1)
        return ackermann(m - 1, ackermann(m, n - 1))

    return ways(40, 40) + hanoi(13, "a", "b", "c") + ackermann(2, 40) + solve(3, 0, 0, 0)


def generators() -> int:
    def numbers(limit: int) -> Iterator[int]:
        n = 0
        while n < limit:
            sent = yield n
            n += 1 if sent is None else sent

    def pairs() -> Iterator[tuple[int, int]]:
        for a, b in zip(numbers(15_000), itertools.cycle((1, 2, 3))):
            yield a, b

    total = sum(a * b for a, b in pairs())
    total += sum(itertools.islice(itertools.accumulate(numbers(20_000)), 10_000))
    total += len(list(itertools.chain.from_iterable([i, i] for i in range(5000))))
    total += sum(map(lambda x: x + 1, filter(lambda x: x % 3, range(15_000))))
    total += sum(len(list(group)) for _, group in itertools.groupby(range(9000), lambda n: n // 7))
    return total


async def _answer(n: int) -> int:
    return n + 1


async def _chain(n: int) -> int:
    total = 0
    for i in range(n):
        total += await _answer(i)
    return total


def coroutines() -> int:
    try:
        _chain(20_000).send(None)
    except StopIteration as stop:
        return int(stop.value)
    return 0


def exceptions() -> int:
    caught, empty = 0, dict[int, int]()
    for i in range(10_000):
        try:
            if i % 2:
                raise ValueError(i)
            caught += [1, 2, 3][i % 5]
        except (ValueError, IndexError) as error:
            caught += len(error.args)
        finally:
            caught += 1
        with contextlib.suppress(KeyError):
            empty[i]
    return caught


def dictionaries() -> int:
    count: dict[str, int] = {}
    for word in TEXT.split():
        if word in count:
            count[word] += 1
        else:
            count[word] = 1
    groups: dict[int, list[str]] = collections.defaultdict(list)
    for word in WORDS:
        groups[len(word)].append(word)
    merged: dict[object, int] = {**{k: len(v) for k, v in groups.items()}, "x": 1}
    common = collections.Counter(TEXT.split()).most_common(10)
    inverse = {value: key for key, value in count.items()}
    for key in list(inverse):
        if key % 2:
            del inverse[key]
    total = 0
    for i in range(40_000):
        merged[i % 300] = merged.get(i % 300, 0) + i
        total += merged[i % 300] & 1
    seen = set()
    for word in WORDS:
        seen.add(word[:2])
    tuples = {(i % 40, i % 17): i for i in range(20_000)}
    for i in range(20_000):
        total += tuples[i % 40, i % 17]
    return total + len(seen & set(count)) + len(seen | {"a"}) + len(common) + len(inverse)


def lists() -> int:
    stack: list[int] = []
    for i in range(60_000):
        stack.append(i)
        if i % 3 == 0:
            stack.pop()
    queue = collections.deque(range(100))
    for i in range(30_000):
        queue.append(queue.popleft() + i)
    heap: list[tuple[int, int]] = []
    for i in range(6000):
        heapq.heappush(heap, (i * 7919 % 5003, i))
    while heap:
        stack.append(heapq.heappop(heap)[1])
    table = [[0] * 30 for _ in range(30)]
    for i in range(30):
        for j in range(30):
            for step in range(-1, 2):
                if 0 <= i + step < 30 and 0 <= j - step < 30:
                    table[i + step][j - step] += 1
    first, *rest = stack
    rest.reverse()
    rest[10:20] = [1, 2, 3]
    total = first + len(rest) + sum(row[3] for row in table) + (5 in rest) + rest.index(3)
    ordered: list[int] = []
    for i in range(2000):
        bisect.insort(ordered, i * 31 % 1777)
    any(x > 10_000_000 for x in stack)
    all(x >= 0 for x in stack)
    return total + ordered[5] + max(stack) + min(stack)


def sorting() -> int:
    numbers = [RANDOM.random() for _ in range(20_000)]
    words = TEXT.split()
    return (
        int(sorted(numbers)[5])
        + len(sorted(words)[7])
        + len(sorted(words, key=len, reverse=True)[0])
        + len(sorted(words, key=lambda word: (len(word), word))[3])
        + sorted(range(20_000), key=lambda n: -n)[0]
    )


def words() -> int:
    total = 0
    lines = textwrap.wrap(TEXT[:60_000], 70)
    for number, line in enumerate(lines):
        fields = line.split(" ")
        if line.startswith("a") or line.endswith("b") or "xy" in line:
            total += line.find("z") + len(line.strip().title())
        total += len(f"{number:>5} {len(line):04d} {fields[0]!r} {number / 3:.2f}")
        total += len("%s=%d" % (fields[-1], number)) + len("{}:{}".format(number, line))
        total += len("-".join(reversed(fields))) + line.count("e") + (line < "m")
        total += len(line.encode()) + len(line.partition(" ")[2]) + len(line.center(80, "*"))
    for character in TEXT[:60_000]:
        if character.isalpha() and character not in "aeiou":
            total += ord(character)
    result = ""
    for i in range(20_000):
        result += chr(97 + i % 26)
    upper = TEXT.upper().lower().replace("the", "a").translate({97: "4", 98: None})
    for i in range(30_000):
        total += int(str(i)) + (upper[i % 1000] == "e")
    return total + len(result[::-1]) + len("".join(c for c in result if c > "c"))


def unicode_text() -> int:
    text = "".join(chr(233 + i % 500) for i in range(5000)) + "日本語" * 1000
    encoded = text.encode()
    return (
        len(encoded.decode()) + len(text.split("é")) + text.count("本") + len(text.encode("utf-16"))
    )


def expressions() -> int:
    found = len(re.findall(r"\b[aeiou]\w+ing\b|\w+tion", TEXT))
    found += len(re.sub(r"(\w)(\w+)", r"\2\1", TEXT[:50_000]))
    found += sum(1 for _ in re.finditer(r"[a-m]{3,5}(?=[n-z])", TEXT))
    pattern = re.compile(r"^(?P<key>\w+)\s*=\s*(?P<value>.*?)\s*(?:#.*)?$")
    for i in range(3000):
        match = pattern.match(f"key{i} = value {i} # comment")
        if match:
            found += len(match["key"]) + len(match.group("value"))
    found += len(re.split(r"[ e]+", TEXT[:50_000]))
    return found + bool(re.search(r"qqz x+$", TEXT, re.IGNORECASE))


def serialised() -> int:
    data = {
        "users": [
            {"id": i, "name": WORDS[i % 3000], "tags": WORDS[i % 50 : i % 50 + 3], "x": i * 1.5}
            for i in range(1500)
        ],
        "flags": [True, False, None] * 500,
        "text": 'naïve "quotes" \n' * 200,
    }
    text = json.dumps(data)
    back = json.loads(text)
    pretty = json.dumps(back, indent=2, sort_keys=True, ensure_ascii=False)
    packed = pickle.dumps(back)
    copies = pickle.loads(packed)
    points = pickle.loads(pickle.dumps([Point(1.0, i) for i in range(500)]))
    output = io.StringIO()
    writer = csv.writer(output)
    for user in copies["users"]:
        writer.writerow([user["id"], user["name"], user["x"]])
    rows = list(csv.DictReader(io.StringIO(output.getvalue()), ["id", "name", "x"]))
    fields = b"".join(struct.pack("<IHd", i, i % 100, i / 3) for i in range(3000))
    numbers = sum(struct.unpack_from("<IHd", fields, i * 14)[0] for i in range(3000))
    coded = base64.b64encode(zlib.compress(text.encode()))
    size = len(zlib.decompress(base64.b64decode(coded))) + len(hashlib.sha256(coded).digest())
    return int(size + len(pretty) + len(points) + len(rows) + numbers + hash(str(copies)) % 2)


def files() -> int:
    name = "train.tmp"
    with open(name, "w", encoding="utf-8") as file:
        for i in range(8000):
            file.write(f"{i}\t{WORDS[i % 3000]}\t{i * 0.25}\n")
    total = 0.0
    with open(name, encoding="utf-8") as file:
        for line in file:
            number, word, value = line.rstrip("\n").split("\t")
            total += int(number) + float(value) + len(word)
    with open(name, "rb") as binary:
        total += binary.read().count(b"\n")
    return int(total)


def databases() -> int:
    db = sqlite3.connect(":memory:")
    db.execute("create table people(id integer primary key, name text, age int, city text)")
    db.executemany(
        "insert into people(name, age, city) values(?, ?, ?)",
        ((word, i % 90, WORDS[i % 20]) for i, word in enumerate(WORDS * 2)),
    )
    db.execute("create index cities on people(city, age)")
    total = 0
    for i in range(90):
        rows = db.execute("select id, name from people where age = ? order by name", (i,))
        for identifier, name in rows.fetchall():
            total += identifier + len(name)
    for _, n, mean in db.execute(
        "select city, count(*), avg(age) from people group by city having count(*) > 3"
    ):
        total += n + int(mean)
    db.execute("update people set age = age + 1 where city like 'a%'")
    joined = db.execute(
        "select count(*), max(b.name) from people a join people b on b.id = a.age + 100"
    ).fetchone()
    return total + int(joined[0])


def numbers() -> int:
    big, total = 3**400, 0
    for i in range(1, 1500):
        big = big * (i | 1) % (10**130 + 7)
        total += big & 0xFF
    total += len(str(2**3000)) + pow(3, 1 << 200, 10**40 + 1) % 10
    with decimal.localcontext(prec=40):
        value = decimal.Decimal(2).sqrt()
        for _ in range(500):
            value = (value + 2 / value) / 2
    mean = statistics.fmean(float(i) for i in range(5000))
    day = datetime.datetime(2024, 1, 1)
    for i in range(2000):
        total += (day + datetime.timedelta(hours=i)).weekday()
        total += len(day.strftime("%Y-%m-%d")) if i % 10 == 0 else 0
    for i in range(30_000):
        total += round(abs(-i) / 7) + divmod(i, 7)[1] + (i if i > 5 else -i) + int(i * 1.5)
    return total + int(value) + int(mean)


def varied_calls() -> int:
    def keywords(a: int, *rest: int, b: int = 2, **others: int) -> int:
        return a + b + len(rest) + len(others)

    def defaults(a: int, b: int = 1, c: int = 2) -> int:
        return a + b + c

    def counter() -> Callable[[], int]:
        value = 0

        def step() -> int:
            nonlocal value
            value += 1
            return value

        return step

    @functools.wraps(defaults)
    def wrapped(*args: int, **options: int) -> int:
        return defaults(*args, **options)

    total, step = 0, counter()
    partial = functools.partial(defaults, 1, c=5)
    for i in range(12_000):
        total += keywords(i, 1, 2, b=3, z=4) + defaults(i) + defaults(i, c=3) + wrapped(i, b=2)
        total += step() + partial(i) + len((i, i)) + isinstance(i, int) + min(i, 5) + max(1, i)
        match i % 4:
            case 0:
                total += 1
            case 1 | 2:
                total -= 1
            case _:
                total += 2
    return total


def compiling() -> int:
    source = "\n".join(
        f"def f{i}(a, b={i}):\n    '''text'''\n    for x in range(a):\n        if x > b and a:\n"
        f"            return [y * {i} for y in (a, b, x)]\n    return {{'k': a, **{{}}}}\n"
        for i in range(60)
    )
    space: dict[str, object] = {}
    exec(compile(source, "train", "exec"), space)
    return len(space)


WORK = [
    primes, collatz, bits, mandelbrot, matrices, classes, trees, recursion, generators, coroutines,
    exceptions, dictionaries, lists, sorting, words, unicode_text, expressions, serialised, files,
    databases, numbers, varied_calls, compiling,
]  # fmt: skip

if __name__ == "__main__":
    for work in WORK:
        began = time.process_time()
        work()
        if len(sys.argv) > 1:
            print(f"{work.__name__:14} {time.process_time() - began:.3f}")
