"""Reads untrusted tar archives.

Owns `TarReader`: v7, ustar, pax and GNU archives, with long names and sparse files (in all four
formats of GNU tar). Rules: an archive is read in one pass, block by block. An extended header has
at most ARCHIVE_HEADER_BYTES bytes, a member at most ARCHIVE_HEADERS_PER_MEMBER extended headers, a
name fewer than PATH_MAX bytes and no NUL. Only the pax records used here are kept. Nothing
recurses. Every defect raises `ArchiveRejected`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from wasmsand.kernel.limits import (
    ARCHIVE_HEADER_BYTES,
    ARCHIVE_HEADERS_PER_MEMBER,
    ARCHIVE_RECORDS_MAX,
    FILE_SIZE_MAX,
    IO_CHUNK,
    PATH_MAX,
)
from wasmsand.machine.tar_format import (
    BLOCK,
    OWN_KEYS,
    SECOND,
    ArchiveRejected,
    Member,
    MemberKind,
    sum_of_block,
)
from wasmsand.machine.tar_source import Source

_KINDS: Final = {kind.value: kind for kind in MemberKind if kind is not MemberKind.OTHER} | {
    b"\0": MemberKind.FILE,
    b"7": MemberKind.FILE,
    b"S": MemberKind.FILE,
}
_PAX: Final = (b"x", b"X")
_PAX_GLOBAL: Final = b"g"
_GNU_NAMES: Final = {b"L": b"path", b"K": b"linkpath"}
_KEYS: Final = frozenset((b"path", b"linkpath", b"size", b"mtime", b"uid", b"gid"))
_SPARSE: Final = b"GNU.sparse."
_NUMBER: Final = re.compile(rb"[0-9]{1,20}\Z")
_TIME: Final = re.compile(rb"(-?)([0-9]{1,19})(?:\.([0-9]*))?\Z")
_OCTAL: Final = re.compile(rb"[0-7]+\Z")
_ID_END: Final = 1 << 32
_SECONDS_END: Final = 1 << 63

Extents = list[tuple[int, int]]


class TarReader:
    """Iterates over the members of one archive, in order. `pieces` reads the content of the
    current member."""

    def __init__(self, source: Source, extents_max: int) -> None:
        """`extents_max` is the most data extents that a sparse file may have."""
        self._source = source
        self._extents_max = extents_max
        self._globals: dict[bytes, bytes] = {}
        self.own: dict[bytes, bytes] = {}
        """Our own records from the global headers read so far."""
        self._left = 0
        """Bytes of the current member's content that are still unread."""
        self._padding = 0
        self._member: Member | None = None

    def __iter__(self) -> Iterator[Member]:
        first = True
        while (member := self._next(first)) is not None:
            first = False
            self._member = member
            yield member

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """The current member's content as (offset, data), without holes; at most IO_CHUNK bytes at
        a time."""
        member = self._member
        assert member is not None
        extents = [(0, member.size)] if member.extents is None else member.extents
        if member.kind is not MemberKind.FILE:
            extents = []
        for offset, length in extents:
            end = offset + length
            while offset < end:
                data = self._read(min(end - offset, IO_CHUNK))
                self._left -= len(data)
                yield offset, data
                offset += len(data)

    # Blocks.

    def _read(self, size: int) -> bytes:
        data = self._source.read(size)
        if len(data) != size:
            raise ArchiveRejected("cut short")
        return data

    def _skip_content(self) -> None:
        rest = self._left + self._padding
        while rest:
            rest -= len(self._read(min(rest, IO_CHUNK)))
        self._left = self._padding = 0

    def _header_data(self, size: int, most: int) -> bytes:
        """The content of an extended header."""
        if size > most:
            raise ArchiveRejected(f"a header has {size} bytes; the limit is {most}")
        return self._read(size + -size % BLOCK)[:size]

    # Headers.

    def _next(self, first: bool) -> Member | None:
        self._skip_content()
        records: dict[bytes, bytes] = {}
        pairs: list[bytes] = []
        """For sparse format 0.0: offsets and lengths, alternating."""
        for count in range(ARCHIVE_HEADERS_PER_MEMBER + 1):
            block = self._source.read(BLOCK)
            if len(block) != BLOCK or not block.strip(b"\0"):
                if block and len(block) != BLOCK:
                    raise ArchiveRejected("cut short")
                if (first and not block) or count:
                    raise ArchiveRejected("empty" if first else "cut short")
                return None
            _check_sum(block)
            letter, size = block[156:157], _number(block[124:136])
            if size < 0:
                raise ArchiveRejected("negative size")
            if letter in _PAX:
                _records(self._header_data(size, ARCHIVE_HEADER_BYTES), records, pairs)
            elif letter == _PAX_GLOBAL:
                _records(self._header_data(size, ARCHIVE_HEADER_BYTES), self._globals, [])
                self.own = _own(self._globals)
            elif letter in _GNU_NAMES:
                name = self._header_data(size, PATH_MAX + 1).split(b"\0", 1)[0]
                records.setdefault(_GNU_NAMES[letter], name)
            else:
                return self._described(block, size, self._globals | records, pairs)
        raise ArchiveRejected(
            f"more than {ARCHIVE_HEADERS_PER_MEMBER} extended headers before a member"
        )

    def _described(
        self, block: bytes, size: int, records: dict[bytes, bytes], pairs: list[bytes]
    ) -> Member:
        """The member that a header and the records before it describe."""
        letter = block[156:157]
        kind = _KINDS.get(letter, MemberKind.OTHER)
        name = records.get(_SPARSE + b"name") or records.get(b"path") or _name(block)
        if kind is MemberKind.FILE and letter == b"\0" and name.endswith(b"/"):
            kind = MemberKind.DIRECTORY  # as in v7 archives
        size = _integer(records, b"size", size)
        if kind not in (MemberKind.FILE, MemberKind.OTHER):
            size = 0
        self._left, self._padding = size, -size % BLOCK
        extents = None
        real_size = size
        if letter == b"S":
            extents, real_size = self._old_extents(block)
        elif kind is MemberKind.FILE and _is_sparse(records):
            extents, real_size = self._pax_extents(records, pairs)
        if extents is not None:
            _check_extents(extents, real_size, self._left)
        if kind is MemberKind.FILE and real_size > FILE_SIZE_MAX:
            raise ArchiveRejected(f"file too large: {real_size} bytes")
        return Member(
            name=_plain(name.rstrip(b"/") if kind is MemberKind.DIRECTORY else name),
            kind=kind,
            mode=_number(block[100:108]) & 0o7777,
            uid=_id(_integer(records, b"uid", _number(block[108:116]))),
            gid=_id(_integer(records, b"gid", _number(block[116:124]))),
            size=real_size,
            mtime_ns=_time(records, _number(block[136:148])),
            target=_plain(records.get(b"linkpath") or block[157:257].split(b"\0", 1)[0]),
            extents=extents,
            own=_own(records),
        )

    # Sparse files.

    def _old_extents(self, block: bytes) -> tuple[Extents, int]:
        """Extents in GNU tar's oldest format: in the header and in the blocks after it."""
        extents, real_size = _old_entries(block[386:482]), _number(block[483:495])
        more = block[482]
        while more:
            block = self._read(BLOCK)
            extents += _old_entries(block[:504])
            more = block[504]
            if len(extents) > self._extents_max:
                raise self._too_many_extents()
        return extents, real_size

    def _pax_extents(
        self, records: dict[bytes, bytes], pairs: list[bytes]
    ) -> tuple[Extents | None, int]:
        """Extents from the records (formats 0.0 and 0.1) or from before the content (1.0)."""
        real_size = _integer(records, _SPARSE + b"size", 0)
        real_size = _integer(records, _SPARSE + b"realsize", real_size)
        if records.get(_SPARSE + b"major") == b"1":
            if records.get(_SPARSE + b"minor") != b"0":
                raise ArchiveRejected("unknown sparse format")
            return self._extents_before_content(), real_size
        numbers = pairs
        if _SPARSE + b"map" in records:
            text = records[_SPARSE + b"map"]
            numbers = text.split(b",") if text else []
        elif not pairs and _SPARSE + b"numblocks" not in records:
            return None, self._left
        if len(numbers) % 2 or len(numbers) // 2 > self._extents_max:
            raise self._too_many_extents()
        values = [_decimal(number) for number in numbers]
        return list(zip(values[::2], values[1::2], strict=True)), real_size

    def _extents_before_content(self) -> Extents:
        numbers: list[int] = []
        rest = b""
        wanted = 1
        while len(numbers) < wanted:
            if self._left < BLOCK:
                raise ArchiveRejected("sparse map cut short")
            *lines, rest = (rest + self._read(BLOCK)).split(b"\n")
            self._left -= BLOCK
            if not lines:
                raise ArchiveRejected("sparse map without numbers")
            numbers += [_decimal(line) for line in lines[: wanted - len(numbers)]]
            if numbers and wanted == 1:
                if numbers[0] > self._extents_max:
                    raise self._too_many_extents()
                wanted += 2 * numbers[0]
                numbers += [_decimal(line) for line in lines[1:wanted]]
        return list(zip(numbers[1::2], numbers[2::2], strict=True))

    def _too_many_extents(self) -> ArchiveRejected:
        return ArchiveRejected(f"a sparse file has more than {self._extents_max} extents")


