"""The C callbacks through which guests call Python: imports and epochs.

Owns the C callbacks, and the record of which guest runs on which thread. Rules: a callback does as
little as possible, because every system call pays for it. No exception passes through C: it is
stored on the guest and a trap is returned, so that the guest unwinds and `Instance.run` raises the
same object.

In the compiled form of the kernel, a function in C takes the place of the callback of system calls
(`scripts/compiled_entry.c`).

Measured, of 0.6 us for a system call: 0.3 us entering Python, 0.1 us finding the guest by its
thread, 0.04 us per argument, read as a struct field on access (unpacking all seven would take
0.6 us). The system call has a callback of its own. All other functions share one, which identifies
them by the number that C passes, and reads the arguments according to their types.
"""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections.abc import Callable
from operator import attrgetter
from types import TracebackType
from typing import Any, Final, Protocol

from wasmsand.engine.compiled import COMPILED
from wasmsand.engine.forking import in_child, renewed_in_child
from wasmsand.engine.protocol import Arguments, HostCalls, HostFunction
from wasmsand.engine.wasmtime.bindings import CData, ffi, lib

_UNWIND = b"host call left the guest"
_VALUE_NAMES = "abcdefghi"
"""The names of the fields of `function_values_t`."""

_SyscallHandler = Callable[[int, Arguments], int]
_FunctionHandler = Callable[..., int]


class RunningGuest(Protocol):
    """What the callbacks need of the instance that runs on this thread."""

    def fail(self, error: BaseException) -> None:
        """Store the exception for `run` to raise; the first one counts."""

    def fork_called(self, buffer: int) -> int:
        """The guest called `linux.fork`."""

    def tick(self) -> None:
        """The epoch advanced while the guest computed."""


# Final, because the compiled form then finds them without a look-up.
_guests: Final[dict[int, RunningGuest]] = {}
_syscalls: Final[dict[int, _SyscallHandler]] = {}
_functions: Final[dict[int, _FunctionHandler]] = {}
_thread: Final = get_ident
_compiled: Final = COMPILED

Occupant = tuple[RunningGuest, _SyscallHandler, _FunctionHandler] | None


def enter(thread: int, guest: RunningGuest, calls: HostCalls) -> Occupant:
    """From now on, callbacks on `thread`, which is this one, belong to `guest`. Returns the
    previous owner."""
    before = None
    if thread in _guests:
        before = (_guests[thread], _syscalls[thread], _functions[thread])
    _syscalls[thread] = calls.syscall
    _functions[thread] = calls.invoke
    _guests[thread] = guest
    if _compiled is not None:
        _compiled.handle_calls(calls.syscall)
    return before


def leave(thread: int, before: Occupant) -> None:
    """Undo `enter`."""
    if before is None:
        del _guests[thread], _syscalls[thread], _functions[thread]
    else:
        _guests[thread], _syscalls[thread], _functions[thread] = before
    if _compiled is not None:
        _compiled.handle_calls(None if before is None else before[1])


def running_guests() -> list[RunningGuest]:
    """The guests that are inside `run` or `call`, waiting in a host call or computing."""
    return list(_guests.values())


def any_running() -> bool:
    """Whether any guest is inside `run` or `call`."""
    return bool(_guests)


def _forget_guests() -> None:
    _guests.clear()
    _syscalls.clear()
    _functions.clear()


in_child(_forget_guests)  # their threads do not exist in the child


def _keep_and_trap(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> int:
    _guests[_thread()].fail(error)
    return int(ffi.cast("uintptr_t", lib.wasmtime_trap_new(_UNWIND, len(_UNWIND))))


def _keep_and_fail(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> int:
    _guests[_thread()].fail(error)
    return int(ffi.cast("uintptr_t", lib.wasmtime_error_new(_UNWIND)))


def _syscall(environment: int, caller: int, values: CData) -> int:
    values.result = _syscalls[_thread()](values.nr, values)
    return 0


def _fork(environment: int, caller: int, values: CData) -> int:
    values.result = _guests[_thread()].fork_called(values.buffer)
    return 0


_Reader = Callable[[CData], tuple[Any, ...]]
_registered: Final[list[tuple[_Reader, Callable[..., Any]]]] = []
_numbers: dict[HostFunction, int] = {}
_registering = allocate_lock()
renewed_in_child(globals(), "_registering")


def number_of(function: HostFunction) -> int:
    """The environment value that makes `FUNCTION_CALLBACK` call this function. It is the same for
    all engines of the process and never changes: compiled code holds it."""
    with _registering:
        number = _numbers.get(function)
        if number is None:
            number = len(_registered)
            _registered.append((_reader(function.parameters), function.handler))
            _numbers[function] = number  # last, because a fork may happen at any moment
        return number


def _reader(parameters: str) -> _Reader:
    """A function that reads the arguments from a `function_values_t *`."""
    if len(parameters) > len(_VALUE_NAMES) or set(parameters) - set("iI"):
        raise ValueError(f"unsupported parameters of a host function: {parameters!r}")
    names = [
        name if kind == "i" else f"{name}64"
        for name, kind in zip(_VALUE_NAMES, parameters, strict=False)
    ]
    if not names:
        return lambda values: ()
    if len(names) == 1:
        read_one: Callable[[CData], Any] = attrgetter(names[0])
        return lambda values: (read_one(values),)
    return attrgetter(*names)  # reads all in one call


def _function(environment: int, caller: int, values: CData) -> int:
    read, handler = _registered[environment]
    values.result = _functions[_thread()](handler, *read(values))
    return 0


def _procedure(environment: int, caller: int, values: CData) -> int:
    read, handler = _registered[environment]
    _functions[_thread()](handler, *read(values))
    return 0


def _epoch(context: int, data: int, ticks_from_now: CData) -> int:
    _guests[_thread()].tick()
    ticks_from_now[0] = 1
    return 0


# These live as long as the process: C holds pointers to them.
SYSCALL_CALLBACK = (
    ffi.callback("syscall_callback_t", _syscall, onerror=_keep_and_trap)
    if _compiled is None
    else ffi.cast("syscall_callback_t", _compiled.open_entry(_keep_and_trap))
)
FORK_CALLBACK = ffi.callback("fork_callback_t", _fork, onerror=_keep_and_trap)
FUNCTION_CALLBACK = ffi.callback("function_callback_t", _function, onerror=_keep_and_trap)
PROCEDURE_CALLBACK = ffi.callback("function_callback_t", _procedure, onerror=_keep_and_trap)
"""Like FUNCTION_CALLBACK, for functions without a result."""
EPOCH_CALLBACK = ffi.callback("epoch_callback_t", _epoch, onerror=_keep_and_fail)
