"""Files: the operations of `sandbox.files`. Bodies hold the files' bytes unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any

from starlette.responses import Response

from wasmsand.http import long_answers
from wasmsand.http.file_messages import (
    ChangeMode,
    FilePath,
    LinkTarget,
    ListDirectory,
    MakeDirectory,
    MakeLink,
    ReadFile,
    RemoveFile,
    StatFile,
    TwoPaths,
    WriteFile,
    WriteFiles,
)
from wasmsand.http.messages import Done
from wasmsand.http.routing import Call
from wasmsand.http.streaming import Emit, Streaming
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import FileWrite
from wasmsand.sdk.results import FileInfo

BYTES = "application/octet-stream"
TAR = "application/x-tar"
_PIECE = 256 * 1024
"""Bytes passed to the connection at once."""
_WHOLE_BYTES = 16 * 1024 * 1024
"""Up to this size, content is read in one step. The rest is read while it is sent, so the server
does not hold all of it."""
_STEP_BYTES = 1024 * 1024
_TAR_PIECES = 16
"""Pieces of an archive produced by one call on a thread."""


async def read(call: Call[ReadFile, None]) -> Response:
    """`GET /v1/sandboxes/{sandbox}/files`"""
    sandbox, query = call.entry.sandbox, call.query
    path = sandbox.path(query.path)

    def begin() -> tuple[bytes, int]:
        """The beginning of the content, and the size of all of it."""
        backend = sandbox.backend
        wanted = _WHOLE_BYTES if query.count is None else min(query.count, _WHOLE_BYTES)
        first = backend.read_file(path, query.offset, wanted)
        if len(first) < _WHOLE_BYTES:
            return first, len(first)
        rest = backend.stat(path).size - query.offset
        if query.count is not None:
            rest = min(rest, query.count)
        if rest > 2 * sandbox.options.fs_limit_bytes:
            backend.read_file(path, query.offset, query.count)  # raises: too large a sparse file
        return first, max(rest, len(first))

    first, size = await call.in_file_thread(begin)
    if size <= _PIECE:
        return Response(first, media_type=BYTES)

    async def send(emit: Emit) -> None:
        nonlocal first
        sent, piece, first = 0, first, b""
        while piece:
            for start in range(0, len(piece), _PIECE):
                await emit(piece[start : start + _PIECE])
            sent += len(piece)
            at, count = query.offset + sent, min(_STEP_BYTES, size - sent)
            piece = b""
            if count:
                piece = await call.in_file_thread(
                    partial(sandbox.backend.read_file, path, at, count)
                )
        # If the file has shrunk meanwhile, the response is too short and the connection breaks.

    with ExitStack() as held:
        held.enter_context(call.service.registry.use(call.entry))
        held.enter_context(call.service.buffer(call.owner))(len(first))
        length = {"Content-Length": str(size)}
        return Streaming(send, BYTES, held=held.pop_all(), headers=length)


async def write(call: Call[WriteFile, bytes]) -> Done:
    """`PUT /v1/sandboxes/{sandbox}/files`"""
    sandbox = call.entry.sandbox
    path = sandbox.path(call.query.path)
    return await _done(
        call, lambda: sandbox.backend.write_file(path, call.body, mode=call.query.mode)
    )


async def write_many(call: Call[None, WriteFiles]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/files/batch`"""
    sandbox = call.entry.sandbox
    wanted = []
    for number, file in enumerate(call.body.files):
        if (file.text is None) == (file.base64 is None):
            raise ValueError(f"files[{number}] must have either text or base64")
        data = file.base64 if file.text is None else arguments.content("text", file.text)
        wanted.append(FileWrite(sandbox.path(file.path), data or b"", file.mode))
    return await _done(call, lambda: sandbox.backend.write_files(wanted))


