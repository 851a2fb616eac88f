"""The bytes of one regular file: sparse, chunked, copied on write.

Owns `FileContent` and `ImageData`. A file is a dict of 64 KiB chunks over optional
image data. Rules:

- A chunk that was ever written is a `bytearray`, is paid for in blocks, and belongs to
  exactly one content if its index is in `private`; otherwise it is shared with a frozen
  content and is copied before its first change.
- A chunk may be shorter than 64 KiB: what is missing reads as zeros, and so do bytes
  of a chunk past the end of the file.
- An absent chunk is image data below `image_end`, and a hole above it. An empty `bytes`
  is a hole punched into image data. Neither is paid for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs.filesystem import Data
from wasmsand.kernel.vfs.model import BLOCK_SIZE
from wasmsand.kernel.vfs.space import Space, blocks_of

CHUNK_SHIFT = 16
CHUNK_SIZE = 1 << CHUNK_SHIFT
CHUNK_MASK = CHUNK_SIZE - 1
BLOCKS_PER_CHUNK = CHUNK_SIZE // BLOCK_SIZE
_BLOCK_SHIFT = BLOCK_SIZE.bit_length() - 1
_BLOCK_MASK = BLOCK_SIZE - 1
_PUNCHED = b""


class Sliceable(Protocol):
    """bytes, a memoryview of bytes, or a mapped file."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> bytes | memoryview: ...


class ImageData:
    """Immutable bytes of an image, possibly loaded at first use. Shared by all
    sandboxes; two that load at once both succeed, and one result is kept."""

    __slots__ = ("_data", "_load", "size")

    def __init__(self, size: int, source: Sliceable | Callable[[], Sliceable]) -> None:
        self.size = size
        self._data: Sliceable | None = None
        self._load: Callable[[], Sliceable] | None = None
        if callable(source):
            self._load = source
        else:
            self._data = source

    def slice(self, start: int, stop: int) -> bytes:
        """Bytes start to stop; both must lie inside."""
        data = self._data
        if data is None:
            assert self._load is not None
            data = self._load()
            if len(data) != self.size:
                raise ValueError(f"image data has {len(data)} bytes, not {self.size}")
            self._data = data
        return bytes(data[start:stop])


