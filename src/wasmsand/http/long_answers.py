"""Long JSON responses, encoded on a thread, in pieces.

Rules: text and lists are encoded piece by piece, so that no step holds the GIL for long; the
event loop needs it too. While a response is sent, its handler keeps the place in the quota
that the response counts against.
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
"""Bytes of text encoded in one step; a multiple of 3, for base64."""
_LIST_PIECE = 500
"""Items of a list encoded in one step."""
_SENT_AT_ONCE = 256 * 1024


def object_with_bytes(plain: Mapping[str, object], data: Mapping[str, bytes]) -> list[bytes]:
    """A JSON object with the fields of `plain` and `data`. A value of `data` that is not UTF-8
    is sent as base64, in a field called `NAME_base64`."""
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
    """A JSON object with one field, a list."""
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
    """The size of a response in bytes."""
    return sum(map(len, pieces))


def answer(pieces: list[bytes], held: ExitStack) -> Response:
    """The response. `held` is closed when the response has been sent, or now if it is short."""
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
