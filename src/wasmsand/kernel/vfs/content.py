"""The bytes of one regular file: sparse, chunked, copy-on-write.

Owns `FileContent`: reading, writing, resizing and allocating. Its data structure is in `chunks.py`.
Rules: the cost of an operation depends on the chunks and bytes that it touches, never on the
apparent size of a file. Forking and sharing copy the dict of chunks. The host memory held is at
most 1.25 times what is paid for, plus 512 bytes per chunk.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import repeat
from typing import Final

from wasmsand.kernel.limits import FREED_PER_CALL
from wasmsand.kernel.vfs.chunks import (
    CHUNK_MASK,
    CHUNK_SHIFT,
    CHUNK_SIZE,
    END_OF_CHUNKS,
    NO_CHUNKS,
    NO_ORDER,
    NO_PRIVATE,
    PUNCHED,
    ChunkTable,
)
from wasmsand.kernel.vfs.filesystem import Data
from wasmsand.kernel.vfs.model import BLOCK_SIZE
from wasmsand.kernel.vfs.space import Space, blocks_of

BLOCKS_PER_CHUNK: Final = CHUNK_SIZE // BLOCK_SIZE
_BLOCK_SHIFT = BLOCK_SIZE.bit_length() - 1
_BLOCK_MASK: Final = BLOCK_SIZE - 1
_ZEROS = bytes(CHUNK_SIZE)


class FileContent(ChunkTable):
    """The size and bytes of one file."""

    __slots__ = ()

    @classmethod
    def of_bytes(cls, data: bytes, space: Space) -> FileContent:
        """New content, which fits into one chunk. ENOSPC if there is no room."""
        assert len(data) <= CHUNK_SIZE
        content = cls()
        if data:
            content.blocks = blocks_of(len(data))
            space.take_blocks(content.blocks)
            content._put(0, bytearray(data))
            content.private.add(0)
            content.size = len(data)
        return content

    def fork(self) -> FileContent:
        """A copy that shares its chunks with this content. Only the copy may be written from now
        on."""
        twin = FileContent()
        twin.size = self.size
        twin.chunks = dict(self.chunks) if self.chunks else NO_CHUNKS
        twin.order = self.order.copy() if self.order else NO_ORDER
        twin.private = set() if self.chunks else NO_PRIVATE
        twin.reserved = dict(self.reserved) if self.reserved else None
        twin.blocks = self.blocks
        twin.image = self.image
        twin.image_end = self.image_end
        twin.key = self.key
        twin.key_of_image = self.key_of_image
        twin.memory_key = self.memory_key
        return twin

    def share(self) -> FileContent:
        """A copy without reserved blocks that shares its chunks with this content. Both may be
        written from now on. A tree that keeps the copy pays for its blocks."""
        twin = self.fork()
        if self.private:
            self.private = set()
        if twin.reserved:
            twin.blocks -= twin._surplus()
            twin.reserved = None
            twin.order = [index for index in twin.order if index in twin.chunks]
        twin.key_of_image = False
        return twin

    # Reading.

    def read(self, offset: int, size: int) -> bytes:
        """Read up to `size` bytes; fewer only at end of file."""
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
        # Join whole chunks, and one shared block of zeros for holes, so that bytes are copied once.
        pieces: list[Data] = [self._piece(first, offset & CHUNK_MASK, CHUNK_SIZE)]
        for index in range(first + 1, last):
            chunk = self.chunks.get(index)
            if chunk is not None:
                pieces.append(chunk)
                if len(chunk) < CHUNK_SIZE:
                    pieces.append(memoryview(_ZEROS)[len(chunk) :])
            elif index << CHUNK_SHIFT >= self.image_end:
                pieces.append(_ZEROS)
            else:
                pieces.append(self._piece(index, 0, CHUNK_SIZE))
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
        """Write as much as fits and return how much; ENOSPC, without a change, if nothing fits."""
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
                        free = space.limit_blocks - space.used_blocks - space.discarded_blocks
                        if self.reserved or more > free:
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
        """Make a private chunk that can be written from `start` up to the returned end. Takes the
        blocks first. An end at or before `start` means that there is no room and nothing was
        changed."""
        chunk = self.chunks.get(index)
        base = index << CHUNK_SHIFT
        have = self._present(index)
        paid = self._paid(index)
        needed = blocks_of(max(have, stop))
        if needed - paid > space.free_blocks():
            affordable = (paid + space.free_blocks()) * BLOCK_SIZE
            if affordable < have or affordable <= start:
                return 0
            stop = affordable
            needed = blocks_of(max(have, stop))
        if needed >= paid:
            space.take_blocks(needed - paid)
            self.blocks += needed - paid
        if index not in self.private:
            if start == 0 and stop >= have:
                chunk = bytearray()
            elif chunk is None and have:
                assert self.image is not None
                chunk = bytearray(self.image.slice(base, base + have))
            else:
                chunk = bytearray(chunk or b"")
            self._put(index, chunk)
            self.private.add(index)
        if needed >= paid and self.reserved:
            self.reserved.pop(index, None)
        assert type(chunk) is bytearray
        if start > len(chunk):
            chunk.extend(bytes(start - len(chunk)))
        return stop

    # Resizing and allocating.

    def truncate(self, size: int, space: Space) -> None:
        """Cut the file at `size`, or extend it with a hole."""
        if size <= self.size:
            self._drop((size + CHUNK_MASK) >> CHUNK_SHIFT, END_OF_CHUNKS, space)
            if size & CHUNK_MASK:
                self._shorten(size >> CHUNK_SHIFT, size & CHUNK_MASK, space)
            self.image_end = min(self.image_end, size)
        self.size = size
        self.key = None

    def _drop(self, first: int, end: int, space: Space) -> None:
        """Drop chunks and reservations from index `first` up to, but not including, `end`."""
        low = bisect_left(self.order, first)
        high = bisect_left(self.order, end, low)
        gone = self.order[low:high]
        freed = 0
        if self.reserved:
            for index in [index for index in self.reserved if first <= index < end]:
                freed += self.reserved.pop(index)
                freed -= blocks_of(len(self.chunks.get(index, PUNCHED)))
        if gone:
            del self.order[low:high]
            chunks = list(map(self.chunks.pop, gone, repeat(PUNCHED)))
            paid = sum((length + _BLOCK_MASK) >> _BLOCK_SHIFT for length in map(len, chunks))
            if len(chunks) > FREED_PER_CALL:
                space.discard(chunks, paid)
            freed += paid
            self.private.difference_update(gone)
            if not self.chunks:
                # An emptied dict would keep its size, which nobody pays for.
                self.chunks, self.private = NO_CHUNKS, NO_PRIVATE
        self.blocks -= freed
        space.give_blocks(freed)

    def _shorten(self, index: int, length: int, space: Space, *, keep_room: bool = False) -> None:
        """Shorten a chunk, and free the blocks after it, unless `keep_room` keeps a reservation."""
        chunk = self.chunks.get(index, PUNCHED)
        paid = self._paid(index)
        kept = min(paid, blocks_of(min(length, len(chunk))))
        if self.reserved and index in self.reserved:
            if keep_room:
                kept = paid
            else:
                del self.reserved[index]
                kept = min(paid, max(kept, blocks_of(length)))
                if kept > blocks_of(min(length, len(chunk))):
                    self.reserved[index] = kept
        if len(chunk) > length:
            # A new one, because shortening in place would not free memory.
            self.chunks[index] = bytearray(memoryview(chunk)[:length])
            self.private.add(index)
        self.blocks -= paid - kept
        space.give_blocks(paid - kept)

    def free(self, space: Space) -> None:
        """Free all blocks. The content must not be used afterwards."""
        space.give_blocks(self.blocks)
        if len(self.chunks) > FREED_PER_CALL:
            space.discard(self.chunks.values(), self.blocks - self._surplus())

    def allocate(self, offset: int, length: int, space: Space, *, keep_size: bool) -> None:
        """Reserve blocks for a range, all or (ENOSPC) none."""
        end = offset + length
        first, last = offset >> CHUNK_SHIFT, (end - 1) >> CHUNK_SHIFT
        # Refuse a huge range before visiting each of its chunks.
        known = len(self.chunks) + len(self.reserved or ())
        if (last - first - 1 - known) * BLOCKS_PER_CHUNK > space.free_blocks():
            raise space.full()
        wanted: dict[int, int] = {}
        more = 0
        for index in range(first, last + 1):
            stop = CHUNK_SIZE if index < last else ((end - 1) & CHUNK_MASK) + 1
            needed, paid = blocks_of(max(self._present(index), stop)), self._paid(index)
            if needed > paid:
                wanted[index] = needed
                more += needed - paid
        space.take_blocks(more)
        self.blocks += more
        if wanted:
            before = self.reserved or {}
            more_order = [i for i in wanted if i not in self.chunks and i not in before]
            self.order = sorted(self.order + more_order)
            self.reserved = before | wanted
        if end > self.size and not keep_size:
            self.size = end
        self.key = None

    def punch_hole(self, offset: int, length: int, space: Space) -> None:
        """Make a range read as zeros; whole chunks are freed."""
        end = offset + length
        first, last = offset >> CHUNK_SHIFT, (end - 1) >> CHUNK_SHIFT
        first_whole, end_whole = (offset + CHUNK_MASK) >> CHUNK_SHIFT, end >> CHUNK_SHIFT
        # The partial chunks at the ends first, because they may need room.
        for index in (first, last) if first < last else (first,):
            if not first_whole <= index < end_whole:
                base = index << CHUNK_SHIFT
                self._punch_in_chunk(index, max(offset - base, 0), end - base, space)
        if first_whole < end_whole:
            self._drop(first_whole, end_whole, space)
            for index in range(first_whole, min(end_whole, self._image_chunks())):
                self._put(index, PUNCHED)
        self.key = None

    def _punch_in_chunk(self, index: int, start: int, stop: int, space: Space) -> None:
        chunk = self.chunks.get(index)
        have = self._present(index)
        stop = min(stop, have)
        if stop <= start:
            return
        if start == 0 and stop == have:
            if chunk is not None:
                self._drop(index, index + 1, space)
            if index < self._image_chunks():
                self._put(index, PUNCHED)
        elif chunk is not None and stop == have:
            self._shorten(index, start, space, keep_room=True)
        else:
            if self._make_writable(index, start, stop, space) < stop:
                raise space.full()
            writable = self.chunks[index]
            assert type(writable) is bytearray
            writable[start:stop] = bytes(stop - start)
