"""Files of saved sandboxes that are damaged, or that somebody wrote to do harm."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from wasmsand import (
    CommandError,
    Sandbox,
    SandboxOptions,
    StateError,
    StateFileError,
    StateImageError,
)
from wasmsand.machine.saved.framing import (
    FILES,
    MAGIC,
    MEMORY,
    PROCESS,
    VERSION,
    FrameReader,
    FrameWriter,
    read_header,
)

Chunks = list[tuple[bytes, bytes]]
HUGE = 1 << 70


@pytest.fixture(scope="module")
def content() -> bytes:
    """A sandbox with both kinds of sessions."""
    with Sandbox() as sandbox:
        sandbox.files.write("f", "text" * 1000)
        sandbox.python().run("import os; r, w = os.pipe(); os.write(w, b'x'); f = open('f')")
        sandbox.shell().run("cd /tmp; trap 'echo x' USR1")
        stream = io.BytesIO()
        sandbox.save(stream)
    return stream.getvalue()


def parts(content: bytes) -> tuple[dict[str, Any], Chunks]:
    stream = io.BytesIO(content)
    header = read_header(stream)
    frame = FrameReader(stream, header["codec"], 1 << 40)
    chunks: Chunks = []
    while (kind := frame.peek()) != b"E":
        chunks.append((kind, frame.take(kind)))
    return header, chunks


def made(header: dict[str, Any], chunks: Chunks) -> bytes:
    """A file with correct digests."""
    stream = io.BytesIO()
    frame = FrameWriter(stream, header)
    for kind, data in chunks:
        frame.chunk(kind, data)
    frame.finish()
    return stream.getvalue()


def load(content: bytes, **options: Any) -> None:
    """Load a file, and use what it says."""
    chosen = SandboxOptions(**options) if options else None
    with Sandbox.load(io.BytesIO(content), options=chosen) as sandbox:
        for session in sandbox.sessions:
            session.run("1", timeout_ms=2000)


def test_a_file_cut_off_anywhere_is_refused(content: bytes) -> None:
    chosen = random.Random(1)
    lengths = {0, 1, 7, 8, 12, 16, 100, len(content) - 1, len(content) - 20}
    for length in sorted(lengths | {chosen.randrange(len(content)) for _ in range(60)}):
        with pytest.raises(StateFileError, match=r"cut short|not a saved sandbox|damaged"):
            load(content[:length])


def test_a_file_with_a_changed_byte_is_refused(content: bytes) -> None:
    chosen = random.Random(2)
    for _ in range(150):
        damaged = bytearray(content)
        damaged[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        # A byte that compression does not need may differ: then the content is the same.
        try:
            load(bytes(damaged))
        except StateError:
            pass
        else:
            assert parts(bytes(damaged)) == parts(content)


def test_bytes_after_the_end_are_not_read(content: bytes) -> None:
    load(content + b"more")


def test_a_header_without_an_end_is_refused() -> None:
    for text in (b"[1]", b"{", b"null", b"{}", b'{"codec":7}', b"[" * 100_000, b'{"codec":"zip"}'):
        beginning = struct.pack("<8sII", MAGIC, VERSION, len(text)) + text
        with pytest.raises(StateFileError, match="damaged"):
            load(beginning + hashlib.sha256(beginning).digest())
    with pytest.raises(StateFileError, match="impossible header"):
        load(struct.pack("<8sII", MAGIC, VERSION, 1 << 31))


def test_another_image_is_named(content: bytes) -> None:
    header, chunks = parts(content)
    name = "the image of wasmsand"
    other = {**header, "needs": {**header["needs"], name: "0" * 64}}
    with pytest.raises(StateImageError, match=f"needs {name} with the hash 000000000000"):
        load(made(other, chunks))
    more = {**header, "needs": {**header["needs"], "tool.wasm of wasm_dir": "0" * 64}}
    with pytest.raises(StateImageError, match=r"needs tool\.wasm of wasm_dir, which this host"):
        load(made(more, chunks))
    without = {**header, "needs": {}}
    with pytest.raises(StateImageError, match="saved without the image of wasmsand"):
        load(made(without, chunks))


def test_another_program_is_refused(content: bytes) -> None:
    def change(session: dict[str, Any]) -> None:
        session["module"] = "0" * 64

    with pytest.raises(StateImageError, match="no program of this host's image"):
        load(with_session(content, change))

    def memory(session: dict[str, Any]) -> None:
        session["memory"] = "0" * 64

    with pytest.raises(StateImageError, match="is not in this host's image"):
        load(with_session(content, memory))


def with_session(content: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The file with a changed first session."""
    header, chunks = parts(content)
    place = next(place for place, (kind, _) in enumerate(chunks) if kind == PROCESS)
    session = json.loads(chunks[place][1])
    change(session)
    chunks[place] = (PROCESS, json.dumps(session).encode())
    return made(header, chunks)


