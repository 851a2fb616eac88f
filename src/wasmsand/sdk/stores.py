"""Stores of named sandboxes.

Owns `Store`, what `Sandbox.open` needs of a store, and `DirectoryStore`, a directory of this
machine. Rules: a state is replaced as a whole: at every moment, also after a crash of the host,
`read` returns the last state that was written completely, or the one before it. One claim of a name
exists at a time, in all processes. A failure is a `StoreError`, and what was stored before is
unchanged.

A directory has an index (SQLite), one file for each state, and one lock file for each name. A state
is written to a file of its own, which is forced to the disk before the index refers to it, in one
transaction. The file before it is removed after that. Files that the index does not know were left
by a crash; whoever claims the name next removes them. Other stores (objects in a cloud) can have
the same order: first the object, then the reference.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from wasmsand.sdk.errors import StoreBusyError, StoreError, UnsupportedError
from wasmsand.sdk.saving import replacing, sync_directory

if TYPE_CHECKING:
    import sqlite3

try:
    import fcntl
except ImportError:  # Windows; `locked_file` says so
    pass

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_VERSION: Final = 1
_PATIENCE_SECONDS: Final = 30.0
"""How long to wait for another process that uses the index."""


@dataclass(frozen=True, slots=True)
class StoredSandbox:
    """A sandbox in a store."""

    name: str
    size_bytes: int
    """The size of its state in the store."""
    saved: float
    """When it was saved, in seconds since 1970."""


class Claim(Protocol):
    """The right to read and write the state of one name."""

    name: str

    def read(self) -> IO[bytes] | None:
        """The state; None if none was written. Raises `StoreError`."""

    def write(self, write: Callable[[IO[bytes]], None]) -> None:
        """Replace the state with what `write` writes. Raises `StoreError`, and what `write`
        raises; then the old state stays."""

    def release(self) -> None:
        """Let others claim the name; idempotent."""


class Store(Protocol):
    """Where named sandboxes are kept."""

    def claim(self, name: str) -> Claim:
        """Claim a name, whether anything is stored or not. Raises `StoreBusyError` if somebody else
        has it, `StoreError`, and `ValueError` for an invalid name."""

    def list(self) -> list[StoredSandbox]:
        """What is stored, sorted by name. Raises `StoreError`."""

    def delete(self, name: str) -> None:
        """Forget a sandbox that nobody has opened. Raises `StoreBusyError`, `StoreError`."""


def checked_store_name(name: str) -> str:
    """A name of a sandbox in a store. Raises `TypeError`, `ValueError`."""
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, not {type(name).__name__}")
    if _NAME.fullmatch(name) is None:
        raise ValueError(
            "a name has 1 to 100 letters, digits, '.', '_' and '-', and does not begin with '.' or "
            f"'-': not {name[:80]!r}"
        )
    return name


def default_store_directory() -> Path:
    """The user's directory for named sandboxes."""
    home = Path.home()
    if sys.platform == "darwin":
        data = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return data / "wasmsand" / "sandboxes"


def opened_store(store: Store | str | os.PathLike[str] | None) -> Store:
    """The store that an argument names."""
    if store is None or isinstance(store, str | os.PathLike):
        return DirectoryStore(store)
    return store


