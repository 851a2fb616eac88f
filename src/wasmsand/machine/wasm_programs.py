"""The programs of `wasm_dir`: every `*.wasm` file in a host directory becomes a command.

Owns which files are programs, and their command names. Rules: no other file is opened. A file is
hashed again only after a change. It is compiled before the first machine that offers it is created,
so that no command waits for the compiler. A file that is not a usable program raises
`WasmProgramRejected`, which names the file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wasmsand.engine.forking import renewed_in_child
from wasmsand.engine.protocol import Engine, ModuleRejected
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.machine.loading import require_one_abi

_SUFFIX: Final = ".wasm"
_SPECIAL_NAMES: Final = {"true-cmd": "true", "false-cmd": "false"}
"""Build systems refuse targets named `true` and `false`."""


class WasmProgramRejected(Exception):
    """The directory, or a file in it, cannot be used."""

    def __init__(self, path: Path, reason: str, errno_name: str = "ENOEXEC") -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.errno_name = errno_name


@dataclass(frozen=True, slots=True)
class WasmProgram:
    """One file, and the name of its command."""

    name: str
    path: Path
    size: int
    modified_ns: int
    sha256: str

    def read(self) -> bytes:
        """The module's bytes. EIO if the file has changed."""
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise KernelError(Errno.EIO, f"{self.path}: {error.strerror}") from None
        if len(content) != self.size or self.path.stat().st_mtime_ns != self.modified_ns:
            raise KernelError(Errno.EIO, f"{self.path} has changed")
        return content


_lock = threading.Lock()
renewed_in_child(globals(), "_lock")
# Guarded by the lock:
_known: dict[Path, WasmProgram] = {}
_usable: weakref.WeakKeyDictionary[Engine, set[str]] = weakref.WeakKeyDictionary()
"""Hashes of the modules that each engine accepted as programs."""


def find_wasm_programs(directory: Path, engine: Engine) -> tuple[WasmProgram, ...]:
    """The programs in a directory, sorted by name, all compiled and usable."""
    try:
        with os.scandir(directory) as entries:
            paths = sorted(
                Path(entry.path)
                for entry in entries
                if entry.name.endswith(_SUFFIX) and not entry.name.startswith(".")
            )
        programs = [_program(path) for path in paths if path.is_file()]
    except OSError as error:
        path = Path(error.filename) if error.filename else directory
        name = errno.errorcode.get(error.errno or errno.EIO, "EIO")
        raise WasmProgramRejected(path, error.strerror or "cannot be read", name) from None
    found: dict[str, WasmProgram] = {}
    for program in programs:
        twin = found.setdefault(program.name, program)
        if twin is not program:
            raise WasmProgramRejected(
                program.path, f"has the same command name (`{program.name}`) as {twin.path.name}"
            )
        _require_usable(program, engine)
    return tuple(found[name] for name in sorted(found))


def _program(path: Path) -> WasmProgram:
    status = path.stat()
    with _lock:
        known = _known.get(path)
        if known and (known.size, known.modified_ns) == (status.st_size, status.st_mtime_ns):
            return known
    content = path.read_bytes()
    stem = path.name.removesuffix(_SUFFIX)
    program = WasmProgram(
        _SPECIAL_NAMES.get(stem, stem),
        path,
        len(content),
        status.st_mtime_ns,
        hashlib.sha256(content).hexdigest(),
    )
    with _lock:
        _known[path] = program
    return program


def _require_usable(program: WasmProgram, engine: Engine) -> None:
    """Compile the program if necessary. A rejected program is tried again the next time."""
    with _lock:
        if program.sha256 in _usable.setdefault(engine, set()):
            return
    try:
        require_one_abi(engine.load(program.sha256, program.read))
    except ModuleRejected as error:
        raise WasmProgramRejected(program.path, str(error)) from None
    with _lock:
        _usable[engine].add(program.sha256)
