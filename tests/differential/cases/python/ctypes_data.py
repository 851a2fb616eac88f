"""Data of C: structures, unions, arrays, buffers, pointers, and what they share memory with."""

import ctypes
from ctypes import (
    POINTER, BigEndianStructure, Structure, Union, byref, c_bool, c_char, c_double, c_float,
    c_int, c_int8, c_int16, c_int32, c_int64, c_ubyte, c_uint16, c_uint32, cast,
    create_string_buffer, create_unicode_buffer, memmove, memset, pointer, sizeof, string_at,
)  # fmt: skip


class Header(BigEndianStructure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("magic", c_uint32), ("version", c_uint16), ("name", c_char * 6)]


class Flags(Structure):
    _fields_ = [("low", c_uint32, 3), ("high", c_uint32, 5), ("rest", c_uint32, 24)]


class Point(Structure):
    _fields_ = [("x", c_double), ("y", c_float), ("tag", c_int8)]


class Word(Union):
    _fields_ = [("whole", c_uint32), ("bytes", c_ubyte * 4)]


header = Header.from_buffer_copy(b"\x01\x02\x03\x04\x00\x07sample")
print(hex(header.magic), header.version, header.name, bytes(header), sizeof(Header))
flags = Flags(5, 17, 1 << 20)
print(flags.low, flags.high, flags.rest, bytes(flags), sizeof(flags))
flags.low = 9
print(flags.low, Flags.high.bit_offset, Flags.high.bit_size, Point.tag.offset, Point.tag.size)
point = Point(y=2.5, tag=-3)
print(point.x, point.y, point.tag, sizeof(Point), ctypes.alignment(Point))
word = Word(whole=0x01020304)
word.bytes[3] = 0xFF
print(hex(word.whole), list(word.bytes))

numbers = (c_int32 * 5)(*range(5))
view = memoryview(numbers).cast("B").cast("i")
view[2] = 99
print(list(numbers), numbers[1:4], len(numbers), sizeof(numbers), view.tolist())
source = bytearray(b"abcdefgh")
shared = (c_int16 * 4).from_buffer(source)
shared[0] = 0x4142
print(source, c_int64.from_buffer(source).value)

buffer = create_string_buffer(b"hello", 10)
print(buffer.raw, buffer.value, sizeof(buffer), string_at(buffer, 3))
memmove(buffer, b"HE", 2)
memset(byref(buffer, 3), ord("x"), 2)
print(buffer.value, create_unicode_buffer("héé").value)
number = c_int(7)
where = pointer(number)
where.contents.value += 1
print(number.value, where[0], bool(POINTER(c_int)()), cast(where, POINTER(c_ubyte))[0])
print(c_int8(200).value, c_uint16(-1).value, c_bool(3).value, c_float(0.1).value, c_int(5) == c_int(5))

for wrong in (lambda: c_int("x"), lambda: numbers[9], lambda: Point(1, 2, 3, 4), lambda: c_char(b"xx")):
    try:
        wrong()
    except (TypeError, IndexError, ValueError) as error:
        print(type(error).__name__, error)
