"""The messages of a Python session's interpreter, as a hostile program writes them.

An input is what the interpreter writes to its three descriptors during one run: lines, of which
the first byte chooses the descriptor. `TOKEN` stands for the token of the run. Rules: `run` returns
a result; what the host keeps is bounded by `max_output_bytes`; forms have the types that the API
promises, and every interface can send them; the next run is not affected.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from fuzz.target import Finding, Target
from wasmsand.machine.command import CommandRequest, Ended, Output
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.backend import Backend
from wasmsand.sdk.command_builder import CommandBuilder
from wasmsand.sdk.options import HOME, SandboxOptions
from wasmsand.sdk.python_session import PythonSession
from wasmsand.sdk.results import DisplayItem, PythonResult
from wasmsand.wire import strict_json

_LIMIT: Final = 64 * 1024
_DESCRIPTORS: Final = (104, 104, 104, 1, 2)
_PIECE: Final = 5000
_WORDS: Final = (
    b"TOKEN", b'"kind": "display"', b'"kind": "answer"', b'"kind": "input"', b'"segments": []',
    b'"text/plain"', b'"application/json"', b'"image/png"', b'"main": true', b'"at": -1', b"\t",
    b'"update": true', b'"id": "x"', b'"metadata": {}', b"\n", b"e30=", b"W10=", b"NaN", b"1e999",
    b"[[[[", b'"repr"', b'"value"', b'"traceback"', b"====", b"\xff",
    b'"typed"', b"eyJzZXQiOiBbMSwgMl19", b"eyJ0dXBsZSI6IFtdfQ==",
)  # fmt: skip


def _line(header: Mapping[str, object], *segments: bytes) -> bytes:
    head = json.dumps({"token": "TOKEN", **header}).encode()
    return b"\0" + b"\t".join([head, *(base64.b64encode(part) for part in segments)]) + b"\n"


_ANSWER: Final = _line({"kind": "answer", "segments": ["repr", "value"], "at": 0}, b"1", b"1")


_TYPED: Final = (
    b'{"tuple": [1, {"set": [{"bytes": "AA=="}, 2]}]}',
    b'{"dict": [[{"tuple": [1, NaN]}, {"complex": [1, -2.5]}], [{"frozenset": []}, null]]}',
    b'{"set": [[]]}',
    b'{"set": [' + b", ".join(b"%d" % (n * (2**61 - 1)) for n in range(3000)) + b"]}",
    b'{"list": ' * 200,
)
_TYPES: Final = (type(None), bool, int, float, complex, str, bytes, bytearray)


class _Process:
    """A process whose output is given."""

    pid = 2

    def __init__(self) -> None:
        self.pieces: list[Output] = []
        self._script = b""

    def prepare(self, script: bytes) -> None:
        self._script = script

    def now(self) -> float:
        return time.monotonic()

    def write(self, data: bytes, fd: int = 0, timeout_seconds: float | None = None) -> int:
        verb, *others = data.split(b" ")
        if verb == b"run":
            for line in self._script.replace(b"TOKEN", others[0]).split(b"\n"):
                fd = _DESCRIPTORS[line[0] % len(_DESCRIPTORS)] if line else 104
                content = line[1:] + b"\n"
                for at in range(0, len(content), _PIECE):
                    self.pieces.append(Output(fd, content[at : at + _PIECE]))
        return len(data)

    def exchange(
        self, request: bytes, fd: int, awaited: int | None, timeout_seconds: float | None
    ) -> tuple[Output, ...]:
        self.write(request, fd)
        return self.read()

    def read(self, timeout_seconds: float | None = None) -> tuple[Output, ...]:
        pieces, self.pieces = tuple(self.pieces), []
        return pieces

    def wait(self, timeout_seconds: float | None = None) -> Ended:
        return Ended(0, False, 0.0)

    def take_notices(self) -> tuple[str, ...]:
        return ()

    def close_input(self, fd: int = 0) -> None:
        pass

    def kill(self) -> None:
        pass


class _Backend:
    """As much of a backend as a session uses."""

    cwd = HOME

    def __init__(self, process: _Process) -> None:
        self._process = process

    def start(self, _request: CommandRequest) -> _Process:
        return self._process

    def processes(self) -> list[Any]:
        return []

    def signal(self, pid: int, number: int) -> None:
        pass

    def close(self) -> None:
        pass


class PythonMessages(Target):
    """See above."""

    name = "python"
    about = "what the interpreter of a Python session writes to the host"
    words = _WORDS

    def seeds(self) -> Iterable[bytes]:
        text = {"kind": "display", "segments": ["text/plain", "image/png", "application/json"]}
        yield _line(text, b"x", b"\x89PNG", b"[1, {}]") + _ANSWER
        yield _line({**text, "main": True, "metadata": {"a": 1}}, b"x", b"y", b"null") + _ANSWER
        update = {"kind": "display", "segments": ["text/html"], "id": "a", "update": True}
        yield _line(update, b"<b>") * 3 + _ANSWER
        yield _line({"kind": "input", "number": 1, "segments": ["prompt"]}, b"? ") + _ANSWER
        names = ["type", "message", "traceback"]
        yield _line({"kind": "answer", "segments": names}, b"E", b"m", b"t")
        for written in _TYPED:
            yield _line({"kind": "answer", "segments": ["repr", "typed"]}, b"x", written)
        yield b"\3printed\n\4error\n" + _ANSWER
        yield _line(text, b"x" * 70_000, b"", b"[" * 1000)

    def run(self, data: bytes) -> None:
        process = _Process()
        options = SandboxOptions(max_output_bytes=_LIMIT)
        attachment = Attachment(cast("Backend", _Backend(process)), options)
        session = PythonSession(attachment, CommandBuilder(options, dict), env=None, cwd=None)
        process.prepare(data + b"\n" + _ANSWER)
        seen: list[DisplayItem] = []
        result = session.run("1", timeout_ms=2000, on_result=seen.append, on_input=lambda _: "x")
        _check(result, seen)
        if not session.closed:
            process.pieces.clear()
            process.prepare(b"\n" + _ANSWER)
            if session.run("1").repr != "1":
                raise Finding("next-run", "the next run has another result")


def _check(result: PythonResult, seen: list[DisplayItem]) -> None:
    _check_value(result.value)
    if result.value is not None and not result.has_value:
        raise Finding("value", "a value that is none")
    kept = 0
    for item in result.results:
        for mime, form in item.data.items():
            if isinstance(form, str | bytes):
                kept += len(form)
            elif "json" not in mime:
                raise Finding("type", f"{mime} is {type(form).__name__}")
        strict_json.encode([item.as_json(), dict(item.metadata), item.display_id])
    main = result.main
    if main is not None and result.repr is not None:
        kept -= len(main.text or "")
    if kept > _LIMIT:
        raise Finding("limit", f"{kept} bytes are kept")
    if len(seen) < len(result.results):
        raise Finding("callback", "a result was not passed to on_result")


def _check_value(value: object) -> None:
    """Raise a finding if there is anything in `value` but values of built-in types."""
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            _check_value(item)
    elif isinstance(value, dict):
        _check_value(list(value))
        _check_value(list(value.values()))
    elif type(value) not in _TYPES:
        raise Finding("value", f"a {type(value).__name__}")