def _check_sum(block: bytes) -> None:
    field = block[148:156]
    told = _number(field)
    total = sum_of_block(block) - sum(field) + 8 * 32  # the field counts as spaces
    # Some old programs summed signed characters.
    if told != total and told != total - 256 * _large(block[:148] + block[156:]):
        raise ArchiveRejected("wrong checksum in a header")


def _large(data: bytes) -> int:
    return sum(byte > 127 for byte in data)


@lru_cache(maxsize=1024)  # modes, owners and empty fields repeat
def _number(digits: bytes) -> int:
    """A number in a header: octal, or GNU's binary format."""
    if digits[0] in (0x80, 0xFF):
        number = int.from_bytes(digits[1:], "big")
        return number - (1 << 8 * (len(digits) - 1)) if digits[0] == 0xFF else number
    text = digits.split(b"\0", 1)[0].strip(b" ")
    if not text:
        return 0
    if not _OCTAL.match(text):
        raise ArchiveRejected("invalid number in a header")
    return int(text, 8)


def _name(block: bytes) -> bytes:
    name = block[:100].split(b"\0", 1)[0]
    if block[257:263] == b"ustar\0":  # GNU tar stores other data there
        prefix = block[345:500].split(b"\0", 1)[0]
        if prefix:
            return prefix + b"/" + name
    return name


