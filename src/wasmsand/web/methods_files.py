"""Requests about files.

Rules: the names and results are those of JSON-RPC; content travels beside the JSON text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from wasmsand.machine.files import FileEntry
from wasmsand.rpc.params import Params
from wasmsand.sdk.errors import file_errors
from wasmsand.web.service import OK, Answer, Call, Handler, Service


def _file(entry: FileEntry) -> dict[str, Any]:
    return {
        "name": entry.name, "type": entry.type, "size": entry.size, "mode": entry.mode,
        "mtimeNs": str(entry.mtime_ns), "path": entry.path,
    }  # fmt: skip


def _on_file(act: Callable[[Service, Call, str], Answer]) -> Callable[[Service, Call], Answer]:
    def acted(service: Service, call: Call) -> Answer:
        path = call.path("source" if call.params.has("source") else "path")
        with file_errors(path):
            return act(service, call, path)

    return acted


def _write(service: Service, call: Call, path: str) -> Answer:
    mode = call.params.optional(Params.integer, "mode")
    service.machine.files.write(path, call.data or b"", mode=mode)
    return OK


def _append(service: Service, call: Call, path: str) -> Answer:
    service.machine.files.append(path, call.data or b"")
    return OK


def _read(service: Service, call: Call, path: str) -> Answer:
    params = call.params
    count = params.optional(Params.integer, "count")
    return {}, service.machine.files.read(path, params.integer("offset", 0), count)


def _list(service: Service, call: Call, path: str) -> Answer:
    files = service.machine.files
    listed = files.tree(path) if call.params.flag("recursive") else files.list(path)
    return {"entries": [_file(entry) for entry in listed]}, None


def _stat(service: Service, call: Call, path: str) -> Answer:
    follow = call.params.value("follow") is not False
    return _file(service.machine.files.stat(path, follow=follow)), None


def _mkdir(service: Service, call: Call, path: str) -> Answer:
    service.machine.files.mkdir(path, parents=call.params.value("parents") is not False)
    return OK


def _rm(service: Service, call: Call, path: str) -> Answer:
    service.machine.files.remove(path, recursive=call.params.flag("recursive"))
    return OK


def _rename(service: Service, call: Call, path: str) -> Answer:
    service.machine.files.rename(path, call.path("target"))
    return OK


def _copy(service: Service, call: Call, path: str) -> Answer:
    service.machine.files.copy(path, call.path("target"))
    return OK


def _chmod(service: Service, call: Call, path: str) -> Answer:
    service.machine.files.chmod(path, call.params.integer("mode"))
    return OK


def _symlink(service: Service, call: Call, path: str) -> Answer:
    service.machine.files.symlink(call.params.text("target"), path)
    return OK


def _readlink(service: Service, call: Call, path: str) -> Answer:
    return {"target": service.machine.files.read_link(path)}, None


FILE_METHODS: Final[dict[str, Handler]] = {
    "files.write": _on_file(_write),
    "files.append": _on_file(_append),
    "files.read": _on_file(_read),
    "files.list": _on_file(_list),
    "files.stat": _on_file(_stat),
    "files.mkdir": _on_file(_mkdir),
    "files.rm": _on_file(_rm),
    "files.rename": _on_file(_rename),
    "files.copy": _on_file(_copy),
    "files.chmod": _on_file(_chmod),
    "files.symlink": _on_file(_symlink),
    "files.readlink": _on_file(_readlink),
}
