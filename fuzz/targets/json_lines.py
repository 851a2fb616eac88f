"""Protocols of one JSON value per line: JSON-RPC, the line protocol, MCP on standard input.

An input is all that a client sends. Rules: every answer is one line of JSON; none says
"Internal error"; nothing is printed as a bug; the server ends when its input ends.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from random import Random
from typing import IO, Any, ClassVar, Final

from fuzz.machines import prepare_process
from fuzz.mutation import mutated
from fuzz.target import MIB, Finding, Target
from wasmsand.confinement import Barriers
from wasmsand.line.sandbox import LineSandbox
from wasmsand.line.server import LineServer
from wasmsand.mcp.sessions import Sessions
from wasmsand.mcp.stdio import serve_stdio
from wasmsand.rpc.methods import METHODS
from wasmsand.rpc.server import RpcServer
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.tools.definitions import TOOLS
from wasmsand.wire.channel import LineChannel

_LINE_BYTES: Final = 1 * MIB
_PATIENCE: Final = 40
"""How often, every 5 ms, to look for the answers of MCP."""
_JSON: Final = (
    b"null", b"true", b"-1", b"0", b"1e999", b"NaN", b"1.5", b"9" * 30, b'""', b'"\\u0000"',
    b'"\\ud800"', b"[]", b"{}", b"[" * 100, b'{"":', b'"a"', b'"/tmp/a"', b'"../.."', b'"YQ=="',
    b'"x":1,', b"\n", b'"true"', b'"/dev/zero"', b'"/proc"', b"1000000000000", b'"base64"',
)  # fmt: skip
_BY_KIND: Final[dict[str, Any]] = {
    "integer": 1, "boolean": True, "variables": {"A": "1"}, "number": 1.5,
}  # fmt: skip
"""Arguments that suit the tools."""
_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2**31, 2**53, 2**63, 1.5, -0.0, "", "a", "/tmp/a", "/", "..",
    "/etc/passwd", "/dev/zero", "/proc/self/fd", "x" * 300, "nul\0", "\ud800", "\U0001f600", "YQ==",
    "not base64!", [], [1], ["a", "b"], {}, {"a": "b"}, {"a": {"b": []}}, "true", "base64", "utf8",
)  # fmt: skip


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def changed_lines(random: Random, data: bytes, other: bytes) -> bytes:
    """New lines: a value replaced, lines moved, or bytes changed."""
    lines = data.split(b"\n")
    for _ in range(1 + random.randrange(3)):
        place = random.randrange(len(lines))
        match random.randrange(6):
            case 0 | 1 | 2:
                try:
                    value = json.loads(lines[place])
                except (ValueError, RecursionError):
                    continue
                changed = _replaced(random, value)
                lines[place] = json.dumps(changed).encode()
            case 3:
                lines.insert(place, random.choice(other.split(b"\n")))
            case 4:
                del lines[place]
                lines = lines or [b""]
            case _:
                lines[place] = mutated(random, lines[place], other[:4096], _JSON)
    return b"\n".join(lines)


def _replaced(random: Random, value: Any) -> Any:
    """`value` with one part of it replaced, added or removed."""
    if isinstance(value, dict) and value and random.randrange(8):
        key = random.choice(list(value))
        match random.randrange(6):
            case 0:
                return {name: item for name, item in value.items() if name != key}
            case 1:
                return {**value, random.choice(("x", "id", "path", key + "s")): 1}
            case _:
                return {**value, key: _replaced(random, value[key])}
    if isinstance(value, list) and value and random.randrange(4):
        place = random.randrange(len(value))
        return [*value[:place], _replaced(random, value[place]), *value[place + 1 :]]
    return random.choice(_VALUES)


class _Lines(Target):
    words = _JSON
    longest = 16384
    internal: ClassVar[bytes] = b"Internal error"

    def __init__(self) -> None:
        prepare_process()

    def mutate(self, random: Random, data: bytes, other: bytes) -> bytes:
        return changed_lines(random, data, other)

    def check(self, answers: bytes) -> None:
        """Raise `Finding` for an answer that breaks a rule."""
        for line in answers.splitlines():
            try:
                json.loads(line)
            except ValueError as error:
                raise Finding("not-json", f"{error}: {line[:200]!r}") from None
            if self.internal in line:
                raise Finding("internal-error", line.decode()[:500])


class _Sink(io.RawIOBase):
    """Keeps what a server sends."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self.content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with self._lock:
            self.content += data
        return len(data)


class RpcLines(_Lines):
    """`wasmsand rpc`."""

    name = "rpc"
    about = "JSON-RPC on standard input and output"

    def seeds(self) -> Iterable[bytes]:
        create = _line(_call("create", wasmDir=None, fsLimitBytes=4 * MIB, timeoutMs=1000))
        for name, method in METHODS.items():
            given = dict.fromkeys((*method.required, *method.optional), "/tmp/a")
            required = dict.fromkeys(method.required, "/tmp/a")
            yield create + _line(_call(name, **required)) + _line(_call(name, **given))
        copies = [_call("fork"), _call("snapshot.create", name="a"), _call("sessions", sandbox=2)]
        more = [_call("snapshot.restore", snapshot="a", sandbox=2), _call("kill", sandbox=2)]
        yield create + b"".join(map(_line, (*copies, *more)))
        yield create + _line([_call("usage"), _call("env.all"), {"jsonrpc": "2.0"}])
        yield b'{"jsonrpc":"2.0","method":"create","params":[1]}\n[]\n1\n"a"\n'

    def run(self, data: bytes) -> None:
        sink = _Sink()
        channel = LineChannel(io.BytesIO(_harmless(data)), sink, _LINE_BYTES)  # type: ignore[arg-type]
        server = RpcServer(channel, Barriers())
        try:
            server.serve()
        finally:
            server.family.end()
        self.check(bytes(sink.content))


