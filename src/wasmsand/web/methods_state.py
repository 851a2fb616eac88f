"""Requests about the environment, processes and copies of the sandbox.

Rules: a snapshot holds files and variables, and never changes; restoring ends every process. What
is loaded may come from anybody: its files are created through the kernel, which charges them.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Final
from zlib import compress, decompressobj
from zlib import error as zlib_error

from wasmsand.machine.at_rest import frozen_tree
from wasmsand.machine.disk_image import DiskImageRejected, read_tree, write_tree
from wasmsand.machine.processes import list_processes, send_signal
from wasmsand.rpc.params import Params
from wasmsand.sdk.errors import StateError
from wasmsand.web.service import OK, Answer, Call, Handler, Service

_MAGIC: Final = b"wasmsand page 1\n"
_HEADER_BYTES: Final = 4096
"""Most bytes of a saved file beside its content."""


def _env_set(service: Service, call: Call) -> Answer:
    service.variables[call.params.text("name")] = call.params.text("value")
    return OK


def _env_get(service: Service, call: Call) -> Answer:
    return {"value": service.variables.get(call.params.text("name"))}, None


def _env_unset(service: Service, call: Call) -> Answer:
    service.variables.pop(call.params.text("name"), None)
    return OK


def _env_all(service: Service, call: Call) -> Answer:
    return {"variables": dict(service.variables)}, None


def _usage(service: Service, call: Call) -> Answer:
    kernel = service.machine.kernel
    limits, space, cpu = kernel.limits, kernel.root.space, kernel.usage()
    kernel.ledger.see()
    return {
        "fsBytes": space.used_bytes, "fsLimitBytes": limits.fs_limit_bytes,
        "inodes": space.used_inodes, "maxInodes": limits.max_inodes,
        "processes": len(kernel.processes) - 1, "maxProcesses": limits.max_processes,
        "memoryBytes": kernel.ledger.used, "memoryLimitBytes": limits.memory_limit_bytes,
        "cpuTimeMs": (cpu.user_ns + cpu.system_ns) / 1e6,
        "kernelBytes": service.kernel_bytes(),
    }, None  # fmt: skip


def _processes(service: Service, call: Call) -> Answer:
    entries = list_processes(service.machine)
    return {
        "processes": [
            {
                "pid": entry.pid,
                "parentPid": entry.parent_pid,
                "command": [word.decode("utf-8", "replace") for word in entry.argv],
                "state": entry.state,
                "memoryBytes": entry.memory_bytes,
            }
            for entry in entries
        ]
    }, None


def _signal(service: Service, call: Call) -> Answer:
    pid, signal = call.params.integer("pid"), call.params.integer("signal", 9)
    send_signal(service.machine, pid, signal)
    return OK


def _snapshot(service: Service, call: Call) -> Answer:
    name = call.params.optional(Params.text, "name") or f"snapshot-{len(service.snapshots) + 1}"
    service.snapshots[name] = (frozen_tree(service.machine), dict(service.variables))
    return {"snapshot": name}, None


def _restore(service: Service, call: Call) -> Answer:
    name = call.params.text("snapshot")
    kept = service.snapshots.get(name)
    if kept is None:
        raise StateError(f"there is no snapshot {name!r}")
    tree, variables = kept
    machine = service.machine_with(tree)  # if this fails, the sandbox stays as it was
    service.machine.close()
    service.use(machine)
    service.variables.clear()
    service.variables.update(variables)
    return OK


def _save(service: Service, call: Call) -> Answer:
    stream = BytesIO()
    stream.write(_MAGIC)
    variables = json.dumps(service.variables).encode()
    stream.write(len(variables).to_bytes(4, "little") + variables)
    write_tree(frozen_tree(service.machine), stream)
    return {}, compress(stream.getbuffer(), 6)


def _load(service: Service, call: Call) -> Answer:
    options = service.options
    limit = options.fs_limit_bytes + options.max_inodes * _HEADER_BYTES
    stream = BytesIO(_unpacked(call.data or b"", limit))
    if stream.read(len(_MAGIC)) != _MAGIC:
        raise StateError("the data is not a saved sandbox of a page")
    variables = _variables(stream.read(int.from_bytes(stream.read(4), "little")))
    machine = service.new_machine()
    try:
        read_tree(machine, stream)
    except DiskImageRejected as rejected:  # the sandbox stays as it was
        raise StateError(f"cannot load the files: {rejected}") from None
    service.machine.close()
    service.use(machine)
    service.variables.clear()
    service.variables.update(variables)
    return OK


def _variables(text: bytes) -> dict[str, str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise StateError("damaged: the variables are wrong")
    return found


def _unpacked(data: bytes, limit: int) -> bytes:
    unpacker = decompressobj()
    try:
        content = unpacker.decompress(data, limit + 1)
    except zlib_error as error:
        raise StateError(f"damaged: {error}") from None
    if len(content) > limit:
        raise StateError("the saved sandbox is larger than fsLimitBytes allows")
    if not unpacker.eof:
        raise StateError("damaged: the data ends too early")
    return content


def _snapshots_list(service: Service, call: Call) -> Answer:
    return {"snapshots": list(service.snapshots)}, None


def _snapshots_delete(service: Service, call: Call) -> Answer:
    service.snapshots.pop(call.params.text("snapshot"), None)
    return OK


STATE_METHODS: Final[dict[str, Handler]] = {
    "env.set": _env_set,
    "env.get": _env_get,
    "env.unset": _env_unset,
    "env.all": _env_all,
    "usage": _usage,
    "processes.list": _processes,
    "processes.kill": _signal,
    "save": _save,
    "load": _load,
    "snapshot": _snapshot,
    "restore": _restore,
    "snapshots.list": _snapshots_list,
    "snapshots.delete": _snapshots_delete,
}
