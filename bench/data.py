"""The input of the measured programs: the same on both sides and in every run.

Rules: content comes from seeded generators only; large content is made once and kept for the
other side.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache

LOG_LINES = 400_000
RECORDS = 50_000
SOURCE_FILES = 2_000
COMMITS = 1_000

_NAMES = ("alice", "bob", "carol", "dave", "eve", "frank", "grace", "heidi", "ivan", "judy")
_CITIES = ("Athens", "Berlin", "Cairo", "Delhi", "Essen", "Faro", "Genoa", "Hanoi", "Izmir", "Jena")
_WORDS = (
    *("buffer", "index", "length", "offset", "return", "static", "struct", "while", "count"),
    *("value", "next", "table", "node", "entry", "parse", "write", "read", "flush", "handle"),
    *("error", "result", "context", "state", "queue", "token", "string", "size", "limit"),
)


@cache
def log() -> bytes:
    """A web server's log, about 110 bytes a line."""
    numbers = random.Random(3)
    lines = []
    for index in range(LOG_LINES):
        second = index // 5
        verb = "POST" if numbers.random() < 0.2 else "GET"
        status = numbers.choice((200, 200, 200, 200, 301, 404, 500, 503))
        lines.append(
            f"2024-03-{1 + second // 86400:02}T{second // 3600 % 24:02}:{second // 60 % 60:02}:"
            f"{second % 60:02}Z host{numbers.randrange(20):02} app[{numbers.randrange(30000)}]: "
            f"{verb} /api/v{numbers.randrange(1, 4)}/users/{numbers.randrange(100000)} "
            f"status={status} bytes={numbers.randrange(20000)} time={numbers.randrange(900)}ms "
            f"user={numbers.choice(_NAMES)}\n"
        )
    return "".join(lines).encode()


@cache
def records() -> bytes:
    """A JSON array of objects, about 150 bytes each."""
    numbers = random.Random(4)
    people = [
        {
            "id": index,
            "name": f"{numbers.choice(_NAMES)} {numbers.randrange(10000)}",
            "age": numbers.randrange(18, 80),
            "city": numbers.choice(_CITIES),
            "balance": round(numbers.uniform(-500, 5000), 2),
            "tags": numbers.sample(_WORDS, 3),
            "active": numbers.random() < 0.7,
        }
        for index in range(RECORDS)
    ]
    return json.dumps(people, indent=1).encode()


def rows() -> bytes:
    """The log's numbers as CSV: one row for every fourth line."""
    numbers = random.Random(5)
    lines = (
        f"{index},{numbers.choice(_NAMES)},{numbers.choice(_CITIES)},{numbers.randrange(10**6)},"
        f"{numbers.uniform(0, 100):.3f}\n"
        for index in range(100_000)
    )
    return ("id,name,city,amount,score\n" + "".join(lines)).encode()


def _source_file(index: int, revision: int = 0) -> str:
    numbers = random.Random(index * 1_000_003 + revision)
    lines = [f"/* file {index}, revision {revision} */\n"]
    for line in range(numbers.randrange(20, 160)):
        words = " ".join(numbers.choices(_WORDS, k=6))
        lines.append(f"    {words}({line}, {numbers.randrange(1000)});\n")
    return "".join(lines)


def _source_name(index: int) -> str:
    kind = ("c", "h", "md", "py")[index % 4]
    return f"src/part{index % 25:02}/module{index // 25 % 8}/file{index:04}.{kind}"


@cache
def sources() -> dict[str, bytes]:
    """The tree of a project: 2,000 files of 1 to 10 KB in 200 directories."""
    return {_source_name(index): _source_file(index).encode() for index in range(SOURCE_FILES)}


@cache
def history() -> bytes:
    """That tree as input of `git fast-import`: 1,000 commits with 3 changes each."""
    return "".join(_commits()).encode()


def _commits() -> Iterator[str]:
    yield from _commit(0, "Begin", {name: text.decode() for name, text in sources().items()})
    numbers = random.Random(6)
    for number in range(1, COMMITS):
        chosen = numbers.sample(range(SOURCE_FILES), 3)
        changes = {_source_name(index): _source_file(index, number) for index in chosen}
        yield from _commit(number, f"Change {number}: {numbers.choice(_WORDS)}", changes)


def _commit(number: int, message: str, changes: dict[str, str]) -> Iterator[str]:
    author = _NAMES[number % len(_NAMES)]
    yield "commit refs/heads/main\n"
    yield f"committer {author} <{author}@example.org> {1_700_000_000 + number * 3600} +0000\n"
    yield f"data {len(message)}\n{message}\n"
    for name, text in changes.items():
        yield f"M 100644 inline {name}\ndata {len(text)}\n{text}\n"
    yield "\n"
