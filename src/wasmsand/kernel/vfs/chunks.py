"""The pieces that hold the bytes of a file: chunks, reserved blocks, image data.

Owns `ChunkTable`, which stores what is where and how many blocks are paid for, and answers queries
about holes. `FileContent` reads and changes it. Rules:

- A file is a dict of 64 KiB chunks over optional image data. A chunk that was written is a
  `bytearray` and is paid for in blocks. It belongs to exactly one content if its index is in
  `private`; otherwise contents share it, and it is copied before its first change.
- Blocks that were allocated but not written are a number in `reserved`, without a chunk. `order`
  holds the indexes of chunks and of reservations, sorted.
- A chunk may be shorter than 64 KiB: the missing bytes read as zeros, as do bytes of a chunk past
  the end of the file.
- Without a chunk, the bytes below `image_end` are image data, and those above are a hole. An empty
  `bytes` is a hole punched into image data. Neither is paid for.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs.image_data import ImageData
from wasmsand.kernel.vfs.model import BLOCK_SIZE
from wasmsand.kernel.vfs.space import blocks_of

CHUNK_SHIFT: Final = 16
CHUNK_SIZE: Final = 1 << CHUNK_SHIFT
CHUNK_MASK: Final = CHUNK_SIZE - 1
PUNCHED = b""
NO_CHUNKS: dict[int, bytearray | bytes] = {}
NO_ORDER: list[int] = []
NO_PRIVATE: set[int] = set()
"""Contents without chunks share these three; `_put` gives a content tables of its own."""
END_OF_CHUNKS: Final = 1 << 62
"""An index beyond every chunk."""


class ChunkTable:
    """The pieces of one file."""

    __slots__ = (
        "blocks",
        "chunks",
        "image",
        "image_end",
        "key",
        "key_of_image",
        "memory_key",
        "order",
        "private",
        "reserved",
        "size",
    )

    def __init__(
        self,
        image: ImageData | None = None,
        key: str | None = None,
        memory_key: str | None = None,
    ) -> None:
        self.size = image.size if image else 0
        # Most files have no chunks and share these tables, which saves memory.
        self.chunks = NO_CHUNKS
        self.order = NO_ORDER
        self.private = NO_PRIVATE
        self.reserved: dict[int, int] | None = None
        """By index: the number of blocks paid for, where it exceeds what the chunk needs."""
        self.blocks = 0
        """Blocks paid for."""
        self.image = image
        self.image_end = self.size
        self.key = key
        """The hash of the content, until it changes; None if it is not known."""
        self.key_of_image = key is not None
        """Whether the key comes from the image: the content is the host's, not a guest's."""
        self.memory_key = memory_key
        """The hash of the memory with which the program starts, as long as `key_of_image`."""

    def _put(self, index: int, chunk: bytearray | bytes) -> None:
        """Store `chunk` at `index`."""
        if self.chunks is NO_CHUNKS:
            self.chunks, self.private = {}, set()
        if index not in self.chunks and not (self.reserved and index in self.reserved):
            if self.order is NO_ORDER:
                self.order = []
            order = self.order
            if not order or index > order[-1]:
                order.append(index)
            else:
                insort(order, index)
        self.chunks[index] = chunk

    # Queries about holes.

    def seek_data(self, offset: int) -> int:
        """The next offset with data; ENXIO if there is none before the end of the file."""
        if offset >= self.size:
            raise KernelError(Errno.ENXIO)
        index = offset >> CHUNK_SHIFT
        if offset < self._data_end(index):
            return offset
        index += 1
        image_chunks = self._image_chunks()
        while index < image_chunks and self._data_end(index) == index << CHUNK_SHIFT:
            index += 1  # punched
        if index >= image_chunks:
            place = bisect_left(self.order, index)
            index = self.order[place] if place < len(self.order) else END_OF_CHUNKS
        if index << CHUNK_SHIFT >= self.size:
            raise KernelError(Errno.ENXIO)
        return index << CHUNK_SHIFT

    def seek_hole(self, offset: int) -> int:
        """The next offset in a hole; the end of the file counts as one."""
        if offset >= self.size:
            raise KernelError(Errno.ENXIO)
        while offset < self.size:
            index = offset >> CHUNK_SHIFT
            data_end = self._data_end(index)
            if offset >= data_end:
                return offset
            if data_end < (index + 1) << CHUNK_SHIFT:
                return min(data_end, self.size)
            offset = data_end
        return self.size

    def extents(self) -> Iterator[tuple[int, int]]:
        """Offset and length of each data extent."""
        offset = 0
        while offset < self.size:
            try:
                start = self.seek_data(offset)
            except KernelError:
                return
            offset = self.seek_hole(start)
            yield start, offset - start

    def _data_end(self, index: int) -> int:
        """The file offset where the data of a chunk ends, rounded up to whole blocks."""
        blocks = blocks_of(self._present(index))
        if self.reserved:
            blocks = max(blocks, self.reserved.get(index, 0))
        return (index << CHUNK_SHIFT) + blocks * BLOCK_SIZE

    def _present(self, index: int) -> int:
        """How many bytes of a chunk exist, written or from the image."""
        chunk = self.chunks.get(index)
        if chunk is not None:
            return len(chunk)
        return min(max(self.image_end - (index << CHUNK_SHIFT), 0), CHUNK_SIZE)

    def _paid(self, index: int) -> int:
        """Blocks paid for at this index."""
        if self.reserved and index in self.reserved:
            return self.reserved[index]
        return blocks_of(len(self.chunks.get(index, PUNCHED)))

    def _surplus(self) -> int:
        """Blocks paid for that no chunk needs yet."""
        return sum(
            paid - blocks_of(len(self.chunks.get(index, PUNCHED)))
            for index, paid in (self.reserved or {}).items()
        )

    def _image_chunks(self) -> int:
        """How many chunks, counted from the start, have image data."""
        return (self.image_end + CHUNK_MASK) >> CHUNK_SHIFT

    def stat_blocks(self) -> int:
        """st_blocks: the blocks paid for, and the visible blocks of the image."""
        blocks = self.blocks
        if self.image_end:
            blocks += blocks_of(self.image_end)
            for index in self.order[: bisect_left(self.order, self._image_chunks())]:
                if index in self.chunks:
                    hidden = self.image_end - (index << CHUNK_SHIFT)
                    blocks -= blocks_of(min(hidden, CHUNK_SIZE))
        return blocks * (BLOCK_SIZE // 512)
