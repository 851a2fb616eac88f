"""The values of the seam below the API, as JSON: one place for both ends of the pipe.

Rules: bytes are base64, names are those of the API in JSON's spelling; what is read is checked
by `Params`, so that a peer that sends nonsense is told, or found out, by an `RpcError`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wasmsand.rpc.params import Params
from wasmsand.sdk.backend import Completed, Ended, Output
from wasmsand.sdk.option_table import Interface, Option, OptionKind
from wasmsand.sdk.options import OPTIONS, SandboxOptions
from wasmsand.sdk.results import FileInfo, ProcessInfo, Usage

_STEP = 768 * 1024
"""Bytes that are encoded at once; a multiple of 3."""


def data_out(data: bytes) -> str:
    """Bytes, as base64; made in steps, so that other threads can run meanwhile."""
    if len(data) <= _STEP:
        return base64.b64encode(data).decode("ascii")
    steps = range(0, len(data), _STEP)
    return b"".join(base64.b64encode(data[at : at + _STEP]) for at in steps).decode("ascii")


_READERS: Mapping[OptionKind, Callable[[Params, str], object]] = {
    OptionKind.COUNT: Params.integer,
    OptionKind.MILLISECONDS: Params.number,
    OptionKind.VARIABLES: Params.variables,
    OptionKind.GUEST_DIRECTORY: Params.text,
    OptionKind.HOST_DIRECTORY: Params.text,
}
"""How an option is read, by its kind."""


def options_of(table: Iterable[Option] = OPTIONS) -> tuple[Option, ...]:
    """The options that a client may set."""
    return tuple(option for option in table if Interface.JSON_RPC in option.interfaces)


def options_in(params: Params, table: Iterable[Option] = OPTIONS) -> dict[str, Any]:
    """The options that a client has given. Null is the default, or None where that is a value."""
    given: dict[str, Any] = {}
    for option in options_of(table):
        name = option.json_name
        if params.has(name):
            given[option.name] = _READERS[option.kind](params, name)
        elif params.is_given(name) and option.kind.has_none:
            given[option.name] = None
    return given


def options_out(options: SandboxOptions) -> dict[str, object]:
    """What `create` needs to make the machine of a sandbox."""
    below = [option for option in options_of() if option.is_below_seam]
    return {option.json_name: getattr(options, option.name) for option in below}


def file_info_out(info: FileInfo) -> dict[str, object]:
    """All of a file's metadata."""
    return {
        "name": info.name,
        "type": info.type,
        "size": info.size,
        "mode": info.mode,
        "mtimeNs": info.mtime_ns,
        "path": info.path,
    }


def file_info_in(params: Params) -> FileInfo:
    """What `file_info_out` made."""
    return FileInfo(
        name=params.text("name"),
        type=params.text("type"),
        size=params.integer("size"),
        mode=params.integer("mode"),
        mtime_ns=params.integer("mtimeNs"),
        path=params.text("path"),
    )


def ended_out(ended: Ended) -> dict[str, object]:
    """How a command ended."""
    return {
        "exitCode": ended.exit_code,
        "timedOut": ended.timed_out,
        "executionTimeMs": ended.seconds * 1000,
        "notices": list(ended.notices),
    }


def ended_in(params: Params) -> Ended:
    """What `ended_out` made."""
    return Ended(
        exit_code=params.integer("exitCode"),
        timed_out=params.flag("timedOut"),
        seconds=params.number("executionTimeMs") / 1000,
        notices=tuple(params.texts("notices")),
    )


def completed_out(completed: Completed) -> dict[str, object]:
    """What a command left behind."""
    return {
        **ended_out(completed),
        "stdout": data_out(completed.stdout),
        "stderr": data_out(completed.stderr),
        "truncated": completed.truncated,
    }


def completed_in(params: Params) -> Completed:
    """What `completed_out` made."""
    ended = ended_in(params)
    return Completed(
        ended.exit_code,
        ended.timed_out,
        ended.seconds,
        ended.notices,
        params.data("stdout"),
        params.data("stderr"),
        params.flag("truncated"),
    )


def outputs_out(outputs: Sequence[Output]) -> list[dict[str, object]]:
    """Pieces of output, in order."""
    return [{"fd": output.fd, "data": data_out(output.data)} for output in outputs]


def outputs_in(params: Params, name: str) -> tuple[Output, ...]:
    """What `outputs_out` made."""
    return tuple(Output(item.integer("fd"), item.data("data")) for item in params.objects(name))


def process_info_out(info: ProcessInfo) -> dict[str, object]:
    """One process."""
    return {
        "pid": info.pid,
        "parentPid": info.parent_pid,
        "commandPid": info.command_pid,
        "argv": list(info.argv),
        "state": info.state,
        "memoryBytes": info.memory_bytes,
        "cpuTimeMs": info.cpu_time_ms,
    }


def process_info_in(params: Params) -> ProcessInfo:
    """What `process_info_out` made."""
    return ProcessInfo(
        pid=params.integer("pid"),
        parent_pid=params.integer("parentPid"),
        command_pid=params.integer("commandPid"),
        argv=tuple(params.texts("argv")),
        state=params.text("state"),
        memory_bytes=params.integer("memoryBytes"),
        cpu_time_ms=params.number("cpuTimeMs"),
    )


def usage_out(usage: Usage) -> dict[str, object]:
    """What a sandbox uses."""
    return {
        "fsBytes": usage.fs_bytes,
        "fsLimitBytes": usage.fs_limit_bytes,
        "inodes": usage.inodes,
        "maxInodes": usage.max_inodes,
        "processes": usage.processes,
        "maxProcesses": usage.max_processes,
        "memoryBytes": usage.memory_bytes,
        "memoryLimitBytes": usage.memory_limit_bytes,
        "cpuTimeMs": usage.cpu_time_ms,
        "kernelBytes": usage.kernel_bytes,
    }


def usage_in(params: Params) -> Usage:
    """What `usage_out` made."""
    return Usage(
        fs_bytes=params.integer("fsBytes"),
        fs_limit_bytes=params.integer("fsLimitBytes"),
        inodes=params.integer("inodes"),
        max_inodes=params.integer("maxInodes"),
        processes=params.integer("processes"),
        max_processes=params.integer("maxProcesses"),
        memory_bytes=params.integer("memoryBytes"),
        memory_limit_bytes=params.integer("memoryLimitBytes"),
        cpu_time_ms=params.number("cpuTimeMs"),
        kernel_bytes=params.integer("kernelBytes"),
    )
