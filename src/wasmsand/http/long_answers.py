"""JSON answers that may be long, made on a thread, in pieces.

Rules: no step of it keeps the interpreter busy for long, because the event loop needs it
too: text and lists are encoded piece by piece. What is made is sent as it is, while whoever
answers keeps the place in the quota that the answer is counted in.
"""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import msgspec
from starlette.responses import Response

from wasmsand.http.streaming import Emit, Streaming
from wasmsand.wire import strict_json

_JSON = "application/json"
_TEXT_PIECE = 192 * 1024
"""Bytes of text that are encoded at once; a multiple of 3, for base64."""
_LIST_PIECE = 500
"""Items of a list, likewise."""
_SENT_AT_ONCE = 256 * 1024


def object_with_bytes(plain: Mapping[str, object], data: Mapping[str, bytes]) -> list[bytes]:
    """A JSON object: the fields of `plain`, and each of `data` as text, or as base64 in the
    field of that name if it is not UTF-8."""
    pieces = [strict_json.encode(plain).rstrip(b"}\n")]
    for name, content in data.items():
        try:
            found, field = list(_text_pieces(content)), name
        except UnicodeDecodeError:
            found, field = list(_base64_pieces(content)), f"{name}_base64"
        pieces.append(f'{"," if plain or len(pieces) > 1 else ""}"{field}":"'.encode("ascii"))
        pieces += found
        pieces.append(b'"')
    pieces.append(b"}\n")
    return pieces


def object_with_list(name: str, items: Sequence[object]) -> list[bytes]:
    """A JSON object with one field: a list."""
    pieces = [f'{{"{name}":['.encode("ascii")]
    for begin in range(0, len(items), _LIST_PIECE):
        batch = strict_json.encode(msgspec.to_builtins(items[begin : begin + _LIST_PIECE]))
        pieces.append((b"," if begin else b"") + batch.strip()[1:-1])
    pieces.append(b"]}\n")
    return pieces


def _text_pieces(content: bytes) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    for begin in range(0, len(content), _TEXT_PIECE):
        text = decoder.decode(content[begin : begin + _TEXT_PIECE])
        yield json.dumps(text)[1:-1].encode("ascii")
    decoder.decode(b"", final=True)


def _base64_pieces(content: bytes) -> Iterator[bytes]:
    for begin in range(0, len(content), _TEXT_PIECE):
        yield base64.b64encode(content[begin : begin + _TEXT_PIECE])


def size_of(pieces: Sequence[bytes]) -> int:
    """Bytes of an answer."""
    return sum(map(len, pieces))


def answer(pieces: list[bytes], held: ExitStack) -> Response:
    """The answer. `held` is closed when it has been sent, or now if it is short."""
    size = size_of(pieces)
    if size <= _SENT_AT_ONCE:
        held.close()
        return Response(b"".join(pieces), media_type=_JSON)

    async def send(emit: Emit) -> None:
        pieces.reverse()
        while pieces:
            batch, length = [], 0
            while pieces and length < _SENT_AT_ONCE:
                batch.append(pieces.pop())
                length += len(batch[-1])
            await emit(b"".join(batch))

    return Streaming(send, _JSON, held=held, headers={"Content-Length": str(size)})
