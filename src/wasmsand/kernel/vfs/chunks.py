"""What the bytes of a file consist of: chunks, reserved room, data of an image.

Owns `ChunkTable`, which knows what is where and what is paid for, and answers questions about
holes. `FileContent` reads and changes it. Rules:

- A file is a dict of 64 KiB chunks over optional image data. A chunk that was ever written is a
  `bytearray`, is paid for in blocks, and belongs to exactly one content if its index is in
  `private`; otherwise another content has it too, and it is copied before its first change.
- Room that was allocated and not yet written is a number in `reserved`, no chunk. `order`
  has the indexes of chunks and of reserved room, sorted.
- A chunk may be shorter than 64 KiB: what is missing reads as zeros, and so do bytes
  of a chunk past the end of the file.
- An absent chunk is image data below `image_end`, and a hole above it. An empty `bytes`
  is a hole punched into image data. Neither is paid for.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs.image_data import ImageData
from wasmsand.kernel.vfs.model import BLOCK_SIZE
from wasmsand.kernel.vfs.space import blocks_of

CHUNK_SHIFT = 16
CHUNK_SIZE = 1 << CHUNK_SHIFT
CHUNK_MASK = CHUNK_SIZE - 1
PUNCHED = b""
NO_CHUNKS: dict[int, bytearray | bytes] = {}
NO_ORDER: list[int] = []
NO_PRIVATE: set[int] = set()
"""All contents without chunks share these three; `_put` gives a content tables of its own."""
END_OF_CHUNKS = 1 << 62
"""An index past every chunk."""


class ChunkTable:
    """What one file consists of."""

    __slots__ = (
        "blocks",
        "chunks",
        "image",
        "image_end",
        "key",
        "key_of_image",
        "order",
        "private",
        "reserved",
        "size",
    )

    def __init__(self, image: ImageData | None = None, key: str | None = None) -> None:
        self.size = image.size if image else 0
        # Most files have no chunk: they share tables, so that many files take little.
        self.chunks = NO_CHUNKS
        self.order = NO_ORDER
        self.private = NO_PRIVATE
        self.reserved: dict[int, int] | None = None
        """Blocks paid for of a chunk, by index, where these are more than it needs."""
        self.blocks = 0
        """Blocks paid for."""
        self.image = image
        self.image_end = self.size
        self.key = key
        """The hash of the content, until that changes; None if nobody has given it."""
        self.key_of_image = key is not None
        """Whether the image gave the key: the content is the host's, not a guest's."""

    def _put(self, index: int, chunk: bytearray | bytes) -> None:
        """Make `chunk` the content at `index`."""
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

    # Asking about holes.

    def seek_data(self, offset: int) -> int:
        """The next offset with data; ENXIO if there is none before the end."""
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
        """Offset and length of what is no hole."""
        offset = 0
        while offset < self.size:
            try:
                start = self.seek_data(offset)
            except KernelError:
                return
            offset = self.seek_hole(start)
            yield start, offset - start

    def _data_end(self, index: int) -> int:
        """Where the data of a chunk ends (whole blocks), as an offset in the file."""
        blocks = blocks_of(self._present(index))
        if self.reserved:
            blocks = max(blocks, self.reserved.get(index, 0))
        return (index << CHUNK_SHIFT) + blocks * BLOCK_SIZE

    def _present(self, index: int) -> int:
        """How many bytes of a chunk there are, written or of the image."""
        chunk = self.chunks.get(index)
        if chunk is not None:
            return len(chunk)
        return min(max(self.image_end - (index << CHUNK_SHIFT), 0), CHUNK_SIZE)

    def _paid(self, index: int) -> int:
        """Blocks paid for of a chunk."""
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
        """How many chunks, from the first one, the image has data for."""
        return (self.image_end + CHUNK_MASK) >> CHUNK_SHIFT

    def stat_blocks(self) -> int:
        """st_blocks: what is paid for, and what of the image still shows."""
        blocks = self.blocks
        if self.image_end:
            blocks += blocks_of(self.image_end)
            for index in self.order[: bisect_left(self.order, self._image_chunks())]:
                if index in self.chunks:
                    hidden = self.image_end - (index << CHUNK_SHIFT)
                    blocks -= blocks_of(min(hidden, CHUNK_SIZE))
        return blocks * (BLOCK_SIZE // 512)