WRONG_HEADERS: dict[str, object] = {
    "cwd": "relative",
    "variables": {"A": 7},
    "needs": [],
    "about": None,
}
WRONG_ABOUT: dict[str, object] = {
    "sessions": [{"kind": "shell", "identity": "a"}] * 3,
    "limits": {},
    "timeout_ms": "soon",
    "packages": "all",
    "name": 7,
}


@pytest.mark.parametrize("name", WRONG_HEADERS)
def test_a_wrong_field_of_the_header_is_refused(content: bytes, name: str) -> None:
    header, chunks = parts(content)
    with pytest.raises(StateFileError, match="damaged"):
        load(made({**header, name: WRONG_HEADERS[name]}, chunks))


@pytest.mark.parametrize("name", WRONG_ABOUT)
def test_wrong_options_are_refused(content: bytes, name: str) -> None:
    header, chunks = parts(content)
    about = {**header["about"], name: WRONG_ABOUT[name]}
    with pytest.raises(StateFileError, match="damaged"):
        load(made({**header, "about": about}, chunks))


def test_a_name_of_a_variable_is_checked(content: bytes) -> None:
    header, chunks = parts(content)
    for variables in ({"A=B": "1"}, {"": "1"}, {"A": "\0"}):
        with pytest.raises(StateFileError, match="damaged"):
            load(made({**header, "variables": variables}, chunks))


