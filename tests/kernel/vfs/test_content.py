"""The bytes of a file: sparse, charged exactly, copied on write."""

from __future__ import annotations

import random

import pytest

from tests.kernel.vfs.world import fails
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.vfs.chunks import CHUNK_SIZE
from wasmsand.kernel.vfs.content import FileContent
from wasmsand.kernel.vfs.image_data import ImageData
from wasmsand.kernel.vfs.model import BLOCK_SIZE
from wasmsand.kernel.vfs.space import Space, blocks_of

PLENTY = 1 << 40


def roomy() -> Space:
    return Space(PLENTY, 1000)


def whole(content: FileContent) -> bytes:
    return content.read(0, content.size)


class Model:
    """A file as one bytearray, together with the content under test."""

    def __init__(self, content: FileContent, data: bytes) -> None:
        self.content = content
        self.data = bytearray(data)

    def write(self, offset: int, data: bytes, space: Space) -> None:
        assert self.content.write(offset, data, space) == len(data)
        self.data.extend(bytes(max(0, offset - len(self.data))))
        self.data[offset : offset + len(data)] = data

    def truncate(self, size: int, space: Space) -> None:
        self.content.truncate(size, space)
        del self.data[size:]
        self.data.extend(bytes(size - len(self.data)))

    def punch(self, offset: int, length: int, space: Space) -> None:
        self.content.punch_hole(offset, length, space)
        end = min(offset + length, len(self.data))
        if end > offset:
            self.data[offset:end] = bytes(end - offset)

    def allocate(self, offset: int, length: int, space: Space, *, keep_size: bool) -> None:
        self.content.allocate(offset, length, space, keep_size=keep_size)
        if not keep_size:
            self.data.extend(bytes(max(0, offset + length - len(self.data))))

    def fork(self) -> Model:
        return Model(self.content.fork(), bytes(self.data))

    def check(self) -> None:
        content = self.content
        assert whole(content) == self.data
        written = {i: c for i, c in content.chunks.items() if isinstance(c, bytearray)}
        needed = {index: blocks_of(len(chunk)) for index, chunk in written.items()}
        reserved = content.reserved or {}
        assert all(paid > needed.get(index, 0) for index, paid in reserved.items())
        assert content.blocks == sum((needed | reserved).values())
        assert all(len(chunk) <= CHUNK_SIZE for chunk in written.values())
        assert content.order == sorted(content.chunks.keys() | reserved.keys())
        empty = FileContent()
        # All contents without chunks share this one.
        assert (empty.chunks, empty.order, empty.private) == ({}, [], set())
        self.check_extents()

    def check_extents(self) -> None:
        """Data and holes alternate up to the end, and every byte outside of data is zero."""
        position = 0
        while position < self.content.size:
            try:
                data = self.content.seek_data(position)
            except Exception:
                data = self.content.size
            assert not any(self.data[position:data])
            position = self.content.seek_hole(data) if data < self.content.size else data


@pytest.mark.parametrize("seed", range(25))
def test_random_changes_read_back_as_from_one_bytearray(seed: int) -> None:
    choose = random.Random(seed)
    image = choose.randbytes(choose.choice([0, 10, 4096, 65536, 150_000]))
    base = Model(FileContent(ImageData(len(image), image)), image)
    models = [base.fork()]
    spaces = [roomy()]

    def place() -> int:
        return choose.choice([0, 1, 4095, 4096, 65535, 65536, 65537, 131072, 200_000]) + (
            choose.randrange(100) if choose.random() < 0.5 else 0
        )

    for _ in range(120):
        index = choose.randrange(len(models))
        model, space = models[index], spaces[index]
        match choose.randrange(10):
            case 0 | 1 | 2 | 3:
                model.write(place(), choose.randbytes(place() % 70_000 + 1), space)
            case 4:
                model.truncate(place(), space)
            case 5:
                model.punch(place(), place() + 1, space)
            case 6:
                model.allocate(place(), place() + 1, space, keep_size=choose.random() < 0.5)
            case 7:
                offset, size = place(), place()
                assert model.content.read(offset, size) == model.data[offset : offset + size]
            case 8:
                # As a tree does: the old content is frozen, and both continue as forks of it.
                frozen = model.fork()
                models[index] = frozen.fork()
                models.append(frozen.fork())
                spaces.append(Space(PLENTY, 0, space.used_blocks))
            case 9:
                # As a copy of a file does: both continue, and the copy is charged.
                twin = model.content.share()
                models.append(Model(twin, bytes(model.data)))
                spaces.append(Space(PLENTY, 0, twin.blocks))
    for model, space in zip(models, spaces, strict=True):
        model.check()
        assert space.used_blocks == model.content.blocks
        model.truncate(0, space)
        assert space.used_blocks == 0
    assert whole(base.content) == image


