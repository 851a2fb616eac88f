"""Compile programs in an unconfined process before a confined process has to load them.

`python -m wasmsand.cli.compile_ahead [DIRECTORY ...]` compiles the programs of these directories,
or those of the image if none is given, into the cache of compiled modules. Rules: it compiles
only files that the user has installed or named, never a file from a guest; one process at a time
compiles the image; a file that cannot be compiled is skipped, and the process that loads it later
reports the error.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from wasmsand.cli.warming import is_ready, make_ready, only_process
from wasmsand.engine.choosing import new_engine
from wasmsand.engine.protocol import Engine, ModuleRejected
from wasmsand.machine.image import image_programs
from wasmsand.machine.image_directory import ImageMissing


def compile_ahead(directories: Sequence[str]) -> None:
    """Compile the programs of `directories` now, and start compiling those of the image in the
    background. Takes a few milliseconds if all are compiled already. Starts no thread."""
    # A parallel compiler would start its threads when the engine is created.
    engine = new_engine(parallel_compilation=False)
    command = [sys.executable, "-P", "-m", "wasmsand.cli.compile_ahead"]
    if any(not engine.is_compiled(key) for key, _ in _wasm_programs(directories)):
        subprocess.run([*command, *directories], stdin=subprocess.DEVNULL, check=False)
    try:
        missing = any(not is_ready(engine, program) for program in image_programs())
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
    with only_process(wait=False) as alone:
        if alone:
            programs = image_programs()
            make_ready(engine, [each for each in programs if not is_ready(engine, each)])
    return 0


def _compile(engine: Engine, key: str, content: bytes) -> None:
    try:
        engine.load(key, lambda: content)
    except (ModuleRejected, MemoryError):
        pass
    engine.unload(key)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
