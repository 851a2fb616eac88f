"""The server's store: sandboxes and snapshots in a directory.

Owns `ServerStore`. Rules: one server has the directory at a time (a lock, which the system releases
when the server dies). A record and its state are replaced together: the state is written to a file
of its own and forced to the disk; then one SQLite transaction makes the record and the file the
current ones; then the old file is removed. So after a crash, every sandbox has its last state that
was written completely, or the one before it. A failure is a `StoreError`; what was stored before is
unchanged. Only the server's user may read the directory. Files that are not ours are left alone.
"""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal, Protocol

from wasmsand.sdk.errors import StoreError
from wasmsand.sdk.saving import sync_directory
from wasmsand.sdk.stores import locked_file

Kind = Literal["sandbox", "snapshot"]
_VERSION: Final = 1
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS states (id TEXT PRIMARY KEY, kind TEXT NOT NULL, "
    "record BLOB NOT NULL, file TEXT NOT NULL, size INTEGER NOT NULL, saved REAL NOT NULL)"
)
_FILE: Final = re.compile(r"(?:sbx|snap)-[0-9a-f]{24}-\d{1,20}\.wsand")
_PART: Final = re.compile(r"\.(?:sbx|snap)-[0-9a-f]{24}-\d{1,20}\.wsand\..*\.part")
_ID: Final = re.compile(r"(?:sbx|snap)-[0-9a-f]{24}")


@dataclass(frozen=True, slots=True)
class StoredState:
    """A row of the store."""

    id: str
    kind: str
    record: bytes
    size: int
    """Of the state's file."""
    saved: float
    """When it was written, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class StoreTotals:
    """What the store has, for the quotas."""

    own_bytes: int
    """Of one token, like the following."""
    own_sandboxes: int
    own_snapshots: int
    bytes: int
    """Of all tokens."""
    sandboxes: int


class StateStore(Protocol):
    """What `Keeping` needs of a store: `ServerStore`, or a worker's way to it."""

    leftovers: int
    """Files of unfinished writes that were removed."""
    foreign: list[str]
    """Names of files that are not ours."""
    damaged: list[str]
    """Rows of the index that `all` could not use."""
    is_shared: bool
    """Whether others write to it too, so that `totals` must be asked."""

    def all(self) -> Iterator[StoredState]:
        """See `ServerStore`."""

    def record(self, identity: str) -> bytes:
        """See `ServerStore`."""

    def write(
        self, identity: str, kind: Kind, record: bytes, write: Callable[[IO[bytes]], None]
    ) -> int:
        """See `ServerStore`."""

    def write_record(self, identity: str, record: bytes) -> None:
        """See `ServerStore`."""

    def open(self, identity: str) -> IO[bytes]:
        """See `ServerStore`."""

    def delete(self, identity: str) -> None:
        """See `ServerStore`."""

    def totals(self, owner: str) -> StoreTotals:
        """What all users of a shared store have in it. Raises `StoreError`."""

    def close(self) -> None:
        """See `ServerStore`."""


@dataclass(frozen=True, slots=True)
class Part:
    """A state that is being written."""

    identity: str
    stream: IO[bytes]
    part: Path
    """Where it is written."""
    file: str
    """The name of the file that it becomes."""