INODE = {"is": "file", "flags": 0, "position": 0, "number": 0}
PATHS = {"etc": "ZXRj", "etc/passwd": "ZXRjL3Bhc3N3ZA==", "proc/self/mem": "cHJvYy9zZWxmL21lbQ=="}
PIPE = {"is": "pipe", "pipe": 0, "flags": 0, "waiting": ""}
INPUT = {"is": "input", "host_fd": 50, "flags": 0, "waiting": ""}
WRONG_PROCESSES: list[tuple[str, object]] = [
    ("pid", 1), ("pid", 0), ("pid", -5), ("pid", HUGE), ("pid", True), ("pid", "2"), ("pid", None),
    ("argv", "x"), ("argv", [7]), ("argv", ["AAAA"]), ("argv", ["!"]), ("argv", ["QUJD" * 10**6]),
    ("environ", None), ("executable", 1), ("name", "QUJD" * 20),
    ("cwd", None), ("cwd", {}), ("cwd", {"path": PATHS["etc/passwd"]}), ("cwd", {"held": 99}),
    ("cwd", {"path": PATHS["proc/self/mem"]}), ("cwd", {"path": "cHJvYw=="}), ("cwd", {"path": 7}),
    ("umask", 0o7777), ("umask", -1), ("nice", 99), ("uids", [0]), ("uids", [0, 0, HUGE]),
    ("gids", [1, 2]), ("groups", [7] * 1000), ("groups", [-1]),
    ("limits", []), ("limits", [[1]] * 16), ("limits", [[-1, 0]] * 16),
    ("limits", [[0, HUGE]] * 16),
    ("actions", []), ("actions", {"9": [0, 0, 0]}), ("actions", {"65": [0, 0, 0]}),
    ("actions", {"x": [0, 0, 0]}), ("actions", {"\u0662": [0, 0, HUGE]}), ("actions", {"2": [0]}),
    ("mask", HUGE), ("mask", -1), ("pending", [[0, 0, 0, 0, 0]]), ("pending", [[2]]),
    ("pending", [[2, 0, -1, 0, 0]]), ("pending", [[2, 0, 0, 0, 0]] * 1000),
    ("ended_child", 1), ("ended_child", HUGE),
    ("descriptors", [[0, 99, 0]]), ("descriptors", [[-1, 0, 0]]), ("descriptors", [[10**6, 0, 0]]),
    ("descriptors", [[0, 0, 0], [0, 0, 0]]), ("descriptors", [[0, -1, 0]]), ("descriptors", [[0]]),
    ("descriptors", [[0, 0, 7]]),
    ("files", [{"is": "socket", "flags": 0, "waiting": ""}]), ("files", [7]), ("files", [{}]),
    ("files", [{**INODE, "inode": {"path": PATHS["etc"]}}]),
    ("files", [{**INODE, "inode": {"path": PATHS["proc/self/mem"]}}]),
    ("files", [{**INODE, "inode": {"path": PATHS["etc/passwd"]}, "flags": 3}]),
    ("files", [{**INODE, "inode": {"path": PATHS["etc/passwd"]}, "flags": 1 << 31}]),
    ("files", [{**INODE, "inode": {"path": PATHS["etc/passwd"]}, "position": -1}]),
    ("files", [{**INODE, "inode": {"path": PATHS["etc/passwd"]}, "position": HUGE}]),
    ("files", [{**INODE, "inode": {"path": PATHS["etc/passwd"]}, "is": "directory"}]),
    ("files", [{**INODE, "inode": {"path": PATHS["etc/passwd"]}, "is": "device"}]),
    ("files", [{**INODE, "inode": {"path": PATHS["etc/passwd"]}, "is": "path"}]),
    ("files", [PIPE, PIPE]), ("files", [{**PIPE, "flags": 2}]), ("files", [{**PIPE, "pipe": -1}]),
    ("files", [{**PIPE, "flags": 1, "waiting": "QUJD"}]),
    ("files", [{**PIPE, "waiting": "QUJD" * 30_000}]),
    ("files", [INPUT, INPUT]), ("files", [{**INPUT, "host_fd": -1}]),
    ("files", [{**INPUT, "flags": 1}]), ("files", [{**INPUT, "waiting": "QUJD" * 30_000}]),
    ("files", [{"is": "output", "host_fd": 1, "flags": 1, "waiting": "QUJD"}]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), WRONG_PROCESSES, ids=lambda value: str(value)[:40].replace("\0", "")
)
def test_a_wrong_process_is_refused(content: bytes, name: str, value: object) -> None:
    def change(session: dict[str, Any]) -> None:
        process = session["process"]
        process[name] = value
        if name == "files":
            process["descriptors"] = []

    with pytest.raises(StateFileError, match="damaged"):
        load(with_session(content, change))


WRONG_PROGRAMS: list[tuple[str, object]] = [
    ("entry", "_start2"), ("entry", "malloc"), ("entry", 7), ("memory_size", 1), ("memory_size", 0),
    ("memory_size", HUGE), ("memory_size", -65536), ("variables", {"nobody": 1}),
    ("variables", {"__stack_pointer": HUGE}), ("variables", {"__stack_pointer": -1}),
    ("variables", []), ("fork", [0, 0]), ("fork", [1 << 33, 0]), ("fork", [0]), ("fork", "x"),
    ("module", 7), ("process", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), WRONG_PROGRAMS, ids=str)
def test_a_wrong_program_is_refused(content: bytes, name: str, value: object) -> None:
    def change(session: dict[str, Any]) -> None:
        session[name] = value

    with pytest.raises(StateFileError, match="damaged"):
        load(with_session(content, change))


