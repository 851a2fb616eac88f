"""DNS messages, as far as a resolver for one sandbox needs them.

Owns `Question` and the form of answers. Rules: a question comes from a guest and is checked
completely; an answer never exceeds 512 bytes, the size that every program accepts.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

A: Final = 1
PTR: Final = 12
AAAA: Final = 28
_INTERNET: Final = 1
NO_ERROR, FORMAT_ERROR, SERVER_FAILURE, NO_SUCH_NAME, NOT_IMPLEMENTED = 0, 1, 2, 3, 4
_HEADER: Final = struct.Struct(">HHHHHH")
_RESPONSE, _AUTHORITATIVE, _RECURSION_ASKED, _RECURSION = 0x8000, 0x0400, 0x0100, 0x0080
_OPCODES: Final = 0x7800
_NAME_OF_QUESTION: Final = b"\xc0\x0c"
_TTL: Final = 60
_LABEL_MAX: Final = 63
_NAME_MAX: Final = 255
_REVERSE: Final = ".in-addr.arpa"


class BadQuestion(ValueError):
    """The message is not a question that can be answered."""


class Question(NamedTuple):
    """What a guest asks."""

    identifier: int
    recursion_asked: bool
    name: str
    """In lower case, without a dot at the end. Only names in ASCII exist."""
    kind: int
    encoded: bytes
    """The question as it was sent, which the answer repeats."""


def parse(message: bytes) -> Question:
    """The question in a message. Raises `BadQuestion`."""
    if len(message) < _HEADER.size:
        raise BadQuestion("no header")
    identifier, flags, questions, _, _, _ = _HEADER.unpack_from(message)
    if flags & (_RESPONSE | _OPCODES) or questions != 1:
        raise BadQuestion("not one question")
    labels, position = [], _HEADER.size
    while True:
        if position >= len(message):
            raise BadQuestion("the name has no end")
        size = message[position]
        position += 1
        if not size:
            break
        label = message[position : position + size]
        position += size
        if size > _LABEL_MAX or len(label) < size or position - _HEADER.size > _NAME_MAX:
            raise BadQuestion("the name is too long")
        labels.append(label)
    end = position + 4
    if end > len(message):
        raise BadQuestion("no type")
    kind, network = struct.unpack_from(">HH", message, position)
    if network != _INTERNET:
        raise BadQuestion("not about the Internet")
    name = ".".join([label.decode("latin-1") for label in labels]).lower()
    if any(b"." in label or b"\0" in label for label in labels):
        raise BadQuestion("a dot within a label")
    return Question(
        identifier, bool(flags & _RECURSION_ASKED), name, kind, message[_HEADER.size : end]
    )


def answer(question: Question, code: int, records: tuple[bytes, ...] = ()) -> bytes:
    """An answer with the contents of records of the type that was asked for."""
    flags = _RESPONSE | _AUTHORITATIVE | _RECURSION | code
    if question.recursion_asked:
        flags |= _RECURSION_ASKED
    header = _HEADER.pack(question.identifier, flags, 1, len(records), 0, 0)
    body = b"".join(
        _NAME_OF_QUESTION
        + struct.pack(">HHIH", question.kind, _INTERNET, _TTL, len(content))
        + content
        for content in records
    )
    return header + question.encoded + body


def encode_name(name: str) -> bytes:
    """A name as the content of a record."""
    labels = [label.encode("ascii") for label in name.split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def address_in_reverse_name(name: str) -> bytes | None:
    """The IPv4 address in a name such as `1.0.18.198.in-addr.arpa`."""
    if not name.endswith(_REVERSE):
        return None
    parts = name.removesuffix(_REVERSE).split(".")
    if len(parts) != 4 or not all(part.isdecimal() and int(part) < 256 for part in parts):
        return None
    return bytes(int(part) for part in reversed(parts))