class ServerStore:
    """A directory of one server. Used from any thread."""

    is_shared = False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises `StoreBusyError` if another server has the directory, and `StoreError`."""
        self.path = Path(path)
        self._states = self.path / "states"
        self.damaged: list[str] = []
        """Rows of the index that `all` could not use."""
        self._lock = threading.Lock()
        """Held while the index is used."""
        with self._errors("cannot open the store"):
            for directory in (self.path, self._states):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._claim = locked_file(
                self.path / "server.lock",
                lambda pid: (
                    f"the server in process {pid} uses the store {self.path}; choose "
                    "another directory with --store"
                ),
            )
            try:
                self._index = self._opened_index()
                self.leftovers, self.foreign = self._sort_files()
            except BaseException:
                os.close(self._claim)
                raise

    def _opened_index(self) -> sqlite3.Connection:
        path = self.path / "server.sqlite"
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        index = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            index.execute("PRAGMA synchronous = FULL")
            version = index.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise StoreError(f"the store {self.path} was written by a newer wasmsand")
            if version < _VERSION:
                index.execute(_TABLE)
                index.execute(f"PRAGMA user_version = {_VERSION}")
            index.execute("SELECT id, kind, record, file, size, saved FROM states LIMIT 1")
        except BaseException:
            index.close()
            raise
        return index

    def _sort_files(self) -> tuple[int, list[str]]:
        """Remove files that a crash has left; return their number, and names that are not ours."""
        known = {row[0] for row in self._index.execute("SELECT file FROM states")}
        removed, foreign = 0, []
        for entry in sorted(os.listdir(self._states)):
            if entry in known:
                continue
            if _FILE.fullmatch(entry) or _PART.fullmatch(entry):
                (self._states / entry).unlink(missing_ok=True)
                removed += 1
            else:
                foreign.append(entry)
        return removed, foreign

    def all(self) -> Iterator[StoredState]:
        """Everything that is stored, oldest first. Use it before all else, to the end. Raises
        `StoreError`."""
        with self._errors("cannot list the store"):
            for row in self._index.execute(
                "SELECT id, kind, record, size, saved FROM states ORDER BY rowid"
            ):
                if _is_sound(row):
                    yield StoredState(*row)
                else:
                    self.damaged.append(str(row[0])[:64])

    def state(self, identity: str) -> StoredState:
        """A row of the store. Raises `StoreError`."""
        with self._errors(f"cannot read {identity}"), self._lock:
            row = self._index.execute(
                "SELECT id, kind, record, size, saved FROM states WHERE id = ?", (identity,)
            ).fetchone()
        if row is None or not _is_sound(row):
            raise StoreError(f"the store has no {identity}")
        return StoredState(*row)

    def record(self, identity: str) -> bytes:
        """The record of a state. Raises `StoreError`."""
        with self._errors(f"cannot read {identity}"), self._lock:
            row = self._index.execute(
                "SELECT record FROM states WHERE id = ?", (identity,)
            ).fetchone()
        if row is None or not isinstance(row[0], bytes):
            raise StoreError(f"the store has no {identity}")
        return row[0]

    def write(
        self, identity: str, kind: Kind, record: bytes, write: Callable[[IO[bytes]], None]
    ) -> int:
        """Replace a state with what `write` writes, and its record. Returns the size of the file.
        Raises `StoreError`, and what `write` raises; then the old state stays."""
        part = self.begin(identity)
        try:
            with self._errors(f"cannot store {identity}"):
                write(part.stream)
        except BaseException:
            self.abandon(part)
            raise
        return self.commit(part, kind, record)

    def begin(self, identity: str) -> Part:
        """Begin to write a state, which `commit` or `abandon` ends. Raises `StoreError`."""
        assert is_state_id(identity), "ids are made by this server"
        file = f"{identity}-{time.time_ns()}.wsand"
        with self._errors(f"cannot store {identity}"):
            descriptor, name = tempfile.mkstemp(
                dir=self._states, prefix=f".{file}.", suffix=".part"
            )
            return Part(identity, os.fdopen(descriptor, "wb"), Path(name), file)

    def abandon(self, part: Part) -> None:
        """Drop what was written."""
        try:
            part.stream.close()
        except OSError:
            pass  # its last bytes do not fit
        try:
            part.part.unlink(missing_ok=True)
        except OSError:
            pass  # the next start removes it

    def commit(self, part: Part, kind: Kind, record: bytes) -> int:
        """Make what was written the current state. Returns the size of the file. Raises
        `StoreError`; then the old state stays."""
        identity, path = part.identity, self._states / part.file
        with self._errors(f"cannot store {identity}"):
            try:
                with part.stream as stream:
                    stream.flush()
                    os.fsync(stream.fileno())
                os.replace(part.part, path)
                sync_directory(self._states)
            except BaseException:
                self.abandon(part)
                raise
            try:
                size = path.stat().st_size
                with self._lock:
                    before = self._file(identity)
                    self._index.execute(
                        "INSERT INTO states (id, kind, record, file, size, saved) VALUES "
                        "(?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET record = "
                        "excluded.record, file = excluded.file, size = excluded.size, "
                        "saved = excluded.saved",
                        (identity, kind, record, part.file, size, time.time()),
                    )
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            if before is not None:
                (self._states / before).unlink(missing_ok=True)
            return size

    def totals(self, owner: str) -> StoreTotals:
        """See `StateStore`: this store has one user, who knows what is in it."""
        raise NotImplementedError

    def write_record(self, identity: str, record: bytes) -> None:
        """Replace the record of a state. Raises `StoreError`."""
        with self._errors(f"cannot store {identity}"), self._lock:
            self._index.execute("UPDATE states SET record = ? WHERE id = ?", (record, identity))

    def open(self, identity: str) -> IO[bytes]:
        """The current state. Raises `StoreError`."""
        with self._errors(f"cannot read {identity}"), self._lock:
            file = self._file(identity)
            if file is None:
                raise StoreError(f"the store has no {identity}")
            flags = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
            return os.fdopen(os.open(self._states / file, flags), "rb")

    def delete(self, identity: str) -> None:
        """Forget a state; idempotent. Raises `StoreError`."""
        with self._errors(f"cannot delete {identity}"):
            with self._lock:
                file = self._file(identity)
                self._index.execute("DELETE FROM states WHERE id = ?", (identity,))
            if file is not None:
                (self._states / file).unlink(missing_ok=True)
                sync_directory(self._states)

    def _file(self, identity: str) -> str | None:
        row = self._index.execute("SELECT file FROM states WHERE id = ?", (identity,)).fetchone()
        if row is None:
            return None
        file = str(row[0])
        if _FILE.fullmatch(file) is None or not file.startswith(f"{identity}-"):
            raise StoreError(f"the index of {self.path} is damaged: a wrong file for {identity}")
        return file

    def close(self) -> None:
        """Let another server have the directory."""
        with self._lock:
            self._index.close()
        os.close(self._claim)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreError(f"{what} in {self.path}: {reason}") from error
        except sqlite3.Error as error:
            raise StoreError(f"{what} in {self.path}: {error}") from error


def is_state_id(identity: str) -> bool:
    """Whether it has the form of an id of a sandbox or a snapshot."""
    return _ID.fullmatch(identity) is not None


def _is_sound(row: tuple[object, ...]) -> bool:
    """Whether a row of the index has the types that we write."""
    identity, kind, record, size, saved = row
    return (
        isinstance(identity, str)
        and _ID.fullmatch(identity) is not None
        and kind in ("sandbox", "snapshot")
        and isinstance(record, bytes)
        and isinstance(size, int)
        and size >= 0
        and isinstance(saved, float)
    )
