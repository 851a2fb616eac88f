"""The table of preview 1's functions.

Owns the name, type, handler and note of each function. The imports of guests and `docs/wasi.md`
(`python scripts/syscall_table.py`) are made from this table. Rules: every function of
`wasi_snapshot_preview1` is listed; a program that imports an unknown function cannot start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wasmsand.abi.wasi import (
    calls_clock,
    calls_fd,
    calls_io,
    calls_path,
    calls_poll,
    calls_process,
    calls_sock,
    calls_start,
)
from wasmsand.engine.protocol import HostFunction

MODULE: Final = "wasi_snapshot_preview1"
UNSTABLE_MODULE: Final = "wasi_unstable"
"""What programs from 2019 import: the same except for a few layouts, without sock_accept."""

Handler = Callable[..., int]


@dataclass(frozen=True, slots=True)
class WasiFunction:
    """One row of the table."""

    name: str
    parameters: str
    """One letter per parameter: `i` for i32, `I` for i64."""
    handler: Handler
    note: str = ""
    """A deviation from the specification, or something not obvious."""
    unstable: Handler | None = None
    """The handler for `wasi_unstable`, if it differs."""
    in_unstable: bool = True

    @property
    def results(self) -> str:
        """All functions but one return an errno."""
        return "" if self.name == "proc_exit" else "i"


_NO_SOCKETS: Final = "not supported: ENOTSOCK"

FUNCTIONS: Final[tuple[WasiFunction, ...]] = (
    WasiFunction("args_get", "ii", calls_start.args_get),
    WasiFunction("args_sizes_get", "ii", calls_start.args_sizes_get),
    WasiFunction("clock_res_get", "ii", calls_clock.clock_res_get),
    WasiFunction("clock_time_get", "iIi", calls_clock.clock_time_get),
    WasiFunction(
        "environ_get",
        "ii",
        calls_start.environ_get,
        "if PWD is set, its value is the working directory",
    ),
    WasiFunction("environ_sizes_get", "ii", calls_start.environ_sizes_get),
    WasiFunction("fd_advise", "iIIi", calls_fd.fd_advise, "accepted, without effect"),
    WasiFunction("fd_allocate", "iII", calls_fd.fd_allocate),
    WasiFunction("fd_close", "i", calls_fd.fd_close),
    WasiFunction("fd_datasync", "i", calls_fd.fd_datasync, "no effect: files are in memory"),
    WasiFunction("fd_fdstat_get", "ii", calls_fd.fd_fdstat_get),
    WasiFunction(
        "fd_fdstat_set_flags", "ii", calls_fd.fd_fdstat_set_flags, "sync flags have no effect"
    ),
    WasiFunction("fd_fdstat_set_rights", "iII", calls_fd.fd_fdstat_set_rights),
    WasiFunction(
        "fd_filestat_get",
        "ii",
        calls_fd.fd_filestat_get,
        unstable=calls_fd.fd_filestat_get_unstable,
    ),
    WasiFunction("fd_filestat_set_size", "iI", calls_fd.fd_filestat_set_size),
    WasiFunction("fd_filestat_set_times", "iIIi", calls_fd.fd_filestat_set_times),
    WasiFunction("fd_pread", "iiiIi", calls_io.fd_pread),
    WasiFunction("fd_prestat_dir_name", "iii", calls_start.fd_prestat_dir_name),
    WasiFunction("fd_prestat_get", "ii", calls_start.fd_prestat_get),
    WasiFunction("fd_pwrite", "iiiIi", calls_io.fd_pwrite),
    WasiFunction("fd_read", "iiii", calls_io.fd_read),
    WasiFunction("fd_readdir", "iiiIi", calls_io.fd_readdir),
    WasiFunction("fd_renumber", "ii", calls_fd.fd_renumber),
    WasiFunction("fd_seek", "iIii", calls_io.fd_seek, unstable=calls_io.fd_seek_unstable),
    WasiFunction("fd_sync", "i", calls_fd.fd_sync, "no effect: files are in memory"),
    WasiFunction("fd_tell", "ii", calls_io.fd_tell),
    WasiFunction("fd_write", "iiii", calls_io.fd_write, "EPIPE also raises SIGPIPE"),
    WasiFunction("path_create_directory", "iii", calls_path.path_create_directory),
    WasiFunction(
        "path_filestat_get",
        "iiiii",
        calls_path.path_filestat_get,
        unstable=calls_path.path_filestat_get_unstable,
    ),
    WasiFunction("path_filestat_set_times", "iiiiIIi", calls_path.path_filestat_set_times),
    WasiFunction("path_link", "iiiiiii", calls_path.path_link),
    WasiFunction("path_open", "iiiiiIIii", calls_path.path_open),
    WasiFunction("path_readlink", "iiiiii", calls_path.path_readlink),
    WasiFunction("path_remove_directory", "iii", calls_path.path_remove_directory),
    WasiFunction("path_rename", "iiiiii", calls_path.path_rename),
    WasiFunction("path_symlink", "iiiii", calls_path.path_symlink),
    WasiFunction("path_unlink_file", "iii", calls_path.path_unlink_file),
    WasiFunction(
        "poll_oneoff",
        "iiii",
        calls_poll.poll_oneoff,
        "CPU-time clocks are not supported",
        unstable=calls_poll.poll_oneoff_unstable,
    ),
    WasiFunction(
        "proc_exit", "i", calls_process.proc_exit, "only the low eight bits of the status are kept"
    ),
    WasiFunction("proc_raise", "i", calls_process.proc_raise),
    WasiFunction("random_get", "ii", calls_process.random_get),
    WasiFunction("sched_yield", "", calls_process.sched_yield),
    WasiFunction("sock_accept", "iii", calls_sock.sock_accept, _NO_SOCKETS, in_unstable=False),
    WasiFunction("sock_recv", "iiiiii", calls_sock.sock_recv, _NO_SOCKETS),
    WasiFunction("sock_send", "iiiii", calls_sock.sock_send, _NO_SOCKETS),
    WasiFunction("sock_shutdown", "ii", calls_sock.sock_shutdown, _NO_SOCKETS),
)


def _host_functions() -> tuple[HostFunction, ...]:
    found = []
    for row in FUNCTIONS:
        found.append(HostFunction(MODULE, row.name, row.parameters, row.results, row.handler))
        if row.in_unstable:
            handler = row.unstable or row.handler
            found.append(
                HostFunction(UNSTABLE_MODULE, row.name, row.parameters, row.results, handler)
            )
    return tuple(found)


HOST_FUNCTIONS: Final = _host_functions()
"""The functions that guests can import."""
