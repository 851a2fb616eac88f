"""A program that waits, described so that another process can go on with it.

Owns `DormantProgram`, all that a program needs besides its memory, and the comparison of memories.
Rules: the description may come from a file that a guest has written. So an engine checks each part
of it before it uses it: names, sizes, addresses. What the memory contains is the guest's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

WASM_PAGE: Final = 65536
PAGE: Final = 4096
"""The unit in which memories are compared."""
RUN_MAX: Final = 1 << 20
"""Most bytes of one piece of memory. A multiple of `PAGE`."""
_ZEROS: Final = bytes(PAGE)


@dataclass(frozen=True, slots=True)
class DormantFork:
    """A copy that a fork has made and that has not run yet."""

    buffer: int
    """The address of its Asyncify buffer."""
    result: int
    """What fork returns in it."""


@dataclass(frozen=True, slots=True)
class DormantProgram:
    """A program that waits, without the content of its memory."""

    module_key: str
    entry: str
    """The exported function that runs it."""
    memory_size: int
    variables: Mapping[str, int] = field(default_factory=dict)
    """The values of exported mutable i32 globals, unsigned."""
    fork: DormantFork | None = None
    """None for a program with an empty stack."""


def differing_runs(
    memory: memoryview, base: memoryview, ranges: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, bytes]]:
    """The parts of `memory` within `ranges` that differ from `base`, in whole pages, as address and
    content. Beyond its end, `base` counts as zeros."""
    last = 0
    for start, end in ranges:
        begin = None
        for page in range(max(last, start - start % PAGE), end, PAGE):
            last = page + PAGE
            here = memory[page : page + PAGE]
            there = base[page : page + PAGE] if page < len(base) else _ZEROS
            same = here == there
            if begin is not None and (same or page - begin >= RUN_MAX):
                yield begin, bytes(memory[begin:page])
                begin = None
            if not same and begin is None:
                begin = page
        if begin is not None:
            yield begin, bytes(memory[begin:last])