def test_a_hole_costs_nothing_and_reads_as_zeros() -> None:
    space = roomy()
    content = FileContent()
    content.write(10 * CHUNK_SIZE, b"end", space)
    assert space.used_bytes == BLOCK_SIZE
    assert content.size == 10 * CHUNK_SIZE + 3
    assert content.read(CHUNK_SIZE - 2, 5) == bytes(5)
    assert content.seek_data(0) == 10 * CHUNK_SIZE
    assert content.seek_hole(0) == 0
    assert content.stat_blocks() == 8


def test_seek_past_the_last_data_gives_enxio() -> None:
    content = FileContent()
    content.write(0, b"x", roomy())
    content.truncate(5 * CHUNK_SIZE, roomy())
    assert content.seek_hole(0) == BLOCK_SIZE
    with fails(Errno.ENXIO):
        content.seek_data(CHUNK_SIZE)
    with fails(Errno.ENXIO):
        content.seek_data(content.size)


def test_a_write_that_partly_fits_is_short_and_the_next_gives_enospc() -> None:
    space = Space(3 * BLOCK_SIZE, 10)
    content = FileContent()
    assert content.write(0, b"a" * 5 * BLOCK_SIZE, space) == 3 * BLOCK_SIZE
    assert whole(content) == b"a" * 3 * BLOCK_SIZE
    with fails(Errno.ENOSPC):
        content.write(content.size, b"more", space)
    assert content.size == 3 * BLOCK_SIZE
    assert content.write(5, b"inside", space) == 6


def test_a_short_write_across_chunks_keeps_what_fitted() -> None:
    space = Space(CHUNK_SIZE + BLOCK_SIZE, 10)
    content = FileContent()
    data = bytes(range(256)) * (3 * CHUNK_SIZE // 256)
    assert content.write(100, data, space) == CHUNK_SIZE + BLOCK_SIZE - 100
    assert content.read(100, 1 << 20) == data[: CHUNK_SIZE + BLOCK_SIZE - 100]


def test_a_failed_write_into_the_image_leaves_it_shared_and_whole() -> None:
    data = b"i" * CHUNK_SIZE
    content = FileContent(ImageData(len(data), data), key="k")
    with fails(Errno.ENOSPC):
        content.write(10, b"x", Space(BLOCK_SIZE, 10))
    assert whole(content) == data
    assert content.key == "k"


def test_writing_copies_one_chunk_of_the_image() -> None:
    data = b"i" * 3 * CHUNK_SIZE
    space = roomy()
    content = FileContent(ImageData(len(data), data))
    content.write(CHUNK_SIZE + 7, b"x", space)
    assert space.used_bytes == CHUNK_SIZE
    assert whole(content) == b"i" * (CHUNK_SIZE + 7) + b"x" + b"i" * (2 * CHUNK_SIZE - 8)
    assert content.stat_blocks() == len(data) // 512


def test_lazy_content_is_loaded_once_and_only_when_read() -> None:
    calls = []

    def load() -> bytes:
        calls.append(1)
        return b"late"

    content = FileContent(ImageData(4, load))
    assert content.size == 4
    assert not calls
    assert content.read(1, 2) == b"at"
    assert whole(content.fork()) == b"late"
    assert len(calls) == 1


def test_lazy_content_of_another_size_is_a_host_error() -> None:
    with pytest.raises(ValueError, match="5 bytes, not 4"):
        FileContent(ImageData(4, lambda: b"wrong")).read(0, 1)


def test_allocating_more_than_there_is_changes_nothing() -> None:
    space = Space(10 * BLOCK_SIZE, 10)
    content = FileContent()
    for length in (11 * BLOCK_SIZE, 1 << 43):
        with fails(Errno.ENOSPC):
            content.allocate(0, length, space, keep_size=False)
    assert (content.size, space.used_blocks) == (0, 0)


def test_allocated_room_is_there_for_later_writes() -> None:
    space = Space(4 * BLOCK_SIZE, 10)
    content = FileContent()
    content.allocate(0, 3 * BLOCK_SIZE, space, keep_size=True)
    assert (content.size, space.used_blocks) == (0, 3)
    other = FileContent()
    assert other.write(0, b"x" * 2 * BLOCK_SIZE, space) == BLOCK_SIZE
    assert content.write(0, b"y" * 3 * BLOCK_SIZE, space) == 3 * BLOCK_SIZE


def test_a_fork_does_not_see_later_writes_of_its_origin() -> None:
    space = roomy()
    frozen = FileContent()
    frozen.write(0, b"common", space)
    left, right = frozen.fork(), frozen.fork()
    left.write(0, b"LEFT", space)
    right.truncate(2, space)
    assert (whole(left), whole(right), whole(frozen)) == (b"LEFTon", b"co", b"common")
