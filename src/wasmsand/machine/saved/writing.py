"""Saves a machine.

Owns `write_machine`. Rules: a state never changes, so it is written without the sandbox's lock and
while the sandbox goes on. Nothing is held in memory as a whole: files and memories are written in
pieces. Secrets of the network are not part of a file, nor is what the host has granted.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import IO, Any, Final

from wasmsand.engine import default_engine
from wasmsand.engine.protocol import Engine, ModuleRejected
from wasmsand.kernel.vfs import FrozenTree, path_in
from wasmsand.kernel.vfs.overlay import OverlayState
from wasmsand.machine.at_rest import MachineState
from wasmsand.machine.disk_image import write_tree
from wasmsand.machine.saved.base import BaseImage, image_of
from wasmsand.machine.saved.checked import encoded
from wasmsand.machine.saved.framing import CHUNK_BYTES_MAX, FILES, MEMORY, PROCESS, FrameWriter
from wasmsand.machine.saved.problems import StateRejected
from wasmsand.machine.saved.processes import process_values
from wasmsand.machine.sessions import CapturedSession

ADDRESS: Final = struct.Struct("<Q")
_PIECE: Final = 1 << 20
_ANY_SIZE: Final = 1 << 32


def write_machine(
    stream: IO[bytes],
    state: MachineState,
    sessions: Sequence[CapturedSession],
    about: dict[str, Any],
    base: BaseImage | None = None,
    engine: Engine | None = None,
) -> None:
    """Write a state with its sessions. `about` is the caller's part of the header. Raises
    `StateRejected` if a session cannot be saved."""
    base, engine = base or image_of(state.tree), engine or default_engine()
    _require_plain_mounts(state)
    places = _Places(state.tree)
    described = [_described(session, places, base, engine) for session in sessions]
    header = {
        "needs": dict(base.needs),
        "variables": dict(state.variables),
        "cwd": state.cwd,
        "about": about,
    }
    try:
        frame = FrameWriter(stream, header)
    except ValueError as error:
        raise StateRejected(str(error)) from None
    files = _Pieces(frame)
    write_tree(state.tree, files, places.held)
    files.flush()
    for values, session in zip(described, sessions, strict=True):
        frame.chunk(PROCESS, values)
        _write_memory(frame, session, base, engine)
    frame.finish()


def _require_plain_mounts(state: MachineState) -> None:
    """Directories of the host are mounted again by whoever loads the machine. What a mount keeps in
    the sandbox would be lost."""
    for mount in state.mounts:
        content = mount.content
        if isinstance(content, OverlayState):
            content = content.tree
        if content is not None and any(content.layers[:-1]):
            raise StateRejected(
                f"the mount at {mount.request.path} has changes that only the sandbox has; such "
                "mounts cannot be saved yet: apply the changes, or unmount it"
            )


class _Places:
    """Names of inodes: their path, or a number if they have none."""

    def __init__(self, tree: FrozenTree) -> None:
        self._tree = tree
        self.held: dict[int, int] = {}
        """The numbers of inodes without a name."""

    def save(self, ino: int) -> object:
        path = path_in(self._tree, ino)
        if path is not None:
            return {"path": encoded(path)}
        return {"held": self.held.setdefault(ino, len(self.held))}

    def find(self, value: object, kind: str) -> int:
        raise NotImplementedError  # for reading only


def _described(session: CapturedSession, places: _Places, base: BaseImage, engine: Engine) -> bytes:
    dormant = engine.abilities.memory_copies.describe(session.instance)
    if dormant.module_key not in base.programs:
        name = session.process.name.decode("utf-8", "replace")
        raise StateRejected(f"{name} is not a program of the image")
    values: dict[str, Any] = {
        "process": process_values(session.process, places),
        "module": dormant.module_key,
        "memory": _memory_key(session, base, engine),
        "entry": dormant.entry,
        "memory_size": dormant.memory_size,
        "variables": dict(dormant.variables),
        "fork": None if dormant.fork is None else [dormant.fork.buffer, dormant.fork.result],
    }
    text = json.dumps(values, separators=(",", ":")).encode()
    if len(text) > CHUNK_BYTES_MAX:
        raise StateRejected("a session has too much unread input")
    return text


def _memory_key(session: CapturedSession, base: BaseImage, engine: Engine) -> str | None:
    dormant = engine.abilities.memory_copies.describe(session.instance)
    program = base.programs[dormant.module_key]
    if program.prepared is None or program.prepared.memory.start.entry != dormant.entry:
        return None
    return program.prepared.memory.sha256


def _write_memory(
    frame: FrameWriter, session: CapturedSession, base: BaseImage, engine: Engine
) -> None:
    copies = engine.abilities.memory_copies
    module_key = copies.describe(session.instance).module_key
    key = _memory_key(session, base, engine)
    try:
        fresh = base.new_instance(engine, module_key, key, _ANY_SIZE)
    except (ModuleRejected, MemoryError) as error:
        raise StateRejected(str(error)) from None
    try:
        for address, content in session.differences(engine, fresh):
            frame.chunk(MEMORY, ADDRESS.pack(address) + content)
    finally:
        fresh.close()


class _Pieces:
    """A stream that writes chunks of a useful size."""

    def __init__(self, frame: FrameWriter) -> None:
        self._frame = frame
        self._waiting = bytearray()

    def write(self, data: bytes) -> int:
        self._waiting += data
        if len(self._waiting) >= _PIECE:
            self.flush()
        return len(data)

    def flush(self) -> None:
        self._frame.chunk(FILES, bytes(self._waiting))
        self._waiting.clear()
