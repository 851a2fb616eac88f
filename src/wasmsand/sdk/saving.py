"""Sandboxes in files and streams.

Owns `save_state` and `load_state`: opening files, and replacing them as a whole. Rules: a file is
written beside its target, forced to the disk and then renamed, so that after a failure, or a crash
of the host, the old file is there unchanged. Errors of a file are `StateError`s that name it; those
of a stream that the caller has opened are the caller's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from wasmsand.sdk.errors import StateError
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.state import FileOrStream, SandboxState


def save_state(state: SandboxState, target: FileOrStream, name: str | None = None) -> None:
    """Write a state. Raises `StateError`."""
    if not isinstance(target, str | os.PathLike):
        state.backend.save_state(state, name, _stream(target, "write"))
        return
    path = Path(target)
    try:
        with replacing(path) as stream:
            state.backend.save_state(state, name, stream)
    except OSError as error:
        raise StateError(f"cannot save to {path}: {error.strerror or error}") from error


def load_state(
    source: FileOrStream,
    options: SandboxOptions | None,
    *,
    only_files: bool = False,
    trusts_limits: bool = False,
) -> tuple[SandboxState, str | None]:
    """Read a state, and the name that it was saved with; see `read_local`. Raises `StateError`."""
    from wasmsand.sdk.local_files import read_local

    read = partial(read_local, only_files=only_files, trusts_limits=trusts_limits)
    with readable(source) as stream:
        return read(stream, checked_options(options))


@contextmanager
def readable(source: FileOrStream) -> Iterator[IO[bytes]]:
    """A saved sandbox as a stream. Raises `StateError` if it is a file that cannot be read."""
    if not isinstance(source, str | os.PathLike):
        yield _stream(source, "read")
        return
    try:
        with open(source, "rb") as stream:
            yield stream
    except OSError as error:
        raise StateError(f"cannot load {source}: {error.strerror or error}") from error


def checked_options(options: SandboxOptions | None) -> SandboxOptions | None:
    """Options of whoever loads a sandbox. Raises `TypeError`."""
    if options is not None and not isinstance(options, SandboxOptions):
        raise TypeError(f"options must be SandboxOptions, not {type(options).__name__}")
    return options


@contextmanager
def replacing(target: Path) -> Iterator[IO[bytes]]:
    """A stream to a new file, which replaces `target` when the block ends without an error. Raises
    `OSError`; then `target` is unchanged."""
    target = target.resolve()  # keep a symbolic link: replace its target
    import tempfile  # only for states in files

    file, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(file, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, target)
    except BaseException:
        try:
            os.unlink(name)
        except OSError:
            pass
        raise
    sync_directory(target.parent)


def sync_directory(directory: Path) -> None:
    """Force the names in a directory to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _stream(given: IO[bytes], method: str) -> IO[bytes]:
    if not callable(getattr(given, method, None)):
        raise TypeError(f"a path or a binary stream is needed, not {type(given).__name__}")
    return given
