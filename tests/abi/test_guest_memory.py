"""The one place where guest pointers are followed, by a view of the memory and by copies."""

from __future__ import annotations

from struct import Struct

import pytest

from tests.abi.caller import CopyingInstance, PythonInstance
from tests.kernel.system import errno_of
from wasmsand.abi.memory import GuestMemory
from wasmsand.kernel.errno import Errno

SIZE = 1000
PAIR = Struct("<II")
BEYOND = [SIZE, SIZE + 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF]


@pytest.fixture(params=[PythonInstance, CopyingInstance])
def instance(request: pytest.FixtureRequest) -> PythonInstance:
    made: PythonInstance = request.param(SIZE)
    made.space[:] = bytes(i % 251 for i in range(SIZE))
    return made


@pytest.fixture
def memory(instance: PythonInstance) -> GuestMemory:
    return GuestMemory.of(instance)


def test_everything_inside_can_be_read_and_written(
    memory: GuestMemory, instance: PythonInstance
) -> None:
    assert memory.read(0, SIZE) == bytes(instance.space)
    memory.write(SIZE - 3, b"end")
    memory.write_u32(0, -1)
    memory.write_u64(8, 1 << 70 | 5)
    memory.pack(PAIR, 16, 7, 8)
    assert instance.space[-3:] == b"end"
    assert (memory.read_u32(0), memory.read_u64(8), memory.unpack(PAIR, 16)) == (
        0xFFFF_FFFF, 5, (7, 8),
    )  # fmt: skip


@pytest.mark.parametrize("address", [SIZE - 3, SIZE - 1, *BEYOND])
def test_an_access_beyond_the_end_is_efault_and_changes_nothing(
    memory: GuestMemory, instance: PythonInstance, address: int
) -> None:
    before = bytes(instance.space)
    assert errno_of(memory.read, address, 4) is Errno.EFAULT
    assert errno_of(memory.write, address, b"four") is Errno.EFAULT
    assert errno_of(memory.require, address, 4) is Errno.EFAULT
    assert errno_of(memory.read_u32, address) is Errno.EFAULT
    assert errno_of(memory.write_u32, address, 1) is Errno.EFAULT
    assert errno_of(memory.read_u64, address) is Errno.EFAULT
    assert errno_of(memory.write_u64, address, 1) is Errno.EFAULT
    assert errno_of(memory.unpack, PAIR, address) is Errno.EFAULT
    assert errno_of(memory.pack, PAIR, address, 1, 2) is Errno.EFAULT
    assert bytes(instance.space) == before


@pytest.mark.parametrize("count", [SIZE + 1, 0x7FFF_FFFF, 0xFFFF_FFFF])
def test_a_length_that_is_too_large_is_efault(memory: GuestMemory, count: int) -> None:
    assert errno_of(memory.read, 0, count) is Errno.EFAULT
    assert errno_of(memory.require, 0, count) is Errno.EFAULT


def test_memory_that_has_grown_is_seen(memory: GuestMemory, instance: PythonInstance) -> None:
    assert errno_of(memory.read, SIZE, 1) is Errno.EFAULT
    instance.space = instance.space + b"grown"
    assert memory.read(SIZE, 5) == b"grown"


def test_growth_is_told_before_the_new_memory_is_used(instance: PythonInstance) -> None:
    seen: list[bytes] = []
    memory = GuestMemory.of(instance, lambda: seen.append(bytes(instance.space[SIZE:])))
    memory.write(0, b"inside")
    assert seen == []
    instance.space = instance.space + b"grown"
    memory.write(SIZE, b"G")
    memory.write(SIZE, b"H")
    assert seen == [b"grown"]


def test_parts_are_gathered_and_scattered_in_order(
    memory: GuestMemory, instance: PythonInstance
) -> None:
    parts = [(10, 3), (500, 0), (20, 2)]
    memory.scatter(parts, b"abcde")
    assert bytes(instance.space[10:13] + instance.space[20:22]) == b"abcde"
    assert memory.gather(parts) == b"abcde"
    assert memory.gather(parts[:1]) == b"abc"
    assert memory.gather([]) == b""
    memory.scatter(parts, b"xy")
    assert memory.gather(parts) == b"xycde"
    assert errno_of(memory.gather, [(0, 1), (SIZE, 1)]) is Errno.EFAULT


def test_strings_end_at_their_nul(memory: GuestMemory) -> None:
    memory.write(10, b"short\0rest")
    memory.write(100, b"x" * 600 + b"\0")
    assert memory.read_string(10, 6, Errno.E2BIG) == b"short"
    assert memory.read_string(100, 601, Errno.E2BIG) == b"x" * 600
    memory.write(SIZE - 2, b"z\0")
    assert memory.read_path(SIZE - 2) == b"z"


def test_strings_that_are_too_long_say_so(memory: GuestMemory) -> None:
    memory.write(100, b"x" * 600 + b"\0")
    assert errno_of(memory.read_string, 100, 600, Errno.E2BIG) is Errno.E2BIG
    assert errno_of(memory.read_string, 100, 300, Errno.ENAMETOOLONG) is Errno.ENAMETOOLONG


@pytest.mark.parametrize("address", [SIZE - 10, SIZE - 1, *BEYOND])
def test_strings_that_run_off_the_end_are_efault(memory: GuestMemory, address: int) -> None:
    memory.write(SIZE - 10, b"x" * 10)
    assert errno_of(memory.read_path, address) is Errno.EFAULT