def _plain(name: bytes) -> bytes:
    if len(name) >= PATH_MAX:
        raise ArchiveRejected(f"name too long: {len(name)} bytes")
    if b"\0" in name:
        raise ArchiveRejected("name contains NUL")
    return name


def _records(data: bytes, records: dict[bytes, bytes], pairs: list[bytes]) -> None:
    """Add the records of a pax header that we use to `records`. Format: `LENGTH key=value`."""
    position = 0
    while position < len(data):
        space = data.find(b" ", position, position + 21)
        if space < 0:
            if data[position:].strip(b"\0"):
                raise ArchiveRejected("pax record without a length")
            return
        end = position + _decimal(data[position:space])
        equals = data.find(b"=", space, end)
        if end > len(data) or equals < 0 or data[end - 1 : end] != b"\n":
            raise ArchiveRejected("pax record with a wrong length")
        key, value = data[space + 1 : equals], data[equals + 1 : end - 1]
        if key in (_SPARSE + b"offset", _SPARSE + b"numbytes"):
            pairs.append(value)
        elif key in _KEYS or key.startswith((_SPARSE, OWN_KEYS)):
            if value:
                records[key] = value
            else:
                records.pop(key, None)
            if len(records) > ARCHIVE_RECORDS_MAX:
                raise ArchiveRejected("too many pax records")
        position = end


def _own(records: dict[bytes, bytes]) -> dict[bytes, bytes]:
    own = {}
    for key in records:
        if key.startswith(OWN_KEYS):
            own[key[len(OWN_KEYS) :]] = records[key]
    return own


def _is_sparse(records: dict[bytes, bytes]) -> bool:
    for key in records:  # noqa: SIM110  # faster than any()
        if key.startswith(_SPARSE):
            return True
    return False


def _decimal(text: bytes) -> int:
    if not _NUMBER.match(text):
        raise ArchiveRejected("invalid number in a pax record")
    return int(text)


def _integer(records: dict[bytes, bytes], key: bytes, default: int) -> int:
    text = records.get(key)
    return default if text is None else _decimal(text)


def _id(number: int) -> int:
    if not 0 <= number < _ID_END:
        raise ArchiveRejected(f"invalid owner: {number}")
    return number


def _time(records: dict[bytes, bytes], seconds: int) -> int:
    text = records.get(b"mtime")
    if text is None:
        nanoseconds = seconds * SECOND
    else:
        match = _TIME.match(text)
        if match is None:
            raise ArchiveRejected("invalid time")
        sign, whole, fraction = match.groups()
        nanoseconds = int(whole) * SECOND + int(((fraction or b"") + b"000000000")[:9])
        nanoseconds = -nanoseconds if sign else nanoseconds
    if not -_SECONDS_END <= nanoseconds // SECOND < _SECONDS_END:
        raise ArchiveRejected("time out of range")
    return nanoseconds


def _old_entries(data: bytes) -> Extents:
    entries = []
    for start in range(0, len(data), 24):
        if not data[start]:
            break
        entry = data[start : start + 24]
        entries.append((_number(entry[:12]), _number(entry[12:])))
    return entries


def _check_extents(extents: Extents, size: int, stored: int) -> None:
    end = 0
    for offset, length in extents:
        if offset < end or length < 0:
            raise ArchiveRejected("overlapping sparse map")
        end = offset + length
    if end > size or sum(length for _, length in extents) != stored:
        raise ArchiveRejected("sparse map does not match the file")