class DirectoryStore:
    """A directory of this machine.

    Example:
        store = DirectoryStore("/var/lib/sandboxes")
        with Sandbox.open("agent-7", store=store) as sandbox:
            sandbox.commands.run("date >> log")
        [stored.name for stored in store.list()]
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """`path` defaults to a directory below the user's data directory. It is created when it is
        first used."""
        self.path = default_store_directory() if path is None else Path(path)

    def claim(self, name: str) -> DirectoryClaim:
        """See `Store`."""
        import hashlib  # not needed by a sandbox that is not kept

        checked_store_name(name)
        key = hashlib.sha256(name.encode()).hexdigest()[:32]
        with self.errors(f"cannot open {name!r}"):
            for directory in (self.path, self.path / "states", self.path / "locks"):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = locked_file(
                self.path / "locks" / key,
                lambda pid: f"the sandbox {name!r} is open in process {pid}; it can be open once",
            )
            claim = DirectoryClaim(self, name, key, lock)
            try:
                claim.remove_leftovers()
            except BaseException:
                claim.release()
                raise
        return claim

    def list(self) -> list[StoredSandbox]:
        """See `Store`."""
        if not (self.path / "index.sqlite").exists():
            return []
        with self.errors("cannot list sandboxes"), self.index() as index:
            rows = index.execute("SELECT name, size, saved FROM sandboxes ORDER BY name")
            return [StoredSandbox(*row) for row in rows]

    def delete(self, name: str) -> None:
        """See `Store`."""
        claim = self.claim(name)
        try:
            with self.errors(f"cannot delete {name!r}"):
                with self.index() as index:
                    gone = index.execute("DELETE FROM sandboxes WHERE name = ?", (name,)).rowcount
                claim.remove_leftovers()
            if not gone:
                raise StoreError(f"{self.path} has no sandbox named {name!r}")
        finally:
            claim.release()

    @contextmanager
    def index(self) -> Iterator[sqlite3.Connection]:
        """The index, in one transaction. Raises `sqlite3.Error`."""
        import sqlite3

        with closing(
            sqlite3.connect(self.path / "index.sqlite", timeout=_PATIENCE_SECONDS)
        ) as index:
            index.execute("PRAGMA synchronous = FULL")
            with index:
                version = index.execute("PRAGMA user_version").fetchone()[0]
                if version > _VERSION:
                    raise StoreError(f"{self.path} was written by a newer wasmsand")
                if version < _VERSION:
                    index.execute(
                        "CREATE TABLE IF NOT EXISTS sandboxes (name TEXT PRIMARY KEY, "
                        "file TEXT NOT NULL, size INTEGER NOT NULL, saved REAL NOT NULL)"
                    )
                    index.execute(f"PRAGMA user_version = {_VERSION}")
                yield index

    @contextmanager
    def errors(self, what: str) -> Iterator[None]:
        """Turn the errors of files and of the index into `StoreError`."""
        import sqlite3

        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(f"{what} in {self.path}: {reason}") from error
        except sqlite3.Error as error:
            raise StoreError(f"{what} in {self.path}: {error}") from error


class DirectoryClaim:
    """See `Claim`."""

    def __init__(self, store: DirectoryStore, name: str, key: str, lock: int) -> None:
        self._store = store
        self.name = name
        self._key = key
        self._writing = threading.Lock()
        self._release = weakref.finalize(self, os.close, lock)
        _claims.add(self)

    def read(self) -> IO[bytes] | None:
        """See `Claim`."""
        with self._store.errors(f"cannot read {self.name!r}"):
            file = self._current()
            return None if file is None else open(self._states / file, "rb")

    def write(self, write: Callable[[IO[bytes]], None]) -> None:
        """See `Claim`."""
        what = f"cannot save {self.name!r}; the last saved state is unchanged"
        with self._writing, self._store.errors(what):
            before = self._current()
            file = f"{self._key}-{time.time_ns()}.wsand"
            path = self._states / file
            with replacing(path) as stream:
                write(stream)
            try:
                with self._store.index() as index:
                    index.execute(
                        "INSERT OR REPLACE INTO sandboxes VALUES (?, ?, ?, ?)",
                        (self.name, file, path.stat().st_size, time.time()),
                    )
            except BaseException:
                self._clean_up()
                raise
            if before is not None:
                (self._states / before).unlink(missing_ok=True)

    def _clean_up(self) -> None:
        """Remove a file that the index may not know."""
        import sqlite3

        try:
            self.remove_leftovers()
        except (OSError, sqlite3.Error, StoreError):
            pass  # whoever claims the name next tries again

    def release(self) -> None:
        """See `Claim`."""
        self._release()

    def remove_leftovers(self) -> None:
        """Remove files of this name that the index does not refer to."""
        current = self._current()
        for path in self._states.glob(f"*{self._key}-*"):
            if path.name != current:
                path.unlink(missing_ok=True)
        sync_directory(self._states)

    @property
    def _states(self) -> Path:
        return self._store.path / "states"

    def _current(self) -> str | None:
        with self._store.index() as index:
            row = index.execute(
                "SELECT file FROM sandboxes WHERE name = ?", (self.name,)
            ).fetchone()
        if row is None:
            return None
        file = str(row[0])
        if not file.startswith(self._key) or "/" in file:
            raise StoreError(f"the index of {self._store.path} is damaged")
        return file


def locked_file(path: Path, busy: Callable[[str], str]) -> int:
    """An open lock file that nobody else has locked. Raises `OSError`, and `StoreBusyError` with
    the message of `busy`, which gets the number of the process that has locked it."""
    if "fcntl" not in globals():
        raise UnsupportedError("stores need file locks, which this system does not have")
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d" % os.getpid(), 0)
    except BlockingIOError:
        owner = os.pread(lock, 20, 0).decode("ascii", "replace")
        os.close(lock)
        raise StoreBusyError(busy(owner or "unknown")) from None
    except BaseException:
        os.close(lock)
        raise
    return lock


_claims: Final[weakref.WeakSet[DirectoryClaim]] = weakref.WeakSet()


def _release_in_child() -> None:
    """A lock belongs to all processes that have its file open. So a forked child closes it, or the
    name would stay claimed after the parent's end."""
    for claim in list(_claims):
        claim.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)
