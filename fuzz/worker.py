"""The loop of one target, in a process of its own.

Rules: the current input is in shared memory, so that the parent can save it when this process
dies; after a finding the loop continues, unless the process can no longer be trusted (a hang);
the worker reports findings and progress to the parent, line by line.
"""

from __future__ import annotations

import faulthandler
import io
import json
import mmap
import os
import threading
import time
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import Final

from fuzz import findings
from fuzz.corpus import Corpus
from fuzz.coverage import Coverage
from fuzz.oracles import BugWatch, MemoryWatch
from fuzz.target import Finding, Target

HUNG_STATUS: Final = 3
_TOLD_SECONDS: Final = 0.25
_SETTLED_INPUTS: Final = 50
"""After this many inputs, caches and pools are full; memory growth counts from then on."""
_LENGTH_BYTES: Final = 8


class CurrentInput:
    """The current input, in memory that outlives the worker."""

    def __init__(self, longest: int) -> None:
        self._memory = mmap.mmap(-1, _LENGTH_BYTES + longest)

    def put(self, data: bytes) -> None:
        """Store the input that is tried next."""
        self._memory[: _LENGTH_BYTES + len(data)] = len(data).to_bytes(8, "little") + data

    def get(self) -> bytes:
        """The input that was stored last."""
        size = int.from_bytes(self._memory[:_LENGTH_BYTES], "little")
        return self._memory[_LENGTH_BYTES : _LENGTH_BYTES + size]


class Worker:
    """Tries inputs on one target until its time is over."""

    def __init__(
        self,
        make: Callable[[], Target],
        directory: Path,
        current: CurrentInput,
        tell: io.TextIOBase | None,
        random: Random,
    ) -> None:
        self._bugs = BugWatch()
        self._bugs.install()
        self._target = make()
        self._memory = MemoryWatch(self._target.memory_bytes)
        self._coverage = Coverage()
        self._corpus = Corpus(directory / "corpus" / self._target.name, self._target.longest)
        self._directory = directory
        self._current = current
        self._tell = tell
        self._random = random
        self._told = 0.0
        self._inputs = 0
        self._signatures: set[str] = set()
        self._began = 0.0
        threading.Thread(target=self._watch_for_hangs, daemon=True, name="fuzz-watch").start()

    def run(self, seconds: float, deadly: Collection[bytes] = ()) -> None:
        """Try seeds, then inputs made from them, for `seconds`; skip the `deadly` ones."""
        deadline = time.monotonic() + seconds
        target, corpus, random = self._target, self._corpus, self._random
        for data in (*target.seeds(), *corpus.stored()):
            if time.monotonic() > deadline:
                break
            if len(data) <= target.longest and data not in deadly:
                self._try(data, keep=True)
        while time.monotonic() < deadline:
            data, other = corpus.pair(random)
            made = target.mutate(random, data, other)[: target.longest]
            if made not in deadly:
                self._try(made)
        try:
            target.close()
        except Exception as error:
            self._found(self._current.get(), error)
        self._report()

    def replay(self, data: bytes) -> BaseException | None:
        """Try one input; returns the finding, if any."""
        try:
            self._try_once(data)
        except Exception as error:
            return error
        finally:
            self._target.close()
        return None

    def _try(self, data: bytes, *, keep: bool = False) -> None:
        try:
            self._coverage.begin()
            self._try_once(data)
        except Exception as error:
            self._found(data, error)
        if self._coverage.end() or keep:
            self._corpus.add(data, store=not keep)
        self._inputs += 1
        if self._inputs == _SETTLED_INPUTS:
            self._memory.settle()
        if time.monotonic() - self._told > _TOLD_SECONDS:
            self._report()

    def _try_once(self, data: bytes) -> None:
        self._current.put(data)
        self._memory.begin()
        self._began = time.monotonic()
        try:
            self._target.run(data)
        finally:
            self._began = 0.0
        self._bugs.check()
        self._memory.check()

    def _found(self, data: bytes, error: Exception) -> None:
        signature = findings.signature(error)
        if signature in self._signatures:
            return
        self._signatures.add(signature)
        text = str(error) if isinstance(error, Finding) else ""
        text = f"{text}\n{''.join(traceback.format_exception(error))}".lstrip()
        self._write(data, findings.kind_of(error), signature, text)

    def _write(self, data: bytes, kind: str, signature: str, text: str) -> None:
        written = findings.write(self._directory, self._target.name, data, kind, text)
        self._say(finding=[kind, written.first_line, str(written.path)], signature=signature)

    def _report(self) -> None:
        self._told = time.monotonic()
        self._say(inputs=self._inputs, blocks=self._coverage.blocks, corpus=len(self._corpus))

    def _say(self, **what: object) -> None:
        if self._tell is not None:
            self._tell.write(json.dumps(what) + "\n")
            self._tell.flush()

    def _watch_for_hangs(self) -> None:
        while True:
            time.sleep(0.2)
            began = self._began
            taken = time.monotonic() - began if began else 0.0
            if taken > self._target.hang_seconds:
                text = f"an input took more than {self._target.hang_seconds:g} seconds"
                stacks = _stacks()
                self._write(self._current.get(), "hang", _hang_signature(stacks), text + stacks)
                os._exit(HUNG_STATUS)


def _stacks() -> str:
    with TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return "\n\n" + file.read().decode("utf-8", "replace")


def _hang_signature(stacks: str) -> str:
    """The place in our own code at which it hangs."""
    lines = [line.strip() for line in stacks.splitlines() if "/wasmsand/" in line]
    places = [line.rpartition("/")[2] for line in lines]
    return "hang " + " ".join(places[:2])
