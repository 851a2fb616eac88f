"""Where guests enter Python: the imports they can call, and the epoch callback.

Owns the C callbacks, the table of imports, and the record of which guest runs on which
thread. Rules: a callback does as little as possible, because it is the price of every
system call; no exception passes through C: it is kept on the guest and a trap is returned,
so that the guest unwinds and `Instance.run` raises the very same object.

Measured, of 0.8 us for a system call: 0.3 us entering Python, 0.25 us reading seven
arguments as struct fields (unpacking them all costs 0.6 us), 0.1 us finding the guest by
its thread.
"""

from __future__ import annotations

import os
from _thread import get_ident
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from wasmsand.engine.wasmtime.bindings import NULL, CData, check, ffi, lib

_I32 = 0
_UNWIND = b"host call left the guest"

SyscallHandler = Callable[[int, int, int, int, int, int, int], int]


class RunningGuest(Protocol):
    """What the callbacks need of the instance that runs on this thread."""

    def fail(self, error: BaseException) -> None:
        """Keep the exception for `run` to raise; the first one wins."""

    def fork_called(self, buffer: int) -> int:
        """The guest called `linux.fork`."""

    def tick(self) -> None:
        """The epoch advanced while the guest computed."""


_guests: dict[int, RunningGuest] = {}
_syscalls: dict[int, SyscallHandler] = {}

Occupant = tuple[RunningGuest | None, SyscallHandler | None]


def enter(thread: int, guest: RunningGuest, syscall: SyscallHandler) -> Occupant:
    """From now on callbacks on this thread belong to `guest`; returns whose they were."""
    before = (_guests.get(thread), _syscalls.get(thread))
    _syscalls[thread] = syscall
    _guests[thread] = guest
    return before


def leave(thread: int, before: Occupant) -> None:
    """Undo `enter`."""
    guest, syscall = before
    if guest is None or syscall is None:
        del _guests[thread], _syscalls[thread]
    else:
        _guests[thread], _syscalls[thread] = guest, syscall


def running_guests() -> list[RunningGuest]:
    """The guests inside `run` or `call` now, waiting in a host call or computing."""
    return list(_guests.values())


def any_running() -> bool:
    """Whether any guest is inside `run` or `call`."""
    return bool(_guests)


def _forget_guests() -> None:
    _guests.clear()
    _syscalls.clear()


if hasattr(os, "register_at_fork"):  # the threads they ran on stayed behind
    os.register_at_fork(after_in_child=_forget_guests)


def _keep_and_trap(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> int:
    _guests[get_ident()].fail(error)
    return int(ffi.cast("uintptr_t", lib.wasmtime_trap_new(_UNWIND, len(_UNWIND))))


def _keep_and_fail(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> int:
    _guests[get_ident()].fail(error)
    return int(ffi.cast("uintptr_t", lib.wasmtime_error_new(_UNWIND)))


def _syscall(environment: int, caller: int, values: CData) -> int:
    values.result = _syscalls[get_ident()](
        values.nr, values.a, values.b, values.c, values.d, values.e, values.f
    )
    return 0


def _fork(environment: int, caller: int, values: CData) -> int:
    values.result = _guests[get_ident()].fork_called(values.buffer)
    return 0


def _epoch(context: int, data: int, ticks_from_now: CData) -> int:
    _guests[get_ident()].tick()
    ticks_from_now[0] = 1
    return 0


# These live as long as the process: C holds pointers to them.
_SYSCALL_CALLBACK = ffi.callback("syscall_callback_t", _syscall, onerror=_keep_and_trap)
_FORK_CALLBACK = ffi.callback("fork_callback_t", _fork, onerror=_keep_and_trap)
EPOCH_CALLBACK = ffi.callback("epoch_callback_t", _epoch, onerror=_keep_and_fail)


@dataclass(frozen=True, slots=True)
class HostImport:
    """One function that guests can import: its C callback and how many i32 it takes and gives."""

    callback: CData
    parameters: int
    results: int


IMPORTS: dict[tuple[str, str], HostImport] = {
    ("linux", "syscall"): HostImport(_SYSCALL_CALLBACK, parameters=7, results=1),
    ("linux", "fork"): HostImport(_FORK_CALLBACK, parameters=1, results=1),
}
FORK_IMPORT = ("linux", "fork")


def _i32_vector(count: int) -> CData:
    vector = ffi.new("wasm_valtype_vec_t *")
    types = ffi.new("wasm_valtype_t *[]", [lib.wasm_valtype_new(_I32) for _ in range(count)])
    lib.wasm_valtype_vec_new(vector, count, types)
    return vector


def new_linker(engine: CData) -> CData:
    """A `wasmtime_linker_t *` with all of `IMPORTS`, that frees itself."""
    linker = ffi.gc(lib.wasmtime_linker_new(engine), lib.wasmtime_linker_delete)
    for (module, name), host in IMPORTS.items():
        signature = lib.wasm_functype_new(_i32_vector(host.parameters), _i32_vector(host.results))
        try:
            check(
                lib.wasmtime_linker_define_func_unchecked(
                    linker,
                    module.encode(),
                    len(module),
                    name.encode(),
                    len(name),
                    signature,
                    ffi.cast("void *", host.callback),
                    NULL,
                    NULL,
                )
            )
        finally:
            lib.wasm_functype_delete(signature)
    return linker
