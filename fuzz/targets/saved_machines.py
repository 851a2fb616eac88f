"""Saved machines: `machine.saved`.

An input is the header of a file (a length and JSON) and its chunks, without compression. The target
adds what a file needs (digests, compression), because a wrong digest would hide everything else.
One input in a few is taken as the bytes of a file. Rules: a file is loaded, or refused with
`StateRejected`; what it contains can run, be saved again and be removed, and the host is unharmed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from fuzz.machines import SMALL, check_alive, new_machine, small_image
from fuzz.mutation import mutated
from fuzz.target import MIB, Target
from tests.abi.fuzz.guest import ALIVE
from wasmsand.engine import default_engine
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.kernel.errno import KernelError
from wasmsand.machine import Machine, MachineOptions
from wasmsand.machine.image_directory import ProgramFile
from wasmsand.machine.saved import BaseImage, SavedMachine, StateRejected, write_machine
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

_LENGTH: Final = struct.Struct("<I")
_RAW: Final = 0xFFFF_FFFF
"""A length that says: the rest is a file."""
_WORDS: Final = (
    b"null", b"-1", b"0", b"1e9", b"4294967296", b"18446744073709551616", b"true", b'""', b"[]",
    b"{}", b'"QUJD"', b'{"path":"ZXRj"}', b'{"held":0}', b'{"path":"cHJvYy8x"}', b'"pipe"',
    b'"input"', b'"text"', b'"file"', b'"directory"', b'"device"', b"[[0,0,0]]", b'"_start"',
    b"[65536,3]", b"65536", b'"zlib"', b'"zstd"', b"F", b"S", b"M", b"E",
)  # fmt: skip


@cache
def _base() -> BaseImage:
    module = wat_to_wasm(ALIVE)
    path = Path(tempfile.mkdtemp(prefix="wasmsand-fuzz-")) / "alive.wasm"
    path.write_bytes(module)
    key = hashlib.sha256(module).hexdigest()
    program = ProgramFile(
        "alive", "1", "", "", path, key, len(module), ("/usr/bin/bash",), 0o755, None
    )
    return BaseImage(small_image(), {"image": "small"}, {key: program})


def _session(**changes: Any) -> bytes:
    """A program that would write a word."""
    (key,) = _base().programs
    file = {"is": "output", "host_fd": 1, "flags": 1, "waiting": ""}
    pipe = {"is": "pipe", "pipe": 0, "flags": 0, "waiting": "QUJD"}
    opened = {"is": "file", "inode": {"path": "dG1wL2Y="}, "flags": 2, "position": 1, "number": 0}
    process = {
        "pid": 2, "argv": ["YQ=="], "environ": [], "executable": "L3g=", "name": "eA==",
        "cwd": {"path": "dG1w"}, "umask": 18, "nice": 0, "uids": [1000] * 3, "gids": [1000] * 3,
        "groups": [100], "limits": [[1 << 40, 1 << 40]] * 16, "actions": {"2": [1, 0, 0]},
        "mask": 0, "pending": [[10, 0, 0, 0, 0]], "files": [file, pipe, opened],
        "descriptors": [[1, 0, 0], [3, 1, 1], [4, 2, 0]], "ended_child": 3,
    }  # fmt: skip
    values = {
        "process": process, "module": key, "memory": None, "entry": "_start", "memory_size": 131072,
        "variables": {}, "fork": None, **changes,
    }  # fmt: skip
    return json.dumps(values).encode()


def _packed(header: bytes, chunks: Iterable[tuple[bytes, bytes]]) -> bytes:
    """An input."""
    parts = [_LENGTH.pack(len(header)), header]
    for kind, data in chunks:
        parts += [kind, _LENGTH.pack(len(data)), data]
    return b"".join(parts)


def _file(data: bytes) -> bytes:
    """The file of an input."""
    if len(data) < _LENGTH.size:
        return data
    (length,) = _LENGTH.unpack_from(data)
    if length == _RAW:
        return data[_LENGTH.size :]
    header, rest = data[_LENGTH.size :][:length], data[_LENGTH.size + length :]
    stream = io.BytesIO()
    try:
        values = json.loads(header)
        frame = FrameWriter(stream, values)
    except (ValueError, TypeError, RecursionError):
        beginning = struct.pack("<8sII", MAGIC, VERSION, len(header)) + header
        return beginning + hashlib.sha256(beginning).digest() + rest
    while len(rest) > _LENGTH.size:
        kind = rest[:1]
        (length,) = _LENGTH.unpack_from(rest, 1)
        frame.chunk(kind, rest[5 : 5 + length])
        rest = rest[5 + length :]
    frame.finish()
    return stream.getvalue()


class SavedMachines(Target):
    """`SavedMachine.load`."""

    name = "saved"
    about = "files of saved sandboxes, with sessions"
    words = _WORDS
    memory_bytes = 192 * MIB

    def seeds(self) -> Iterable[bytes]:
        machine = new_machine()
        machine.files.write("/tmp/f", b"content" * 100)
        machine.files.mkdir("/tmp/d")
        machine.files.remove("/etc/hosts")
        stream = io.BytesIO()
        write_machine(stream, machine.state(), (), {"a": 1}, _base())
        machine.close()
        yield _LENGTH.pack(_RAW) + stream.getvalue()
        stream.seek(0)
        header = read_header(stream)
        frame = FrameReader(stream, header["codec"], 1 << 30)
        files = b"".join(frame.pieces(FILES))
        text = json.dumps(header).encode()
        page = struct.pack("<Q", 65536) + b"page" * 1024
        yield _packed(text, [(FILES, files)])
        yield _packed(text, [(FILES, files), (PROCESS, _session()), (MEMORY, page)])
        yield _packed(text, [(FILES, files), (PROCESS, _session(fork=[65536, 3]))])
        yield _packed(text, [(FILES, files), (PROCESS, _session(memory_size=1 << 32))])

    def mutate(self, random: Random, data: bytes, other: bytes) -> bytes:
        if len(data) < _LENGTH.size or random.randrange(4) == 0:
            return mutated(random, data, other, self.words, most=self.longest)
        # Change the JSON of the header or of a session, and keep the lengths right.
        (length,) = _LENGTH.unpack_from(data)
        if length == _RAW:
            return data[:4] + mutated(random, data[4:], other, self.words, most=self.longest)
        header, rest = data[4 : 4 + length], data[4 + length :]
        chunks: list[tuple[bytes, bytes]] = []
        while len(rest) > _LENGTH.size:
            (size,) = _LENGTH.unpack_from(rest, 1)
            chunks.append((rest[:1], rest[5 : 5 + size]))
            rest = rest[5 + size :]
        place = random.randrange(len(chunks) + 1)
        if place == len(chunks):
            header = mutated(random, header, other, self.words, most=self.longest)
        else:
            kind, content = chunks[place]
            match random.randrange(6):
                case 0:
                    chunks.insert(random.randrange(len(chunks) + 1), (kind, content))
                case 1:
                    del chunks[place]
                case _:
                    changed = mutated(random, content, other, self.words, most=self.longest)
                    chunks[place] = (kind, changed)
        return _packed(header, chunks)[: self.longest]

    def run(self, data: bytes) -> None:
        engine = default_engine()
        try:
            saved = SavedMachine(io.BytesIO(_file(data)))
            state, sessions = saved.load(MachineOptions(limits=SMALL), _base(), engine)
        except StateRejected:
            return
        machine = Machine.from_state(state, engine=engine)
        try:
            for session in sessions:
                try:
                    process = machine.adopt(session, is_last=True)
                except KernelError:
                    session.instance.close()
                    continue
                process.wait(0.2)
                process.kill()
            write_machine(io.BytesIO(), machine.state(), (), {}, _base())
            _use(machine)
        finally:
            machine.close()


def _use(machine: Machine) -> None:
    try:
        machine.files.write(f"/usable-{os.getpid()}", b"x")
    except KernelError as error:
        if error.errno.name not in ("ENOSPC", "ENOMEM"):
            raise  # the file may have filled the disk
    try:
        stat = machine.files.stat("/usr/bin/alive")
    except KernelError:
        return  # the file may have removed it
    if stat.mode & 0o111 and stat.size == len(wat_to_wasm(ALIVE)):
        try:
            check_alive(machine)
        except KernelError:
            pass  # the limits of the file may leave no room
