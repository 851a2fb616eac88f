"""A binary format written and parsed: struct, memoryview, enum, checksums, bit fields."""

import struct
import zlib
from enum import IntEnum
from io import BytesIO


class Kind(IntEnum):
    TEXT = 1
    NUMBER = 2
    LIST = 3


def encode(value):
    if isinstance(value, str):
        body = value.encode()
        return struct.pack("!BI", Kind.TEXT, len(body)) + body
    if isinstance(value, int):
        return struct.pack("!Bq", Kind.NUMBER, value)
    return struct.pack("!BH", Kind.LIST, len(value)) + b"".join(map(encode, value))


def decode(stream):
    kind = Kind(stream.read(1)[0])
    match kind:
        case Kind.TEXT:
            (size,) = struct.unpack("!I", stream.read(4))
            return stream.read(size).decode()
        case Kind.NUMBER:
            return struct.unpack("!q", stream.read(8))[0]
        case Kind.LIST:
            (count,) = struct.unpack("!H", stream.read(2))
            return [decode(stream) for _ in range(count)]


value = ["name", -5, ["nested", 2**40, []], "ünï"]
packed = encode(value)
framed = packed + struct.pack("!I", zlib.crc32(packed))
print(framed.hex(), decode(BytesIO(packed)) == value, len(framed))
try:
    decode(BytesIO(b"\x09"))
except ValueError as error:
    print(error)
try:
    struct.unpack("!I", b"abc")
except struct.error as error:
    print(error)
view = memoryview(bytearray(framed))
view[0:1] = b"\x07"
print(view[:4].tolist(), view.nbytes, (0b1011_0110 >> 2) & 0b111, int.from_bytes(b"\x80\x00", "big", signed=True))
print((1234).to_bytes(4, "little"), bytes.fromhex("de ad"), b"%d-%s" % (5, b"x"), bytearray(b"abc").replace(b"b", b""))
