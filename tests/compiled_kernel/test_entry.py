"""What the library of the compiled kernel has in C checks what it is given.

`tests/engine` and `tests/abi` use the rest of it; `make compiled-test` runs them with the library.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wasmsand.abi.linux.table import HANDLERS
from wasmsand.engine.compiled import COMPILED

pytestmark = pytest.mark.skipif(COMPILED is None, reason="the sources of the kernel run")
HUGE = 2**80


@pytest.fixture
def memory() -> memoryview:
    return memoryview(bytearray(b"one\0two\0three"))


@pytest.mark.parametrize(
    ("address", "length", "content"),
    [(0, 3, b"one"), (4, 0, b""), (8, 5, b"three"), (13, 0, b"")],
)
def test_bytes_are_read(memory: memoryview, address: int, length: int, content: bytes) -> None:
    assert COMPILED.read(memory, address, length) == content


@pytest.mark.parametrize(
    ("address", "length"), [(0, 14), (13, 1), (14, 0), (-1, 1), (0, -1), (2**62, 2**62)]
)
def test_nothing_outside_is_read_or_written(memory: memoryview, address: int, length: int) -> None:
    before = bytes(memory)
    with pytest.raises(IndexError):
        COMPILED.read(memory, address, length)
    if 0 <= length < 100:
        with pytest.raises(IndexError):
            COMPILED.write(memory, address, bytes(length))
    assert bytes(memory) == before


@pytest.mark.parametrize("name", ["read", "read_string"])
def test_numbers_beyond_the_machine_are_refused(memory: memoryview, name: str) -> None:
    for given in ((HUGE, 1), (0, HUGE), (-HUGE, 1)):
        with pytest.raises(OverflowError):
            getattr(COMPILED, name)(memory, *given)
    with pytest.raises(OverflowError):
        COMPILED.write(memory, HUGE, b"")


@pytest.mark.parametrize(
    ("address", "limit", "text"),
    [
        (0, 256, b"one"),
        (4, 4, b"two"),
        (4, 3, None),
        (8, 256, None),
        (3, 1, b""),
        (13, 256, None),
        (14, 256, None),
        (-1, 256, None),
        (0, 0, None),
    ],
)
def test_strings_end_at_a_nul(
    memory: memoryview, address: int, limit: int, text: bytes | None
) -> None:
    assert COMPILED.read_string(memory, address, limit) == text


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_are_written(memory: memoryview, kind: Any) -> None:
    COMPILED.write(memory, 8, kind(b"seven"))
    assert bytes(memory) == b"one\0two\0seven"


def test_a_part_of_the_same_memory_can_be_written(memory: memoryview) -> None:
    COMPILED.write(memory, 1, memory[0:6])
    assert bytes(memory) == b"oone\0twthree"[:7] + b"\0three"


def test_a_memory_that_is_gone_is_an_error(memory: memoryview) -> None:
    memory.release()
    with pytest.raises(ValueError, match="released"):
        COMPILED.read(memory, 0, 1)
    with pytest.raises(ValueError, match="released"):
        COMPILED.write(memory, 0, b"x")


def test_what_is_no_memory_is_refused() -> None:
    with pytest.raises(TypeError):
        COMPILED.read(None, 0, 1)
    with pytest.raises((BufferError, TypeError)):
        COMPILED.write(b"constant", 0, b"x")
    with pytest.raises(TypeError):
        COMPILED.write(bytearray(3), 0, "text")
    with pytest.raises(TypeError):
        COMPILED.read(bytearray(3), 0)


@pytest.mark.parametrize("count", range(7))
def test_a_function_gets_as_many_arguments_as_its_call_has(count: int) -> None:
    given = SimpleNamespace(a=1, b=2, c=3, d=4, e=5, f=6)
    handler = COMPILED.adapter(lambda *received: received, count)
    assert handler("context", given) == ("context", 1, 2, 3, 4, 5, 6)[: count + 1]


def test_adapters_refuse_what_they_cannot_pass_on() -> None:
    for count in (-1, 7):
        with pytest.raises(ValueError, match="arguments"):
            COMPILED.adapter(print, count)
    handler = COMPILED.adapter(print, 1)
    for wrong in ((), ("context",), ("context", None, 1)):
        with pytest.raises(TypeError):
            handler(*wrong)
    with pytest.raises(AttributeError):
        handler("context", object())


def test_the_table_of_system_calls_has_adapters() -> None:
    assert {type(handler).__name__ for handler in HANDLERS.values()} == {"Adapter"}
