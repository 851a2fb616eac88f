"""The build cache: outside the repository, shared by all clones on a machine.

    build/sources/SHA256/FILE     tarballs, by content
    build/tools/NAME-VERSION/     wasm-opt and, where needed, Node
    build/built/NAME/KEY/         finished outputs, with entry.json inside
    build/work/NAME-KEY/          trees being built; removed when done, failed or stopped
    build/logs/NAME-KEY.log       what every step printed
    build/locks/, build/apt/      locks between builders; the private apt state

Rules: an entry with its final name is complete, because it is made under another name on the
same disk and then renamed; whoever makes an entry holds its lock; a lock ends with its process,
so the leftovers of a killed builder are recognised and removed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from userland.builder.errors import BuildError, DiskFull, Interrupted
from userland.builder.keys import file_digest

ENTRY_FILE = "entry.json"
# The cache's folder of finished outputs.
BUILT = "built"
# The folder of an output with its licence texts.
LICENCES = "licences"
_FORMAT = 1
_MINIMUM_FREE_BYTES = 1 << 30
_LOCK_POLL_SECONDS = 0.2


def default_root() -> Path:
    """$WASMSAND_CACHE, else $XDG_CACHE_HOME/wasmsand, else ~/.cache/wasmsand."""
    if chosen := os.environ.get("WASMSAND_CACHE"):
        return Path(chosen).expanduser().absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "wasmsand"
    return Path.home() / ".cache" / "wasmsand"


@contextmanager
def disk_errors(where: Path) -> Iterator[None]:
    """Raise `DiskFull` for "no space left"."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(where) from error
        raise


@dataclass(frozen=True)
class Entry:
    """One finished output in the cache."""

    name: str
    key: str
    folder: Path
    seconds: dict[str, float]
    """How long each step of the build took."""
    files: dict[str, tuple[int, str]]
    """Size and sha256 of each regular file, by path relative to `folder`."""


class Cache:
    """The cache in one directory; any number of builders may use it at once."""

    def __init__(self, root: Path) -> None:
        self.root = root / "build"
        self.sources = self.root / "sources"
        self.tools = self.root / "tools"
        self.built = self.root / BUILT
        self.work = self.root / "work"
        self.logs = self.root / "logs"
        self.apt = self.root / "apt"
        self._locks = self.root / "locks"

    def prepare(self) -> None:
        """Make the directories, check for free space, remove what killed builders left."""
        try:
            with disk_errors(self.root):
                for folder in (self.sources, self.tools, self.built, self.work, self.logs):
                    folder.mkdir(parents=True, exist_ok=True)
                self._locks.mkdir(exist_ok=True)
        except OSError as error:
            raise BuildError(
                f"the cache directory {self.root} cannot be used: {error.strerror}",
                "Set WASMSAND_CACHE to a directory you can write to.",
            ) from error
        if shutil.disk_usage(self.root).free < _MINIMUM_FREE_BYTES:
            raise DiskFull(self.root)
        for leftover in self.work.iterdir():
            with self._try_lock(_work_lock(leftover.name)) as mine:
                # A child of a killed builder may still write there; the next builder removes it.
                if mine:
                    with suppress(OSError):
                        remove_tree(leftover)

    @contextmanager
    def lock(
        self,
        name: str,
        stop: threading.Event | None = None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> Iterator[None]:
        """Hold the lock `name` against other threads and builders.

        `on_wait` is called once if another has the lock; `stop` ends the wait.
        """
        waiting = False
        while True:
            with self._try_lock(name) as mine:
                if mine:
                    yield
                    return
            if not waiting:
                waiting = True
                on_wait()
            if stop is not None and stop.wait(_LOCK_POLL_SECONDS):
                raise Interrupted
            if stop is None:
                time.sleep(_LOCK_POLL_SECONDS)

    @contextmanager
    def _try_lock(self, name: str) -> Iterator[bool]:
        # Opened each time anew, so that flock excludes threads of one process too.
        with (self._locks / f"{name}.lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    @contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """An empty private directory on the cache's disk, removed afterwards."""
        folder = self.work / name
        with self.lock(_work_lock(name)):
            remove_tree(folder)
            folder.mkdir(parents=True)
            try:
                yield folder
            finally:
                remove_tree(folder)

    def log_file(self, name: str, key: str) -> Path:
        return self.logs / f"{name}-{key[:12]}.log"

    def find(self, name: str, key: str) -> Entry | None:
        """The finished output; None if there is none or it is damaged."""
        folder = self.built / name / key
        try:
            facts = json.loads((folder / ENTRY_FILE).read_text(encoding="utf-8"))
            if facts["format"] != _FORMAT or facts["key"] != key:
                return None
            files = {
                path: (int(size), str(digest)) for path, (size, digest) in facts["files"].items()
            }
            if any((folder / path).stat().st_size != size for path, (size, _) in files.items()):
                return None
            return Entry(name, key, folder, dict(facts["seconds"]), files)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def publish(self, name: str, key: str, made: Path, seconds: dict[str, float]) -> Entry:
        """Give the directory `made` (in `work`) its final name. Needs the entry's lock."""
        with disk_errors(self.root):
            files = describe_files(made)
            facts: dict[str, Any] = {
                "format": _FORMAT,
                "name": name,
                "key": key,
                "seconds": {step: round(spent, 2) for step, spent in seconds.items()},
                "files": {path: list(facts) for path, facts in files.items()},
            }
            (made / ENTRY_FILE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
            # Write the content to disk before the name; otherwise a crash could leave empty files.
            for path in [*files, ENTRY_FILE]:
                _sync(made / path)
            final = self.built / name / key
            final.parent.mkdir(parents=True, exist_ok=True)
            remove_tree(final)
            made.rename(final)
            _sync(final.parent)
        return Entry(name, key, final, seconds, files)

    def clean(self, names: list[str] | None, downloads: bool) -> int:
        """Remove built outputs (of the named recipes, or all) and logs; returns bytes freed."""
        if names is None:
            doomed = [self.built, self.logs, self.work]
        else:
            doomed = [self.built / name for name in names]
            doomed += [log for name in names for log in self.logs.glob(f"{name}-*.log")]
        if downloads:
            doomed += [self.sources, self.tools, self.apt]
        freed = 0
        for path in doomed:
            freed += _size(path)
            remove_tree(path)
        return freed


def describe_files(folder: Path) -> dict[str, tuple[int, str]]:
    """Size and sha256 of every regular file below `folder`."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_size, file_digest(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.name != ENTRY_FILE
    }


def remove_tree(path: Path) -> None:
    """Remove a file or directory, with read-only parts, if it exists."""
    if path.is_symlink() or path.is_file():
        path.unlink()
        return
    if not path.is_dir():
        return
    for folder, _, _ in os.walk(path):
        # Some tarballs contain directories without write permission.
        os.chmod(folder, 0o755)
    shutil.rmtree(path)


def _work_lock(name: str) -> str:
    """The lock of a directory that a builder works in."""
    return f"work-{name}"


def _size(path: Path) -> int:
    if not path.is_dir():
        return path.lstat().st_size if path.exists() else 0
    return sum(found.lstat().st_size for found in path.rglob("*") if not found.is_dir())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
