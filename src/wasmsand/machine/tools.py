"""Programs of the host's choice: the `*.wasm` files of a directory, as commands.

Owns which files are tools and what they are called. Rules: nothing but these files is
opened; a file is hashed once as long as it does not change, and compiled before the first
machine that has it, so that no command waits for it; a file that cannot be a program is
`ToolRejected`, which names it.
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
"""Build systems do not like targets of these names."""


class ToolRejected(Exception):
    """A file of the directory, or the directory itself, cannot be used."""

    def __init__(self, path: Path, reason: str, errno_name: str = "ENOEXEC") -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.errno_name = errno_name


@dataclass(frozen=True, slots=True)
class Tool:
    """One file and the command that it is."""

    name: str
    path: Path
    size: int
    modified_ns: int
    sha256: str

    def read(self) -> bytes:
        """The module's bytes; EIO if the file is not what it was."""
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
_known: dict[Path, Tool] = {}
_usable: weakref.WeakKeyDictionary[Engine, set[str]] = weakref.WeakKeyDictionary()
"""Content of modules that an engine has found to be programs."""


def find_tools(directory: Path, engine: Engine) -> tuple[Tool, ...]:
    """The tools of a directory, by name, every one compiled and fit to run."""
    try:
        with os.scandir(directory) as entries:
            paths = sorted(
                Path(entry.path)
                for entry in entries
                if entry.name.endswith(_SUFFIX) and not entry.name.startswith(".")
            )
        tools = [_tool(path) for path in paths if path.is_file()]
    except OSError as error:
        path = Path(error.filename) if error.filename else directory
        name = errno.errorcode.get(error.errno or errno.EIO, "EIO")
        raise ToolRejected(path, error.strerror or "cannot be read", name) from None
    found: dict[str, Tool] = {}
    for tool in tools:
        twin = found.setdefault(tool.name, tool)
        if twin is not tool:
            raise ToolRejected(tool.path, f"is the tool `{tool.name}`, and so is {twin.path.name}")
        _require_usable(tool, engine)
    return tuple(found[name] for name in sorted(found))


def _tool(path: Path) -> Tool:
    status = path.stat()
    with _lock:
        known = _known.get(path)
        if known and (known.size, known.modified_ns) == (status.st_size, status.st_mtime_ns):
            return known
    content = path.read_bytes()
    stem = path.name.removesuffix(_SUFFIX)
    tool = Tool(
        _SPECIAL_NAMES.get(stem, stem),
        path,
        len(content),
        status.st_mtime_ns,
        hashlib.sha256(content).hexdigest(),
    )
    with _lock:
        _known[path] = tool
    return tool


def _require_usable(tool: Tool, engine: Engine) -> None:
    """Compile it if need be. One that was refused is looked at again the next time."""
    with _lock:
        if tool.sha256 in _usable.setdefault(engine, set()):
            return
    try:
        require_one_abi(engine.load(tool.sha256, tool.read))
    except ModuleRejected as error:
        raise ToolRejected(tool.path, str(error)) from None
    with _lock:
        _usable[engine].add(tool.sha256)
