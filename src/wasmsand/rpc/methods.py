"""Every method that a client can call: the table, and the handlers of the first protocol.

Rules: a method's parameters are checked by name from the table and by type in its handler,
before anything is done; a result has the fields that docs/protocols/json-rpc.md lists for it,
and no others, so that a client may compare it as a whole.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wasmsand.kernel.limits import Limits
from wasmsand.rpc.params import Params
from wasmsand.rpc.session import Session
from wasmsand.sdk.results import FileInfo
from wasmsand.sdk.sandbox import Sandbox

Handler = Callable[[Session, Params], dict[str, object]]

_OK: Final[dict[str, object]] = {"ok": True}


@dataclass(frozen=True, slots=True)
class Method:
    """One row of the table."""

    name: str
    handler: Handler
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def _create(session: Session, params: Params) -> dict[str, object]:
    session.check_can_begin()
    default = Limits()
    session.begin(
        Sandbox(
            wasm_dir=params.text("wasmDir") if params.has("wasmDir") else None,
            timeout_ms=params.number("timeoutMs") if params.has("timeoutMs") else 30_000,
            fs_limit_bytes=params.integer("fsLimitBytes", default.fs_limit_bytes),
            max_inodes=params.integer("maxInodes", default.max_inodes),
            memory_limit_bytes=params.integer("memoryLimitBytes", default.memory_limit_bytes),
            max_processes=params.integer("maxProcesses", default.max_processes),
            max_open_files=params.integer("maxOpenFiles", default.max_open_files),
            max_output_bytes=params.integer("maxOutputBytes", default.max_output_bytes),
            env=params.variables("env") if params.has("env") else None,
        )
    )
    return _OK


_LIMITS: Final = (
    "fsLimitBytes",
    "maxInodes",
    "memoryLimitBytes",
    "maxProcesses",
    "maxOpenFiles",
    "maxOutputBytes",
)


def _run(session: Session, params: Params) -> dict[str, object]:
    result = session.sandbox.commands.run(
        params.text("command"),
        stdin=params.data("stdin") if params.has("stdin") else None,
        env=params.variables("env") if params.has("env") else None,
        cwd=params.text("cwd") if params.has("cwd") else None,
        timeout_ms=params.number("timeoutMs") if params.has("timeoutMs") else None,
    )
    return {
        "exitCode": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "executionTimeMs": round(result.execution_time_ms, 3),
    }


def _files_write(session: Session, params: Params) -> dict[str, object]:
    session.sandbox.files.write(params.text("path"), params.data("data"))
    return _OK


def _files_read(session: Session, params: Params) -> dict[str, object]:
    content = session.sandbox.files.read(params.text("path"))
    return {"data": base64.b64encode(content).decode("ascii")}


def _files_list(session: Session, params: Params) -> dict[str, object]:
    return {"entries": [_entry(info) for info in session.sandbox.files.list(params.text("path"))]}


def _files_mkdir(session: Session, params: Params) -> dict[str, object]:
    session.sandbox.files.mkdir(params.text("path"))
    return _OK


def _files_rm(session: Session, params: Params) -> dict[str, object]:
    session.sandbox.files.rm(params.text("path"), recursive=params.flag("recursive"))
    return _OK


def _files_stat(session: Session, params: Params) -> dict[str, object]:
    return _entry(session.sandbox.files.stat(params.text("path")))


def _env_set(session: Session, params: Params) -> dict[str, object]:
    session.sandbox.env.set(params.text("name"), params.text("value"))
    return _OK


def _env_get(session: Session, params: Params) -> dict[str, object]:
    return {"value": session.sandbox.env.get(params.text("name"))}


def _kill(session: Session, params: Params) -> dict[str, object]:
    session.end()
    return _OK


def _entry(info: FileInfo) -> dict[str, object]:
    """Of types there are two: what is not a directory is a file."""
    kind = "dir" if info.type == "dir" else "file"
    return {"name": info.name, "type": kind, "size": info.size}


METHODS: Final = {
    method.name: method
    for method in (
        Method("create", _create, ("wasmDir",), ("timeoutMs", *_LIMITS, "env")),
        Method("run", _run, ("command",), ("stdin", "env", "cwd", "timeoutMs")),
        Method("files.write", _files_write, ("path", "data")),
        Method("files.read", _files_read, ("path",)),
        Method("files.list", _files_list, ("path",)),
        Method("files.mkdir", _files_mkdir, ("path",)),
        Method("files.rm", _files_rm, ("path",), ("recursive",)),
        Method("files.stat", _files_stat, ("path",)),
        Method("env.set", _env_set, ("name", "value")),
        Method("env.get", _env_get, ("name",)),
        Method("kill", _kill),
    )
}