class FileContent:
    """Size and bytes of one file."""

    __slots__ = (
        "blocks",
        "chunks",
        "image",
        "image_end",
        "key",
        "key_of_image",
        "private",
        "size",
    )

    def __init__(self, image: ImageData | None = None, key: str | None = None) -> None:
        self.size = image.size if image else 0
        self.chunks: dict[int, bytearray | bytes] = {}
        self.private: set[int] = set()
        self.blocks = 0
        """Blocks paid for."""
        self.image = image
        self.image_end = self.size
        self.key = key
        """The hash of the content, until that changes; None if nobody has given it."""
        self.key_of_image = key is not None
        """Whether the image gave the key: the content is the host's, not a guest's."""

    def fork(self) -> FileContent:
        """A content with the same bytes; both share chunks, and only the copy may be
        written from now on."""
        twin = FileContent.__new__(FileContent)
        twin.size = self.size
        twin.chunks = dict(self.chunks)
        twin.private = set()
        twin.blocks = self.blocks
        twin.image = self.image
        twin.image_end = self.image_end
        twin.key = self.key
        twin.key_of_image = self.key_of_image
        return twin

    # Reading.

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        end = offset + size
        if end > self.size:
            end = self.size
        if end <= offset:
            return b""
        if not self.chunks and end <= self.image_end:
            assert self.image is not None
            return self.image.slice(offset, end)
        first = offset >> CHUNK_SHIFT
        last = (end - 1) >> CHUNK_SHIFT
        if first == last:
            return self._piece(first, offset & CHUNK_MASK, ((end - 1) & CHUNK_MASK) + 1)
        pieces = [self._piece(first, offset & CHUNK_MASK, CHUNK_SIZE)]
        pieces += [self._piece(index, 0, CHUNK_SIZE) for index in range(first + 1, last)]
        pieces.append(self._piece(last, 0, ((end - 1) & CHUNK_MASK) + 1))
        return b"".join(pieces)

    def _piece(self, index: int, start: int, stop: int) -> bytes:
        chunk = self.chunks.get(index)
        if chunk is not None:
            if start == 0 and stop == len(chunk):
                return bytes(chunk)
            piece = bytes(memoryview(chunk)[start:stop])
        else:
            base = index << CHUNK_SHIFT
            image_stop = min(base + stop, self.image_end)
            if image_stop <= base + start:
                return bytes(stop - start)
            assert self.image is not None
            piece = self.image.slice(base + start, image_stop)
        missing = stop - start - len(piece)
        return piece + bytes(missing) if missing else piece

    # Writing.

    def write(self, offset: int, data: Data, space: Space) -> int:
        """Write what fits and return how much; ENOSPC, and no change, if nothing does."""
        count = len(data)
        index = offset >> CHUNK_SHIFT
        if index in self.private:
            start = offset & CHUNK_MASK
            stop = start + count
            if stop <= CHUNK_SIZE:
                chunk = self.chunks[index]
                assert type(chunk) is bytearray
                have = len(chunk)
                if stop <= have:
                    chunk[start:stop] = data
                else:
                    more = ((stop + _BLOCK_MASK) >> _BLOCK_SHIFT) - (
                        (have + _BLOCK_MASK) >> _BLOCK_SHIFT
                    )
                    if more:
                        if more > space.limit_blocks - space.used_blocks:
                            return self._write_pieces(offset, data, space)
                        space.used_blocks += more
                        self.blocks += more
                    if start > have:
                        chunk.extend(bytes(start - have))
                    chunk[start:] = data
                if offset + count > self.size:
                    self.size = offset + count
                self.key = None
                return count
        return self._write_pieces(offset, data, space)

    def _write_pieces(self, offset: int, data: Data, space: Space) -> int:
        view = memoryview(data)
        count = len(view)
        done = 0
        while done < count:
            start = (offset + done) & CHUNK_MASK
            piece = view[done : done + CHUNK_SIZE - start]
            index = (offset + done) >> CHUNK_SHIFT
            room = self._make_writable(index, start, start + len(piece), space) - start
            if room <= 0:
                break
            chunk = self.chunks[index]
            assert type(chunk) is bytearray
            if room < len(piece):
                piece = piece[:room]
            chunk[start : start + len(piece)] = piece
            done += len(piece)
        if done:
            self.size = max(self.size, offset + done)
            self.key = None
        elif count:
            raise space.full()
        return done

    def _make_writable(self, index: int, start: int, stop: int, space: Space) -> int:
        """Make a private chunk in which bytes up to the returned end can be assigned from
        `start`. Takes the blocks first; an end at or before `start` means no room, and
        nothing was changed."""
        chunk = self.chunks.get(index)
        base = index << CHUNK_SHIFT
        have = self._present(index)
        paid = blocks_of(have) if chunk is not None else 0
        more = blocks_of(max(have, stop)) - paid
        if more > space.free_blocks():
            affordable = (paid + space.free_blocks()) * BLOCK_SIZE
            if affordable < have or affordable <= start:
                return 0
            stop = affordable
            more = blocks_of(max(have, stop)) - paid
        space.take_blocks(more)
        self.blocks += more
        if index not in self.private:
            if start == 0 and stop >= have:
                chunk = bytearray()
            elif chunk is None and have:
                assert self.image is not None
                chunk = bytearray(self.image.slice(base, base + have))
            else:
                chunk = bytearray(chunk or b"")
            self.chunks[index] = chunk
            self.private.add(index)
        assert type(chunk) is bytearray
        if start > len(chunk):
            chunk.extend(bytes(start - len(chunk)))
        return stop

    # Changing the size and the room.

    def truncate(self, size: int, space: Space) -> None:
        """Cut off what is past `size`, or extend by a hole."""
        if size <= self.size:
            first_gone = (size + CHUNK_MASK) >> CHUNK_SHIFT
            for index in [index for index in self.chunks if index >= first_gone]:
                self._drop(index, space)
            if size & CHUNK_MASK:
                self._shorten(size >> CHUNK_SHIFT, size & CHUNK_MASK, space)
            self.image_end = min(self.image_end, size)
        self.size = size
        self.key = None

    def _drop(self, index: int, space: Space) -> None:
        chunk = self.chunks.pop(index)
        self.private.discard(index)
        freed = blocks_of(len(chunk))
        self.blocks -= freed
        space.give_blocks(freed)

    def _shorten(self, index: int, length: int, space: Space) -> None:
        chunk = self.chunks.get(index)
        if chunk is None or len(chunk) <= length:
            return
        freed = blocks_of(len(chunk)) - blocks_of(length)
        if index in self.private:
            assert type(chunk) is bytearray
            del chunk[length:]
        else:
            self.chunks[index] = chunk[:length]
            self.private.add(index)
        self.blocks -= freed
        space.give_blocks(freed)

    def allocate(self, offset: int, length: int, space: Space, *, keep_size: bool) -> None:
        """Pay for a range, all of it or (ENOSPC) none."""
        end = offset + length
        first, last = offset >> CHUNK_SHIFT, (end - 1) >> CHUNK_SHIFT
        # Refuse a huge range before looking at each of its chunks.
        known = len(self.chunks)
        if (last - first - 1 - known) * BLOCKS_PER_CHUNK > space.free_blocks():
            raise space.full()
        needed = 0
        for index in range(first, last + 1):
            stop = CHUNK_SIZE if index < last else ((end - 1) & CHUNK_MASK) + 1
            paid = blocks_of(len(self.chunks.get(index, _PUNCHED)))
            needed += blocks_of(max(self._present(index), stop)) - paid
        if needed > space.free_blocks():
            raise space.full()
        for index in range(first, last + 1):
            stop = CHUNK_SIZE if index < last else ((end - 1) & CHUNK_MASK) + 1
            # Starting at the end of the chunk keeps all that is there and fills up to it.
            self._make_writable(index, stop, stop, space)
        if end > self.size and not keep_size:
            self.size = end
        self.key = None

    def punch_hole(self, offset: int, length: int, space: Space) -> None:
        """Make a range read as zeros; whole chunks give their blocks back."""
        end = offset + length
        touched = {index for index in self.chunks if _overlaps(index, offset, end)}
        image_stop = min(self.image_end, end)
        if offset < image_stop:
            touched.update(range(offset >> CHUNK_SHIFT, ((image_stop - 1) >> CHUNK_SHIFT) + 1))
        for index in sorted(touched):
            base = index << CHUNK_SHIFT
            start = max(offset - base, 0)
            chunk = self.chunks.get(index)
            have = self._present(index)
            stop = min(end - base, have)
            if stop <= start:
                continue
            if start == 0 and stop == have:
                if chunk is not None:
                    self._drop(index, space)
                if base < self.image_end:
                    self.chunks[index] = _PUNCHED
            elif chunk is not None and stop == have:
                self._shorten(index, start, space)
            else:
                if self._make_writable(index, start, stop, space) < stop:
                    raise space.full()
                writable = self.chunks[index]
                assert type(writable) is bytearray
                writable[start:stop] = bytes(stop - start)
        self.key = None

    # Asking about holes.

    def seek_data(self, offset: int) -> int:
        """The next offset with data; ENXIO if there is none before the end."""
        if offset >= self.size:
            raise KernelError(Errno.ENXIO)
        index = offset >> CHUNK_SHIFT
        if offset < self._data_end(index):
            return offset
        later = [i for i, chunk in self.chunks.items() if i > index and chunk]
        following = min(later, default=-1)
        image_chunks = (self.image_end + CHUNK_MASK) >> CHUNK_SHIFT
        stop = following if following >= 0 else image_chunks
        for candidate in range(index + 1, min(stop, image_chunks)):
            if candidate not in self.chunks:
                following = candidate
                break
        found = following << CHUNK_SHIFT
        if following < 0 or found >= self.size:
            raise KernelError(Errno.ENXIO)
        return found

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

    def _data_end(self, index: int) -> int:
        """Where the data of a chunk ends (whole blocks), as an offset in the file."""
        return (index << CHUNK_SHIFT) + blocks_of(self._present(index)) * BLOCK_SIZE

    def _present(self, index: int) -> int:
        """How many bytes of a chunk there are, written or of the image."""
        chunk = self.chunks.get(index)
        if chunk is not None:
            return len(chunk)
        return min(max(self.image_end - (index << CHUNK_SHIFT), 0), CHUNK_SIZE)

    def stat_blocks(self) -> int:
        """st_blocks: what is paid for, and what of the image still shows."""
        blocks = self.blocks
        if self.image_end:
            blocks += blocks_of(self.image_end)
            for index in self.chunks:
                hidden = self.image_end - (index << CHUNK_SHIFT)
                if hidden > 0:
                    blocks -= blocks_of(min(hidden, CHUNK_SIZE))
        return blocks * (BLOCK_SIZE // 512)


def _overlaps(index: int, start: int, end: int) -> bool:
    base = index << CHUNK_SHIFT
    return base < end and start < base + CHUNK_SIZE