async def append(call: Call[FilePath, bytes]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/files/append`"""
    sandbox = call.entry.sandbox
    path = sandbox.path(call.query.path)
    return await _done(call, lambda: sandbox.backend.append_file(path, call.body))


async def remove(call: Call[RemoveFile, None]) -> Done:
    """`DELETE /v1/sandboxes/{sandbox}/files`"""
    sandbox = call.entry.sandbox
    path = sandbox.path(call.query.path)
    return await _done(call, lambda: sandbox.backend.remove(path, recursive=call.query.recursive))


async def stat(call: Call[StatFile, None]) -> FileInfo:
    """`GET /v1/sandboxes/{sandbox}/files/stat`"""
    sandbox = call.entry.sandbox
    path = sandbox.path(call.query.path)
    return await call.in_file_thread(lambda: sandbox.backend.stat(path, follow=call.query.follow))


async def listing(call: Call[ListDirectory, None]) -> Response:
    """`GET /v1/sandboxes/{sandbox}/files/list`"""
    sandbox = call.entry.sandbox
    path = sandbox.path(call.query.path)

    def listed() -> list[bytes]:
        entries = sandbox.backend.list_directory(path, recursive=call.query.recursive)
        return long_answers.object_with_list("entries", entries)

    pieces = await call.in_file_thread(listed)
    with ExitStack() as held:
        held.enter_context(call.service.buffer(call.owner))(long_answers.size_of(pieces))
        return long_answers.answer(pieces, held.pop_all())


async def mkdir(call: Call[None, MakeDirectory]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/files/mkdir`"""
    sandbox = call.entry.sandbox
    path = sandbox.path(call.body.path)
    return await _done(
        call, lambda: sandbox.backend.make_directory(path, parents=call.body.parents)
    )


async def rename(call: Call[None, TwoPaths]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/files/rename`"""
    sandbox = call.entry.sandbox
    source, target = _two_paths(call)
    return await _done(call, lambda: sandbox.backend.rename(source, target))


async def copy(call: Call[None, TwoPaths]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/files/copy`"""
    sandbox = call.entry.sandbox
    source, target = _two_paths(call)
    return await _done(call, lambda: sandbox.backend.copy(source, target))


async def chmod(call: Call[None, ChangeMode]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/files/chmod`"""
    sandbox = call.entry.sandbox
    path = sandbox.path(call.body.path)
    return await _done(call, lambda: sandbox.backend.chmod(path, call.body.mode))


async def symlink(call: Call[None, MakeLink]) -> Done:
    """`POST /v1/sandboxes/{sandbox}/files/symlink`"""
    sandbox = call.entry.sandbox
    path, target = sandbox.path(call.body.path), arguments.text("target", call.body.target)
    return await _done(call, lambda: sandbox.backend.symlink(target, path))


async def read_link(call: Call[FilePath, None]) -> LinkTarget:
    """`GET /v1/sandboxes/{sandbox}/files/link`"""
    sandbox = call.entry.sandbox
    path = sandbox.path(call.query.path)
    target = await call.in_file_thread(lambda: sandbox.backend.read_link(path))
    return LinkTarget(target=target)


async def export_tar(call: Call[FilePath, None]) -> Streaming:
    """`GET /v1/sandboxes/{sandbox}/files/tar`"""
    service, sandbox = call.service, call.entry.sandbox
    path = sandbox.path(call.query.path)
    pieces: Iterator[bytes] = iter(())

    def begin() -> bytes:
        # Produce the first piece before the response begins, so that a missing path is a 404.
        nonlocal pieces
        pieces = iter(sandbox.backend.export_tar(path))
        return b"".join(islice(pieces, 1))

    first = await call.in_file_thread(begin)

    using = Lock()  # the client can disconnect while a thread produces the next pieces

    def more() -> bytes:
        with using:
            return b"".join(islice(pieces, _TAR_PIECES))

    def close() -> None:
        with using:
            getattr(pieces, "close", lambda: None)()

    async def send(emit: Emit) -> None:
        data = first
        while data:
            await emit(data)
            data = await call.in_file_thread(more)

    def end() -> None:
        # Closing may call the sandbox, so do it on a thread.
        service.endings.run(close)

    with ExitStack() as held:
        held.enter_context(service.registry.use(call.entry))
        held.callback(end)
        return Streaming(send, TAR, held=held.pop_all())


async def import_tar(call: Call[FilePath, bytes]) -> Done:
    """`PUT /v1/sandboxes/{sandbox}/files/tar`"""
    sandbox = call.entry.sandbox
    path = sandbox.path(call.query.path)
    return await _done(call, lambda: sandbox.backend.import_tar(path, (call.body,)))


def _two_paths(call: Call[None, TwoPaths]) -> tuple[str, str]:
    sandbox = call.entry.sandbox
    source = sandbox.path(call.body.source, "source")
    return source, sandbox.path(call.body.target, "target")


async def _done(call: Call[Any, Any], work: Callable[[], None]) -> Done:
    await call.in_file_thread(work)
    return Done()
