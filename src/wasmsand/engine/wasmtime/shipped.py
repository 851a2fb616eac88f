"""Opening the compiled modules that installed packages bring along.

Owns `ShippedModules`: whether this engine can use them, and whether a file is what the package's
index says. Rules: a file is machine code that we run, so its content is checked against its hash
before its first use. The cache then remembers the file by what changes with every write (device,
inode, size, times), so that later processes only look at that. A file that another user could
change is never mapped: its checked content is copied to the cache instead. Modules of another
release of wasmtime are not used, even if wasmtime would accept them: a newer release may exist
because the older one compiled something wrongly. One message says why modules cannot be used, and
what to do.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from typing import Final

from wasmsand.engine.shipped_modules import ShippedFile, ShippedIndex
from wasmsand.engine.wasmtime.bindings import CData, WasmtimeError
from wasmsand.engine.wasmtime.compile_cache import CompileCache
from wasmsand.engine.wasmtime.compiler import load_compiled, open_compiled

logger = logging.getLogger("wasmsand.engine")

ENGINE_NAME: Final = "wasmtime"
_PIECE_BYTES: Final = 1 << 20


class Damaged(Exception):
    """A file of the package is not what its index says."""


class ShippedModules:
    """The compiled modules of installed packages, for one engine."""

    def __init__(
        self, indexes: Sequence[ShippedIndex], engine: CData, release: str, cache: CompileCache
    ) -> None:
        """`release` is the installed release of wasmtime."""
        self._engine = engine
        self._release = release
        self._cache = cache
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._undecided = list(indexes)
        self._files: dict[str, ShippedFile] = {}
        self._checked: set[str] = set()
        """Content keys of the files that this process has checked."""
        self._reasons: list[str] = []

    @property
    def unusable(self) -> Sequence[str]:
        """Why packages with compiled modules cannot be used; empty if all can."""
        self._decide()
        return tuple(self._reasons)

    def has(self, key: str) -> bool:
        """Whether there is such a module, checked or not."""
        self._decide()
        return key in self._files

    def is_checked(self, key: str) -> bool:
        """Whether the module can be opened at once."""
        self._decide()
        file = self._files.get(key)
        return file is not None and (key in self._checked or self._is_remembered(file))

    def open(self, key: str, engine: CData | None = None) -> CData | None:
        """The module, mapped if possible; None if there is no usable one. Checks the file if nobody
        did. `engine`: another C engine with the same settings."""
        self._decide()
        file = self._files.get(key)
        if file is None:
            return None
        try:
            return self._open(key, file, engine or self._engine)
        except (OSError, Damaged, WasmtimeError) as error:
            self._give_up(key, file, error)
            return None

    def _open(self, key: str, file: ShippedFile, engine: CData) -> CData:
        if not _only_we_can_write(file):
            content = _checked_content(file)
            stored = self._cache.store(key, content)
            if stored is None:
                return load_compiled(engine, content)
            return open_compiled(engine, stored)
        if key not in self._checked and not self._is_remembered(file):
            identity = _identity(file)
            for _ in _checked_pieces(file):
                pass
            if _identity(file) == identity:
                self._cache.remember(file.sha256, identity)
        with self._lock:
            self._checked.add(key)
        return open_compiled(engine, file.path)

    def _is_remembered(self, file: ShippedFile) -> bool:
        remembered = self._cache.remembered(file.sha256)
        if remembered is None:
            return False
        with contextlib.suppress(OSError):
            return remembered == _identity(file) and _only_we_can_write(file)
        return False

    def _give_up(self, key: str, file: ShippedFile, error: Exception) -> None:
        with self._lock:
            known = self._files.pop(key, None)
        if known is not None:
            logger.warning(
                "%s cannot be used, the program is compiled instead: %s; reinstall the package",
                file.path,
                error,
            )

    def _decide(self) -> None:
        """Find out, once, which packages this engine can use."""
        if not self._undecided:
            return
        with self._lock:
            for index in self._undecided:
                reason = self._reason_against(index)
                if reason is None:
                    self._files.update(index.modules)
                elif index.modules:
                    self._reasons.append(reason)
                    logger.warning(
                        "the compiled programs of %s cannot be used: %s. Programs are compiled at "
                        "their first use; `wasmsand warm` compiles all of them now",
                        index.directory.name,
                        reason,
                    )
            self._undecided.clear()

    def _reason_against(self, index: ShippedIndex) -> str | None:
        if (index.engine, index.release) != (ENGINE_NAME, self._release):
            return (
                f"they are for {index.engine} {index.release}, "
                f"and {ENGINE_NAME} {self._release} is installed"
            )
        try:
            load_compiled(self._engine, _checked_content(index.probe))
        except (OSError, Damaged) as error:
            return f"{error}; reinstall the package"
        except WasmtimeError as error:
            return f"they are for {index.processor} ({index.target}): {error}"
        return None


def _only_we_can_write(file: ShippedFile) -> bool:
    """Whether nobody but this user and root can change the file."""
    if os.name != "posix":
        return True
    for path in (file.path, file.path.parent):
        status = path.stat()
        if status.st_uid not in (0, os.geteuid()):
            return False
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
    return True


def _identity(file: ShippedFile) -> str:
    """What every write to the file changes. Nobody can choose the second time."""
    found = file.path.stat()
    parts = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return ":".join(map(str, parts))


def _checked_content(file: ShippedFile) -> bytes:
    return b"".join(_checked_pieces(file))


def _checked_pieces(file: ShippedFile) -> Iterator[bytes]:
    """The content of a file. Raises `Damaged` at the end if it is not what the index says."""
    digest, left = hashlib.sha256(), file.size
    with file.path.open("rb", buffering=0) as stream:
        while left and (piece := stream.read(min(left, _PIECE_BYTES))):
            digest.update(piece)
            left -= len(piece)
            yield piece
        if left or stream.read(1) or digest.hexdigest() != file.sha256:
            raise Damaged(f"{file.path} does not match its hash")
