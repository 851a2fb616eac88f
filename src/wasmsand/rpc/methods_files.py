"""Methods on files.

Rules: a call without our own parameters behaves exactly as the original protocol defines; with
`details`, the result contains all metadata.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from wasmsand.rpc import values
from wasmsand.rpc.method import OK, Method, Result
from wasmsand.rpc.params import Params, invalid
from wasmsand.rpc.session import RpcSession, sandbox_error
from wasmsand.rpc.transfers import Incoming, Outgoing
from wasmsand.sdk import arguments
from wasmsand.sdk.backend import FileWrite
from wasmsand.sdk.errors import no_space
from wasmsand.sdk.results import FileInfo


def _path(session: RpcSession, params: Params, name: str = "path") -> str:
    return arguments.guest_path(name, params.text(name), session.sandbox.options.cwd)


def _mode(params: Params) -> int | None:
    return arguments.file_mode("mode", params.integer("mode")) if params.has("mode") else None


def _write(session: RpcSession, params: Params) -> Result:
    path, data, mode = _path(session, params), params.data("data"), _mode(params)
    session.backend.write_file(path, data, mode=mode)
    return OK


def _write_many(session: RpcSession, params: Params) -> Result:
    files = []
    for file in params.objects("files"):
        file.check_names(("path", "data"), ("mode",))
        files.append(FileWrite(_path(session, file), file.data("data"), _mode(file)))
    session.backend.write_files(files)
    return OK


def _append(session: RpcSession, params: Params) -> Result:
    session.backend.append_file(_path(session, params), params.data("data"))
    return OK


def _read(session: RpcSession, params: Params) -> Result:
    path = _path(session, params)
    offset = params.integer("offset", 0)
    count = params.optional(Params.integer, "count")
    if offset < 0 or (count is not None and count < 0):
        raise invalid("offset and count must not be negative")
    return {"data": values.data_out(session.backend.read_file(path, offset, count))}


def _list(session: RpcSession, params: Params) -> Result:
    entries = session.backend.list_directory(
        _path(session, params), recursive=params.flag("recursive")
    )
    describe = values.record_out if params.flag("details") else _entry
    return {"entries": [describe(info) for info in entries]}


def _stat(session: RpcSession, params: Params) -> Result:
    follow = not params.is_given("follow") or params.flag("follow")
    info = session.backend.stat(_path(session, params), follow=follow)
    return values.record_out(info) if params.flag("details") else _entry(info)


def _entry(info: FileInfo) -> dict[str, object]:
    """The protocol knows two types: everything that is not a directory is a file."""
    kind = "dir" if info.type == "dir" else "file"
    return {"name": info.name, "type": kind, "size": info.size}


def _mkdir(session: RpcSession, params: Params) -> Result:
    path = _path(session, params)
    if params.is_given("parents"):
        session.backend.make_directory(path, parents=params.flag("parents"))
        return OK
    session.backend.make_directory(posixpath.dirname(path.rstrip("/")) or "/", parents=True)
    session.backend.make_directory(path, parents=False)
    return OK


def _rm(session: RpcSession, params: Params) -> Result:
    session.backend.remove(_path(session, params), recursive=params.flag("recursive"))
    return OK


def _rename(session: RpcSession, params: Params) -> Result:
    session.backend.rename(_path(session, params, "source"), _path(session, params, "target"))
    return OK


def _copy(session: RpcSession, params: Params) -> Result:
    session.backend.copy(_path(session, params, "source"), _path(session, params, "target"))
    return OK


def _chmod(session: RpcSession, params: Params) -> Result:
    mode = arguments.file_mode("mode", params.integer("mode"))
    session.backend.chmod(_path(session, params), mode)
    return OK


def _symlink(session: RpcSession, params: Params) -> Result:
    target = arguments.non_empty_text("target", params.text("target"))
    session.backend.symlink(target, _path(session, params))
    return OK


def _readlink(session: RpcSession, params: Params) -> Result:
    return {"target": session.backend.read_link(_path(session, params))}


def _export_tar(session: RpcSession, params: Params) -> Result:
    pieces = session.backend.export_tar(_path(session, params))
    return {"stream": session.transfers.add(Outgoing(pieces))}


def _write_stream(session: RpcSession, params: Params) -> Result:
    path, mode = _path(session, params), _mode(params)
    backend, limit = session.backend, session.sandbox.options.fs_limit_bytes

    def write(pieces: Iterable[bytes]) -> None:
        held, size = [], 0
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            if size > limit:  # the content is in memory until it is written
                raise no_space(path, limit)
        backend.write_file(path, b"".join(held), mode=mode)

    return {"stream": session.transfers.add(Incoming(write))}


def _import_tar(session: RpcSession, params: Params) -> Result:
    backend, path = session.backend, _path(session, params)
    incoming = Incoming(lambda pieces: backend.import_tar(path, pieces))
    return {"stream": session.transfers.add(incoming)}


def _stream_read(session: RpcSession, params: Params) -> Result:
    stream = session.transfers.get(params.integer("stream"))
    if not isinstance(stream, Outgoing):
        raise sandbox_error("EBADF", "this stream can only be written")
    piece = stream.next()
    return {"data": None if piece is None else values.data_out(piece)}


def _incoming(session: RpcSession, params: Params) -> Incoming:
    stream = session.transfers.get(params.integer("stream"))
    if not isinstance(stream, Incoming):
        raise sandbox_error("EBADF", "this stream can only be read")
    return stream


def _stream_write(session: RpcSession, params: Params) -> Result:
    _incoming(session, params).write(params.data("data"))
    return OK


def _stream_finish(session: RpcSession, params: Params) -> Result:
    stream = _incoming(session, params)
    try:
        stream.finish()
    finally:
        session.transfers.drop(params.integer("stream"))
    return OK


def _stream_close(session: RpcSession, params: Params) -> Result:
    session.transfers.end(params.integer("stream"))
    return OK


FILE_METHODS = (
    Method("files.write", _write, ("path", "data"), ("mode",)),
    Method("files.writeStream", _write_stream, ("path",), ("mode",)),
    Method("files.writeMany", _write_many, ("files",)),
    Method("files.append", _append, ("path", "data")),
    Method("files.read", _read, ("path",), ("offset", "count")),
    Method("files.list", _list, ("path",), ("recursive", "details")),
    Method("files.stat", _stat, ("path",), ("follow", "details")),
    Method("files.mkdir", _mkdir, ("path",), ("parents",)),
    Method("files.rm", _rm, ("path",), ("recursive",)),
    Method("files.rename", _rename, ("source", "target")),
    Method("files.copy", _copy, ("source", "target")),
    Method("files.chmod", _chmod, ("path", "mode")),
    Method("files.symlink", _symlink, ("target", "path")),
    Method("files.readlink", _readlink, ("path",)),
    Method("files.exportTar", _export_tar, ("path",)),
    Method("files.importTar", _import_tar, ("path",)),
    Method("streams.read", _stream_read, ("stream",), waits=True),
    Method("streams.write", _stream_write, ("stream", "data"), waits=True),
    Method("streams.finish", _stream_finish, ("stream",), waits=True),
    Method("streams.close", _stream_close, ("stream",)),
)
