"""Random use of sandboxes and their copies, compared with a model.

The model of a sandbox is a dict of its files and the values that its session has. Sandboxes are
forked, restored, opened from snapshots, saved and loaded, in any order and any tree.
"""

from __future__ import annotations

import io
import random
import zlib
from dataclasses import dataclass, field

import pytest

from wasmsand import Sandbox, Snapshot
from wasmsand.sdk.python_session import PythonSession

PLACE = "/home/user/w"
NAMES = ("a", "b", "c")
SANDBOXES_MAX = 5
BLOB = 3_000_000
"""Bytes in the session's memory: so many that copies share them."""


@dataclass
class Model:
    """What a sandbox contains."""

    files: dict[str, str | None] = field(default_factory=dict)
    """Content by path; None for a directory."""
    blob: bytearray = field(default_factory=lambda: bytearray(BLOB))
    """What the session has in its memory."""
    count: int = 0

    def copy(self) -> Model:
        return Model(dict(self.files), bytearray(self.blob), self.count)

    def below(self, path: str) -> list[str]:
        return [other for other in self.files if other == path or other.startswith(path + "/")]

    def can_make(self, path: str) -> bool:
        above = path.rpartition("/")[0]
        return path not in self.files and (not above or self.files.get(above, "") is None)


def python_of(sandbox: Sandbox) -> PythonSession:
    session = sandbox.sessions[0]
    assert isinstance(session, PythonSession)
    return session


def change_files(chance: random.Random, sandbox: Sandbox, model: Model) -> None:
    path = "/".join(chance.choice(NAMES) for _ in range(chance.randrange(1, 4)))
    other = "/".join(chance.choice(NAMES) for _ in range(chance.randrange(1, 4)))
    files, text = model.files, str(chance.random()) * chance.randrange(1, 3000)
    act = chance.choice(("write", "write", "append", "mkdir", "remove", "rename", "truncate"))
    if files and chance.random() < 0.6:
        path = chance.choice(sorted(files))
    is_file = isinstance(files.get(path), str)
    if act == "write" and (is_file or model.can_make(path)):
        sandbox.files.write(f"{PLACE}/{path}", text)
        files[path] = text
    elif act == "append" and is_file:
        sandbox.files.append(f"{PLACE}/{path}", text)
        files[path] = f"{files[path]}{text}"
    elif act == "mkdir" and model.can_make(path):
        sandbox.files.mkdir(f"{PLACE}/{path}")
        files[path] = None
    elif act == "remove" and path in files:
        assert sandbox.commands.run(f"rm -r {PLACE}/{path}").exit_code == 0
        for gone in model.below(path):
            del files[gone]
    elif act == "rename" and path in files and model.can_make(other):
        if not (other + "/").startswith(path + "/"):
            sandbox.files.rename(f"{PLACE}/{path}", f"{PLACE}/{other}")
            for moved in model.below(path):
                files[other + moved.removeprefix(path)] = files.pop(moved)
    elif act == "truncate" and is_file:
        done = python_of(sandbox).run(f"os.truncate('{PLACE}/{path}', 7)")
        assert done.error is None
        files[path] = str(files[path])[:7].ljust(7, "\0")


def change_session(chance: random.Random, sandbox: Sandbox, model: Model) -> None:
    model.count += 1
    step = chance.choice((1, 4096, 50_000))
    start, value = chance.randrange(BLOB), chance.randrange(1, 256)
    positions = range(start, min(BLOB, start + 200 * step), step)
    python_of(sandbox).run(
        f"count += 1\nfor i in {positions!r}: blob[i] = {value}\nlog.write(str(count)); log.flush()"
    )
    for position in positions:
        model.blob[position] = value


def check(sandbox: Sandbox, model: Model) -> None:
    found = {
        entry.path.removeprefix(f"{PLACE}/"): None
        if entry.type == "dir"
        else sandbox.files.read_text(entry.path)
        for entry in sandbox.files.list(PLACE, recursive=True)
    }
    assert found == model.files
    seen = python_of(sandbox).run("[count, zlib.crc32(blob), log.tell()]")
    assert seen.error is None
    written = sum(len(str(number)) for number in range(1, model.count + 1))
    assert seen.value == [model.count, zlib.crc32(model.blob), written]


@pytest.mark.parametrize("seed", range(4))
def test_random_use_agrees_with_a_model(seed: int) -> None:
    chance = random.Random(seed)
    first = Sandbox()
    first.files.mkdir(PLACE)
    first.python().run(
        f"import os, zlib; count = 0; blob = bytearray({BLOB}); log = open('/tmp/l', 'w')"
    )
    live: list[tuple[Sandbox, Model]] = [(first, Model())]
    kept: list[tuple[Snapshot, Model]] = []
    saved: list[tuple[bytes, Model]] = []
    try:
        for _ in range(70):
            number = chance.randrange(len(live))
            sandbox, model = live[number]
            act = chance.choice("ffffffssskrroolxdd")
            has_room = len(live) < SANDBOXES_MAX
            if act == "f":
                change_files(chance, sandbox, model)
            elif act == "s":
                change_session(chance, sandbox, model)
            elif act == "k":
                kept.append((sandbox.snapshot(), model.copy()))
            elif act == "r" and kept:
                snapshot, then = chance.choice(kept)
                sandbox.restore(snapshot)
                live[number] = (sandbox, then.copy())
            elif act == "o" and kept and has_room:
                snapshot, then = chance.choice(kept)
                live.append((Sandbox.from_snapshot(snapshot), then.copy()))
            elif act == "l" and has_room:
                count = min(chance.randrange(1, 4), SANDBOXES_MAX - len(live))
                live += [(twin, model.copy()) for twin in sandbox.fork(count)]
            elif act == "x":
                stream = io.BytesIO()
                sandbox.save(stream)
                saved.append((stream.getvalue(), model.copy()))
                if has_room:
                    content, then = chance.choice(saved)
                    live.append((Sandbox.load(io.BytesIO(content)), then.copy()))
            elif act == "d" and len(live) > 1:
                sandbox.kill()
                del live[number]
            check(*chance.choice(live))
        for each in live:
            check(*each)
        for snapshot, then in kept:
            with Sandbox.from_snapshot(snapshot) as opened:
                check(opened, then)
    finally:
        for sandbox, _ in live:
            sandbox.kill()
