"""Calls of host functions from Python code in a sandbox. The host imports this file too: both sides
encode values with it.

How it works: a call is a question of `input()`, which the host answers (`on_input`). Long values go
through files. Rules: only plain values are carried, never code: what the sandbox sends is decoded
into the types listed in `decode`, and nothing else. It runs on the image's Python and on the
host's, and needs only the standard library.
"""

from __future__ import annotations

import base64
import io
import json
import os
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath, PurePosixPath
from typing import Any

TAG = "$"
INLINE_MAX = 15_000
"""Characters of a message that are not sent through a file; quoted, they fit in a reply."""
SHOWN_MAX = 20_000
PLAIN = (bool, int, float, str, type(None))
SEQUENCES: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
TEXTS: dict[str, Any] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
    "path": PurePosixPath,
}


class FinalAnswer(BaseException):
    """Ends the code: it has called `final_answer`."""


def encode(value: Any) -> Any:
    """`value` as JSON. Raises `TypeError` for what cannot be carried."""
    if value is None or isinstance(value, bool):
        return value
    for plain in (int, float, str):
        if isinstance(value, plain):
            return plain(value)  # subclasses become what they are derived from
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        if all(isinstance(key, str) and key != TAG for key in value):
            return {str(key): encode(item) for key, item in value.items()}
        return {TAG: "dict", "v": [[encode(key), encode(item)] for key, item in value.items()]}
    for name, kind in SEQUENCES.items():
        if isinstance(value, kind):
            return {TAG: name, "v": [encode(item) for item in value]}
    if isinstance(value, bytes | bytearray):
        return {TAG: "bytes", "v": base64.b64encode(value).decode()}
    return _encode_rare(value)


def _encode_rare(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        return {TAG: type(value).__name__, "v": value.isoformat()}
    if isinstance(value, timedelta):
        return {TAG: "timedelta", "v": value.total_seconds()}
    if isinstance(value, complex):
        return {TAG: "complex", "v": [value.real, value.imag]}
    if isinstance(value, Decimal):
        return {TAG: "decimal", "v": str(value)}
    if isinstance(value, PurePath):
        return {TAG: "path", "v": str(value)}
    module = type(value).__module__
    if module.startswith("PIL.") and hasattr(value, "save"):
        stream = io.BytesIO()
        value.save(stream, "PNG")
        return {TAG: "image", "v": base64.b64encode(stream.getvalue()).decode()}
    if module == "numpy" and hasattr(value, "tolist"):
        if hasattr(value, "shape") and value.shape:
            return {TAG: "ndarray", "v": encode(value.tolist()), "dtype": str(value.dtype)}
        return encode(value.tolist())
    raise TypeError(f"a value of type {type(value).__name__} cannot be carried")


def decode(data: Any, *, make_objects: bool = False) -> Any:
    """The value that `encode` has encoded. Images and arrays are bytes and lists, unless
    `make_objects`, which needs the packages of their types. Raises `ValueError`."""
    if isinstance(data, PLAIN):
        return data
    if isinstance(data, list):
        return [decode(item, make_objects=make_objects) for item in data]
    if not isinstance(data, dict):
        raise ValueError("not JSON")
    if TAG not in data:
        return {key: decode(item, make_objects=make_objects) for key, item in data.items()}
    try:
        return _decode_tagged(data[TAG], data.get("v"), data.get("dtype"), make_objects)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"not a value: {error}") from None


def _decode_tagged(tag: Any, value: Any, dtype: Any, make_objects: bool) -> Any:
    if tag in SEQUENCES:
        return SEQUENCES[tag](decode(item, make_objects=make_objects) for item in value)
    if tag == "dict":
        return {
            decode(key, make_objects=make_objects): decode(item, make_objects=make_objects)
            for key, item in value
        }
    if tag in TEXTS:
        return TEXTS[tag](value)
    if tag == "bytes":
        return base64.b64decode(value)
    if tag == "timedelta":
        return timedelta(seconds=value)
    if tag == "complex":
        return complex(*value)
    if tag == "image":
        return _image(base64.b64decode(value), make_objects)
    if tag == "ndarray":
        return _array(decode(value), dtype, make_objects)
    raise ValueError("not a value")


def _image(content: bytes, make_objects: bool) -> Any:
    if make_objects:
        try:
            from PIL import Image

            return Image.open(io.BytesIO(content))
        except ImportError:
            pass
    return content


def _array(items: Any, dtype: Any, make_objects: bool) -> Any:
    if make_objects:
        try:
            import numpy

            return numpy.array(items, dtype=dtype)
        except ImportError:
            pass
    return items


def shown(value: Any) -> Any:
    """`value` encoded; as text if it cannot be carried."""
    try:
        return encode(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)[:SHOWN_MAX]


# The guest's side.


class ToolCaller:
    """Calls functions of the host."""

    def __init__(self, token: str, directory: str) -> None:
        self._token = token
        self._directory = directory
        self._count = 0

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        """Call the host's function."""
        values = {key: shown(value) for key, value in named.items()}
        message = json.dumps([name, [shown(value) for value in args], values])
        if len(message) > INLINE_MAX:
            self._count += 1
            os.makedirs(self._directory, exist_ok=True)
            path = f"{self._directory}/call-{self._count}"
            with open(path, "w") as file:
                file.write(message)
            message = json.dumps(path)
        answer = json.loads(input(self._token + message))
        if "path" in answer:
            with open(answer["path"]) as file:
                content = file.read()
            os.unlink(answer["path"])
            answer = json.loads(content)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return decode(answer["value"], make_objects=True)

    def function(self, name: str, description: str) -> Any:
        """A function that calls the host's function."""

        def call(*args: Any, **named: Any) -> Any:
            return self.call(name, *args, **named)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = description
        return call

    def final_answer(self, *args: Any, **named: Any) -> None:
        """Give the final answer, which ends the code."""
        self.call("final_answer", *args, **named)
        raise FinalAnswer
