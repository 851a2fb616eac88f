"""Compile programs in an unconfined process before a confined process has to load them.

`python -m wasmsand.cli.compile_ahead [DIRECTORY ...]` compiles the programs of these directories,
or those of the image if none is given, into the cache of compiled modules. Rules: it compiles
only files that the user has installed or named, never a file from a guest; one process at a time
compiles the image; a file that cannot be compiled is skipped, and the process that loads it later
reports the error.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from wasmsand.engine.choosing import new_engine, settle_places
from wasmsand.engine.protocol import Engine, ModuleRejected
from wasmsand.machine.image import image_programs
from wasmsand.machine.image_directory import ImageMissing, ProgramFile

_LOCK_FILE = ".image-is-being-compiled"


def compile_ahead(directories: Sequence[str]) -> None:
    """Compile the programs of `directories` now, and start compiling those of the image in the
    background. Takes a few milliseconds if all are compiled already. Starts no thread."""
    # A parallel compiler would start its threads when the engine is created.
    engine = new_engine(parallel_compilation=False)
    command = [sys.executable, "-P", "-m", "wasmsand.cli.compile_ahead"]
    if any(not engine.is_compiled(key) for key, _ in _wasm_programs(directories)):
        subprocess.run([*command, *directories], stdin=subprocess.DEVNULL, check=False)
    try:
        missing = any(not _is_ready(engine, program) for program in image_programs())
    except ImageMissing:
        return
    if missing:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def _wasm_programs(directories: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for directory in directories:
        for path in sorted(Path(directory).glob("*.wasm")):
            try:
                content = path.read_bytes()
            except OSError:
                continue
            yield hashlib.sha256(content).hexdigest(), content


def main(directories: Sequence[str]) -> int:
    """Compile."""
    engine = new_engine()
    if directories:
        for key, content in _wasm_programs(directories):
            _compile(engine, key, content)
        return 0
    with (settle_places().compiled_modules / _LOCK_FILE).open("wb") as file:
        if _is_locked(file):
            return 0
        for program in image_programs():
            if not engine.is_compiled(program.sha256):
                _compile(engine, program.sha256, program.read())
            _check_memory(engine, program)
    return 0


def _is_ready(engine: Engine, program: ProgramFile) -> bool:
    if not engine.is_compiled(program.sha256):
        return False
    prepared, images = program.prepared, engine.abilities.memory_images
    # An engine that only copies memory reads it in each process.
    return prepared is None or not images.available or images.find(prepared.memory) is not None


def _check_memory(engine: Engine, program: ProgramFile) -> None:
    """Check the program's stored memory, so that no confined process has to."""
    if not _is_ready(engine, program) and program.prepared is not None:
        try:
            engine.abilities.memory_images.load(program.prepared.memory)
        except ModuleRejected:
            pass


def _compile(engine: Engine, key: str, content: bytes) -> None:
    try:
        engine.load(key, lambda: content)
    except (ModuleRejected, MemoryError):
        pass
    engine.unload(key)


def _is_locked(file: IO[bytes]) -> bool:
    """Whether another process has locked the file. If not, lock it until this process ends."""
    if os.name != "posix":
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
