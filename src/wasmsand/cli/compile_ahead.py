"""Compiles, in an unconfined process, the modules that a confined process will load.

`python -m wasmsand.cli.compile_ahead [DIRECTORY ...]` compiles the programs in the directories, or
without arguments those of the image, into the cache of compiled modules. Rules: only files that
the user has installed or named are compiled here, never a file from a guest; one process at a time
compiles the image; a module that cannot be compiled is skipped, and its loader reports the error.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.wasmtime.compile_cache import default_directory
from wasmsand.engine.wasmtime.config import EngineSettings
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.machine.image import ImageMissing, image_programs

_LOCK_FILE = ".image-is-being-compiled"


def compile_ahead(directories: Sequence[str]) -> None:
    """Compile the programs in the directories now, and those of the image in the background.
    Takes a few milliseconds if everything is compiled. Starts no thread."""
    # A compiler with threads of its own starts them when its engine is made.
    engine = WasmtimeEngine(EngineSettings(parallel_compilation=False))
    command = [sys.executable, "-P", "-m", "wasmsand.cli.compile_ahead"]
    if any(not engine.is_compiled(key) for key, _ in _tools(directories)):
        subprocess.run([*command, *directories], stdin=subprocess.DEVNULL, check=False)
    try:
        missing = any(not engine.is_compiled(program.sha256) for program in image_programs())
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


def _tools(directories: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for directory in directories:
        for path in sorted(Path(directory).glob("*.wasm")):
            try:
                content = path.read_bytes()
            except OSError:
                continue
            yield hashlib.sha256(content).hexdigest(), content


def main(directories: Sequence[str]) -> int:
    """Compile."""
    engine = WasmtimeEngine()
    if directories:
        for key, content in _tools(directories):
            _compile(engine, key, content)
        return 0
    directory = default_directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (directory / _LOCK_FILE).open("wb") as file:
        if _is_locked(file):
            return 0
        for program in image_programs():
            if not engine.is_compiled(program.sha256):
                _compile(engine, program.sha256, program.read())
    return 0


def _compile(engine: WasmtimeEngine, key: str, content: bytes) -> None:
    try:
        engine.precompile(key, content)
    except (ModuleRejected, MemoryError):
        pass
    engine.unload(key)


def _is_locked(file: IO[bytes]) -> bool:
    """Whether another process has locked the file; if not, this one has, until it ends."""
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
