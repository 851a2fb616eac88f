"""Compiling the image's programs in advance, once per machine.

Owns what `wasmsand warm`, `wasmsand doctor` and the helper of confined processes share: which
programs are ready, and making the others ready. Rules: a program is ready if its next start neither
compiles nor checks a file. Several programs are compiled at a time, the largest first. One process
at a time does this on a machine; others wait for it, or leave it to it. A program that cannot be
compiled is skipped, and the process that loads it later reports the error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO

from wasmsand.engine.choosing import settle_places
from wasmsand.engine.protocol import Engine, ModuleRejected
from wasmsand.machine.image_directory import ProgramFile

_LOCK_FILE = ".image-is-being-compiled"
_AT_ONCE_MAX = 4
"""Each compilation takes memory, some 40 times the size of its module."""


def is_ready(engine: Engine, program: ProgramFile) -> bool:
    """Whether the program starts at once, and will."""
    if not engine.is_compiled(program.sha256):
        return False
    engine.keep_compiled(program.sha256)
    prepared, images = program.prepared, engine.abilities.memory_images
    # An engine that only copies memory reads it in each process.
    return prepared is None or not images.available or images.find(prepared.memory) is not None


def make_ready(
    engine: Engine,
    programs: Sequence[ProgramFile],
    *,
    began: Callable[[ProgramFile], None] = lambda _: None,
    done: Callable[[ProgramFile], None] = lambda _: None,
) -> None:
    """Make the programs ready; `began` and `done` are called on any thread."""

    def one(program: ProgramFile) -> None:
        began(program)
        try:
            engine.load(program.sha256, program.read)
            if program.prepared is not None and not is_ready(engine, program):
                engine.abilities.memory_images.load(program.prepared.memory)
        except (ModuleRejected, MemoryError):
            pass
        engine.unload(program.sha256)
        done(program)

    at_once = min(_AT_ONCE_MAX, os.cpu_count() or 1)
    with ThreadPoolExecutor(at_once, thread_name_prefix="wasmsand-warm") as pool:
        for result in [
            pool.submit(one, program)
            for program in sorted(programs, key=lambda program: program.size, reverse=True)
        ]:
            result.result()


@contextmanager
def only_process(*, wait: bool) -> Iterator[bool]:
    """Be the only process that compiles the image. False if another one does and `wait` is False.
    Where the cache cannot be written, every process is on its own."""
    try:
        file = (settle_places().compiled_modules / _LOCK_FILE).open("wb")
    except OSError:
        yield True
        return
    with file:
        yield _lock(file, wait)


def _lock(file: IO[bytes], wait: bool) -> bool:
    if os.name != "posix":
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
