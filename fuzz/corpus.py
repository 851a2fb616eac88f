"""The inputs that are worth mutating further.

Owns the list of inputs that reached new code, and their storage between runs. Rules: a run needs
no stored inputs; at most `MOST_STORED` are read back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

MOST_STORED: Final = 300


class Corpus:
    """The inputs of one target."""

    def __init__(self, directory: Path, longest: int) -> None:
        self._directory = directory
        self._longest = longest
        self._inputs: list[bytes] = []

    def __len__(self) -> int:
        return len(self._inputs)

    def stored(self) -> Iterator[bytes]:
        """The inputs that earlier runs stored, newest first."""
        if not self._directory.is_dir():
            return
        files = sorted(self._directory.iterdir(), key=lambda file: -file.stat().st_mtime)
        for file in files[:MOST_STORED]:
            if file.stat().st_size <= self._longest:
                yield file.read_bytes()

    def add(self, data: bytes, *, store: bool) -> None:
        """Mutate `data` from now on, too."""
        self._inputs.append(data)
        if store:
            self._directory.mkdir(parents=True, exist_ok=True)
            name = hashlib.sha256(data).hexdigest()[:20]
            (self._directory / name).write_bytes(data)

    def pair(self, random: Random) -> tuple[bytes, bytes]:
        """Two inputs to mutate; later ones come more often, because they reached newer code."""
        inputs = self._inputs or [b""]
        newest = inputs[-(1 + len(inputs) // 4) :]
        return random.choice(random.choice((inputs, newest))), random.choice(inputs)
