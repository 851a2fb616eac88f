"""Findings as files.

Owns the directory of reproducers: `TARGET-KIND-HASH.bin` is the input, and the `.txt` beside it
says what happened and how to repeat it. Rules: one finding per cause, identified by its
signature; the name contains the target, so that `--replay FILE` needs nothing else.
"""

from __future__ import annotations

import hashlib
import re
import traceback
from dataclasses import dataclass
from pathlib import Path

from fuzz.target import Finding

_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")
_FRAMES = 3


@dataclass(frozen=True)
class Written:
    """A finding on disk."""

    target: str
    kind: str
    first_line: str
    path: Path

    @property
    def replay(self) -> str:
        """The command that repeats it."""
        return f"python -m fuzz --replay {self.path}"


def kind_of(error: BaseException) -> str:
    """The rule that was broken."""
    return error.kind if isinstance(error, Finding) else "exception"


def signature(error: BaseException) -> str:
    """Identifies the cause: the origin of an exception, or the message without numbers."""
    if isinstance(error, Finding):
        lines = str(error).strip().splitlines() or [""]
        return _NUMBER.sub("N", f"{error.kind} {lines[0]} {lines[-1]}")[:300]
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = " ".join(f"{Path(frame.filename).name}:{frame.name}" for frame in frames)
    return f"{type(error).__name__} {places}"


def write(directory: Path, target: str, data: bytes, kind: str, text: str) -> Written:
    """Write one finding to disk."""
    directory.mkdir(parents=True, exist_ok=True)
    name = f"{target}-{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
    path = directory / f"{name}.bin"
    path.write_bytes(data)
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    first = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    written = Written(target, kind, first, path)
    path.with_suffix(".txt").write_text(f"{text.rstrip()}\n\nreplay: {written.replay}\n")
    return written


def target_of(path: Path) -> str:
    """The target of a reproducer."""
    return path.name.partition("-")[0]
