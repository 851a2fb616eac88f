"""Writes tar archives in POSIX (pax) format, which GNU tar, bsdtar and Python read.

Owns `header` and `global_header`. Rules: a plain ustar header is used where it suffices, pax
records otherwise; sparse files are stored in GNU tar's sparse format 1.0. The caller writes the
header, `stored_size` bytes of content (the extents one after another), then `padding` for that
size, and `END` after the last member.
"""

from __future__ import annotations

from typing import Final

from wasmsand.machine.tar_format import (
    BLOCK,
    OWN_KEYS,
    SECOND,
    Member,
    MemberKind,
    padding,
    sum_of_block,
)

_NAME_BYTES: Final = 100
_SPARSE: Final = b"GNU.sparse."
_SIZE_END: Final = 8**11
_ID_END: Final = 8**7
"""Larger numbers do not fit into the fields of a header."""


def global_header(records: dict[bytes, bytes]) -> bytes:
    """A global header with records of our own."""
    data = b"".join(_record(OWN_KEYS + key, value) for key, value in records.items())
    return _block(b"././@PaxHeader", b"g", 0, 0, 0, len(data), 0, b"") + data + padding(len(data))


def stored_size(member: Member) -> int:
    """The size of the content after the header."""
    if member.kind is not MemberKind.FILE:
        return 0
    if member.extents is None:
        return member.size
    return sum(length for _, length in member.extents)


def header(member: Member) -> bytes:
    """Everything before a member's content."""
    records: list[tuple[bytes, bytes]] = []
    name = member.name or b"."
    if member.kind is MemberKind.DIRECTORY:
        name += b"/"
    size = stored_size(member)
    extents = b""
    if member.extents is not None:
        extents = _extents(member.extents)
        size += len(extents)
        records += [
            (_SPARSE + b"major", b"1"),
            (_SPARSE + b"minor", b"0"),
            (_SPARSE + b"name", name),
            (_SPARSE + b"realsize", b"%d" % member.size),
        ]
    for key, text in ((b"path", name), (b"linkpath", member.target)):
        if len(text) > _NAME_BYTES or not text.isascii():
            records.append((key, text))
    stored, uid, gid = size, member.uid, member.gid
    if not 0 <= size < _SIZE_END:
        records.append((b"size", b"%d" % size))
        stored = 0
    if not 0 <= uid < _ID_END:
        records.append((b"uid", b"%d" % uid))
        uid = 0
    if not 0 <= gid < _ID_END:
        records.append((b"gid", b"%d" % gid))
        gid = 0
    seconds, rest = divmod(member.mtime_ns, SECOND)
    if rest or not 0 <= seconds < _SIZE_END:
        records.append((b"mtime", decimal_time(member.mtime_ns)))
        seconds = 0
    records += [(OWN_KEYS + key, value) for key, value in member.own.items()]
    own = _block(
        name[:_NAME_BYTES],
        member.kind.value,
        member.mode & 0o7777,
        uid,
        gid,
        stored,
        seconds,
        member.target[:_NAME_BYTES],
    )
    return _extended(records) + own + extents


def decimal_time(nanoseconds: int) -> bytes:
    """A time in seconds with a fraction, as in pax records."""
    seconds, rest = divmod(abs(nanoseconds), SECOND)
    return b"%s%d.%09d" % (b"-" if nanoseconds < 0 else b"", seconds, rest)


def _extended(records: list[tuple[bytes, bytes]]) -> bytes:
    if not records:
        return b""
    data = b"".join(_record(key, value) for key, value in records)
    if not _is_utf8(data):
        data = _record(b"hdrcharset", b"BINARY") + data
    return _block(b"././@PaxHeader", b"x", 0, 0, 0, len(data), 0, b"") + data + padding(len(data))


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _record(key: bytes, value: bytes) -> bytes:
    """`LENGTH key=value`. The length includes its own digits."""
    rest = b" %s=%s\n" % (key, value)
    length = len(rest) + 2
    if length > 99 or length < 10:
        length -= 1
        while len(rest) + len(b"%d" % length) != length:
            length += 1
    return b"%d%s" % (length, rest)


def _extents(extents: list[tuple[int, int]]) -> bytes:
    """The map of a sparse file, which precedes its content."""
    numbers = [len(extents), *(number for extent in extents for number in extent)]
    text = b"".join(b"%d\n" % number for number in numbers)
    return text + padding(len(text))


def _block(
    name: bytes,
    letter: bytes,
    mode: int,
    uid: int,
    gid: int,
    size: int,
    seconds: int,
    target: bytes,
) -> bytes:
    fields = (
        name.ljust(_NAME_BYTES, b"\0"),
        b"%07o\0%07o\0%07o\0%011o\0%011o\0" % (mode, uid, gid, size, seconds),
        b" " * 8,
        letter,
        target.ljust(_NAME_BYTES, b"\0"),
        b"ustar\x0000",
    )
    block = b"".join(fields).ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum_of_block(block) + block[156:]
