"""Requests about the environment, processes and copies of the sandbox.

Rules: a snapshot holds files and variables, and never changes; restoring ends every process.
"""

from __future__ import annotations

from typing import Final

from wasmsand.machine.processes import list_processes, send_signal
from wasmsand.rpc.params import Params
from wasmsand.sdk.errors import StateError
from wasmsand.web.service import OK, Answer, Call, Handler, Service


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
    }, None  # fmt: skip


def _processes(service: Service, call: Call) -> Answer:
    entries = list_processes(service.machine)  # type: ignore[arg-type]
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
    send_signal(service.machine, pid, signal)  # type: ignore[arg-type]
    return OK


def _snapshot(service: Service, call: Call) -> Answer:
    name = call.params.optional(Params.text, "name") or f"snapshot-{len(service.snapshots) + 1}"
    tree = service.machine.kernel.root.freeze()
    service.snapshots[name] = (tree.merged() if tree.is_long else tree, dict(service.variables))
    return {"snapshot": name}, None


def _restore(service: Service, call: Call) -> Answer:
    name = call.params.text("snapshot")
    kept = service.snapshots.get(name)
    if kept is None:
        raise StateError(f"there is no snapshot {name!r}")
    tree, variables = kept
    service.machine.close()
    service.begin(service.options, tree)
    service.variables.update(variables)
    return OK


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
    "snapshot": _snapshot,
    "restore": _restore,
    "snapshots.list": _snapshots_list,
    "snapshots.delete": _snapshots_delete,
}