def test_a_memory_that_is_too_large_is_refused(content: bytes) -> None:
    def change(session: dict[str, Any]) -> None:
        session["memory_size"] = 3 << 30

    with pytest.raises(StateError, match="raise memory_limit_bytes"):
        load(with_session(content, change))


@pytest.mark.parametrize(
    "part",
    [b"", b"short", struct.pack("<Q", 1 << 40) + b"x", struct.pack("<Q", (1 << 64) - 1) + b"xx"],
    ids=["empty", "short", "outside", "wraps"],
)
def test_a_part_of_a_memory_outside_it_is_refused(content: bytes, part: bytes) -> None:
    header, chunks = parts(content)
    place = next(place for place, (kind, _) in enumerate(chunks) if kind == MEMORY)
    chunks.insert(place, (MEMORY, part))
    with pytest.raises(StateFileError, match="damaged"):
        load(made(header, chunks))


def test_parts_of_a_memory_that_overlap_are_refused(content: bytes) -> None:
    header, chunks = parts(content)
    place = next(place for place, (kind, _) in enumerate(chunks) if kind == MEMORY)
    chunks.insert(place, chunks[place])
    with pytest.raises(StateFileError, match="not in order"):
        load(made(header, chunks))


def test_two_processes_with_one_number_are_refused(content: bytes) -> None:
    header, chunks = parts(content)
    places = [place for place, (kind, _) in enumerate(chunks) if kind == PROCESS]
    first, second = (json.loads(chunks[place][1]) for place in places)
    second["process"]["pid"] = first["process"]["pid"]
    chunks[places[1]] = (PROCESS, json.dumps(second).encode())
    with pytest.raises(StateFileError, match="the same number"):
        load(made(header, chunks))


def test_chunks_in_another_order_are_refused(content: bytes) -> None:
    header, chunks = parts(content)
    with pytest.raises(StateFileError):
        load(made(header, chunks[::-1]))
    with pytest.raises(StateFileError):
        load(made(header, [chunk for chunk in chunks if chunk[0] != FILES]))
    with pytest.raises(StateFileError, match="the number of sessions"):
        load(made(header, [chunk for chunk in chunks if chunk[0] == FILES]))
    with pytest.raises(StateFileError):
        load(made(header, [*chunks, (FILES, b"more")]))


def test_a_memory_with_any_content_is_only_a_strange_guest(content: bytes) -> None:
    """The program may trap or answer nonsense. The sandbox works."""
    chosen = random.Random(3)
    header, chunks = parts(content)
    loaded = 0
    for _ in range(8):
        changed = [(kind, noisy(chosen, kind, data)) for kind, data in chunks]
        try:
            sandbox = Sandbox.load(io.BytesIO(made(header, changed)))
        except StateFileError:
            continue  # the shell's saved stack is nonsense
        loaded += 1
        with sandbox:
            for session in sandbox.sessions:
                try:
                    session.run("1", timeout_ms=500)
                except CommandError:
                    pass  # the session has ended
            assert sandbox.commands.run("echo works").stdout == "works\n"
    assert loaded > 0


def noisy(chosen: random.Random, kind: bytes, data: bytes) -> bytes:
    if kind != MEMORY or chosen.random() < 0.7:
        return data
    return data[:8] + chosen.randbytes(len(data) - 8)


def test_a_bomb_is_bounded_by_the_limits(content: bytes) -> None:
    """2 GB of zeros are a small file, and are refused early."""
    header, chunks = parts(content)
    first = chunks[0][1]
    zeros = [(FILES, bytes(16 << 20))] * 128
    bomb = made(header, [(FILES, first[:1024]), *zeros])
    assert len(bomb) < 4 << 20
    with pytest.raises(StateError):
        load(bomb)
    memory = next(place for place, (kind, _) in enumerate(chunks) if kind == MEMORY)
    many = [(MEMORY, struct.pack("<Q", number << 24) + bytes(16 << 20)) for number in range(1, 200)]
    bomb = made(header, [*chunks[:memory], *many])
    with pytest.raises(StateError):
        load(bomb, memory_limit_bytes=256 << 20)