def _call(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _harmless(data: bytes) -> bytes:
    """A client of `rpc` may name directories of its own host; fuzzing must not search or change
    ours. It may also wait for a server as long as it likes, which is no hang."""
    data = data.replace(b'"mounts"', b'"mounts_"').replace(b"ports.wait", b"ports.list")
    return re.sub(rb'"wasmDir"\s*:\s*"[^"]*"', b'"wasmDir": "/nonexistent"', data)


class LineProtocol(_Lines):
    """`wasm-sandbox`."""

    name = "line"
    about = "the line protocol on standard input and output"

    def seeds(self) -> Iterable[bytes]:
        requests: tuple[dict[str, object], ...] = (
            {"type": "shell", "id": "1", "command": "true"},
            {"type": "shell", "id": "1", "command": "true", "time_limit_ms": 500},
            {"type": "write_file", "id": "2", "path": "/tmp/a", "content": "text"},
            {"type": "write_file", "id": "2", "path": "a", "content": "YQ==", "encoding": "base64"},
            {"type": "read_file", "id": "3", "path": "/tmp/a"},
            {"type": "read_file", "id": "3", "path": "/dev/zero", "encoding": "base64"},
            {"type": "reset", "id": "4"},
            {"type": "status", "id": "5"},
        )
        for request in requests:
            yield _line(request)
        yield b"".join(_line(request) for request in requests)
        yield b'{"type": 5}\n[]\n{"type":"shell"}\n'

    def run(self, data: bytes) -> None:
        sink = _Sink()
        sandbox = LineSandbox(SandboxOptions(fs_limit_bytes=4 * MIB, max_inodes=500), None)
        try:
            LineServer(LineChannel(io.BytesIO(data), sink, _LINE_BYTES), sandbox).serve()  # type: ignore[arg-type]
        finally:
            sandbox.close()
        self.check(bytes(sink.content))


def make_sessions(max_sessions: int = 1) -> Sessions:
    """Sandboxes for an MCP server."""
    options = SandboxOptions(fs_limit_bytes=4 * MIB, max_inodes=500, timeout_ms=1000)

    def create() -> Sandbox:
        return Sandbox(
            fs_limit_bytes=options.fs_limit_bytes,
            max_inodes=options.max_inodes,
            timeout_ms=options.timeout_ms,
        )

    return Sessions(create, output_limit=1000, max_sessions=max_sessions)


def mcp_requests() -> list[dict[str, object]]:
    """One request of each kind; the first begins a session."""
    calls: list[dict[str, object]] = [
        _request(
            "initialize",
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "fuzz", "version": "1"},
        ),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _request("ping"),
        _request("tools/list"),
        _request("resources/list"),
        _request("resources/templates/list"),
        _request("resources/read", uri="sandbox:///etc/passwd"),
        _request("logging/setLevel", level="debug"),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    ]
    for definition in TOOLS:
        required = {one.name: "/tmp/a" for one in definition.parameters if one.required}
        given = {one.name: _BY_KIND.get(one.kind, "/tmp/a") for one in definition.parameters}
        for arguments in (required, given):
            calls.append(_request("tools/call", name=definition.name, arguments=arguments))
    return calls


def _request(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


class McpStdio(_Lines):
    """`wasmsand mcp`."""

    name = "mcpstdio"
    about = "MCP on standard input and output"

    def seeds(self) -> Iterable[bytes]:
        first, second, *rest = mcp_requests()
        begin = _line(first) + _line(second)
        for request in rest:
            yield begin + _line(request)
        yield begin + b"".join(_line({**request, "id": n}) for n, request in enumerate(rest))
        yield _line(rest[0])

    def run(self, data: bytes) -> None:
        reading, writing = os.pipe()
        with open(reading, "rb") as incoming, tempfile.TemporaryFile() as outgoing:
            feeding = threading.Thread(target=_feed, args=(writing, data, outgoing.fileno()))
            feeding.start()
            _serve_files(incoming, outgoing)
            feeding.join()
            outgoing.seek(0)
            self.check(outgoing.read())


def _feed(writing: int, data: bytes, outgoing: int) -> None:
    """Write `data`, then wait a short time for as many answers as there are requests.

    The wait matters because the server ends its calls when its input ends.
    """
    wanted = sum(b'"id"' in line and b'"method"' in line for line in data.split(b"\n"))
    with open(writing, "wb") as stream:
        stream.write(data)
        stream.flush()
        for _ in range(_PATIENCE):
            if os.pread(outgoing, 1 << 20, 0).count(b"\n") >= wanted:
                return
            time.sleep(0.005)


def _serve_files(incoming: IO[bytes], outgoing: IO[bytes]) -> None:
    """Serve with these files as standard input and output."""
    kept = sys.stdin, sys.stdout
    sys.stdin, sys.stdout = io.TextIOWrapper(incoming), io.TextIOWrapper(outgoing)
    try:
        serve_stdio(make_sessions(), "0")
    finally:
        sys.stdin.detach()
        sys.stdout.detach()
        sys.stdin, sys.stdout = kept
