"""The process that compiles modules which guests made.

Owns `main`, which `worker_process` starts: a process that waits for orders and forks a child for
each. So a compilation can be ended at any time, the system enforces its limits, and it leaves
nothing behind for the next. Rules: the parent never touches a module. The child cannot open files,
start processes or write anywhere except to its pipes. As little as possible is imported, because
someone waits for the start (for the same reason the engine's settings are passed as plain data).
Everything ends when the host process does.

For each order, the host writes `ORDER` and the module to standard input. The worker answers with a
frame on standard output (`FRAME`: kind and size, then content), and with `REPORT` on standard error
when the child has ended. At its start the worker writes one frame: an empty module as it compiles
it, by which the host checks that both compile for the same target.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import sys

from wasmsand.engine.wasmtime._c_types import ffi
from wasmsand.engine.wasmtime.module_shape import HEADER, Refused, Unreadable, check_shape

if sys.platform != "win32":
    import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

ORDER = struct.Struct("<QQQQ")
"""Size of the module; seconds of processor time; bytes of memory; wall-clock seconds."""
FRAME = struct.Struct("<cQ")
COMPILED, REJECTED = b"C", b"R"
REPORT = struct.Struct("<iQQ")
"""The exit code, as in `Popen.returncode`; processor time in microseconds; peak memory."""
REASON_BYTES_MAX = 500
_IDLE_MS = 120_000
"""How long the worker waits for an order; the host usually ends it earlier."""
_WATCH_MS = 500
_NICE = 5
_PIECE = 1 << 20
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38


class Compiler:
    """An engine with the host's settings."""

    def __init__(self, library: str, configuration: list[tuple[str, int]]) -> None:
        self.lib: Any = ffi.dlopen(library)
        config = self.lib.wasm_config_new()
        for function, value in configuration:
            getattr(self.lib, function)(config, value)
        self._engine = self.lib.wasm_engine_new_with_config(config)

    def compile(self, wasm: Any) -> Any:
        """The compiled module as a buffer. Raises `Refused`."""
        module = ffi.new("wasmtime_module_t **")
        content = ffi.from_buffer(wasm)
        self._check(self.lib.wasmtime_module_new(self._engine, content, len(wasm), module))
        compiled = ffi.new("wasm_byte_vec_t *")
        self._check(self.lib.wasmtime_module_serialize(module[0], compiled))
        self.lib.wasmtime_module_delete(module[0])
        return ffi.buffer(compiled.data, compiled.size)

    def validate(self, wasm: Any) -> None:
        """Raise `Refused` if the module is not valid."""
        content = ffi.from_buffer(wasm)
        self._check(self.lib.wasmtime_module_validate(self._engine, content, len(wasm)))

    def _check(self, error: Any) -> None:
        if error:
            message = ffi.new("wasm_byte_vec_t *")
            self.lib.wasmtime_error_message(error, message)
            text = bytes(ffi.buffer(message.data, message.size)).decode("utf-8", "replace")
            raise Refused(f"not a module this engine can run: {text}")


def compile_checked(compiler: Compiler, wasm: Any, shape: dict[str, int]) -> tuple[bytes, Any]:
    """The kind and the content of the frame that answers an order."""
    try:
        try:
            check_shape(wasm, shape)
        except Unreadable as reason:
            compiler.validate(wasm)
            raise Refused(f"unsupported module: {reason}") from None
        return COMPILED, compiler.compile(wasm)
    except Refused as refusal:
        return REJECTED, str(refusal).encode("utf-8", "replace")[:REASON_BYTES_MAX]


def main(arguments: list[str]) -> None:
    """Serve orders until standard input ends. Arguments: the library, then `NAME=VALUE` for the
    engine's configuration, in order, and for the limits on a module's shape."""
    sys.stderr = None  # standard error carries reports
    library, *values = arguments
    settings: list[tuple[str, int]] = []
    shape: dict[str, int] = {}
    for text in values:
        name, _, value = text.partition("=")
        if name.startswith("wasmtime_"):
            settings.append((name, int(value)))
        else:
            shape[name] = int(value)
    if hasattr(os, "nice"):
        os.nice(_NICE)
    compiler = Compiler(library, settings)
    if sys.platform == "linux":
        compiler.lib.prctl(_PR_SET_NO_NEW_PRIVS, *_unsigned_longs(1, 0, 0, 0))
        _prefer_as_victim()
    _answer(COMPILED, compiler.compile(HEADER))
    if hasattr(os, "fork"):
        _Server(compiler, shape).serve()
    else:
        _serve_once(compiler, shape)


def _prefer_as_victim() -> None:
    """When the system runs out of memory, it should end this process first."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:
        pass


class _Server:
    """Forks a child for each order and waits for it."""

    def __init__(self, compiler: Compiler, shape: dict[str, int]) -> None:
        self._compiler = compiler
        self._shape = shape
        self._child = 0
        self._parent = os.getppid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the host's terminal
        signal.signal(signal.SIGTERM, self._cancelled)

    def serve(self) -> None:
        while self._wait_for_order():
            order = _read(ORDER.size)
            if order is None or not self._work(*ORDER.unpack(order)):
                return

    def _wait_for_order(self) -> bool:
        waiting = select.poll()
        waiting.register(0, select.POLLIN)
        return bool(waiting.poll(_IDLE_MS))

    def _cancelled(self, *_: object) -> None:
        if not self._child:
            os._exit(0)
        os.kill(self._child, signal.SIGKILL)

    def _work(self, size: int, cpu: int, memory: int, seconds: int) -> bool:
        """Process one order. True if it succeeded, so that another order can follow."""
        errors, errors_of_child = os.pipe()
        # A signal between the fork and the assignment would miss the child.
        masked = {signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, masked)
        child = os.fork()
        if not child:
            self._compile(errors_of_child, size, cpu, memory, seconds)
        self._child = child
        signal.pthread_sigmask(signal.SIG_UNBLOCK, masked)
        os.close(errors_of_child)
        self._wait_for_end(errors)
        os.close(errors)
        _, status, usage = os.wait4(child, 0)
        self._child = 0
        code = os.waitstatus_to_exitcode(status)
        cpu_us = int((usage.ru_utime + usage.ru_stime) * 1_000_000)
        unit = 1 if sys.platform == "darwin" else 1024
        os.write(2, REPORT.pack(code, cpu_us, usage.ru_maxrss * unit))
        return code == 0

    def _wait_for_end(self, errors: int) -> None:
        """Wait until the child has ended, which closes its standard error."""
        waiting = select.poll()
        waiting.register(errors, select.POLLIN)
        waiting.register(2, 0)  # reports when the host closes its end
        while True:
            for descriptor, _ in waiting.poll(_WATCH_MS):
                if descriptor == 2:
                    os.kill(self._child, signal.SIGKILL)
                    waiting.unregister(2)
                elif not os.read(errors, 4096):
                    return
            if os.getppid() != self._parent:
                os.kill(self._child, signal.SIGKILL)

    def _compile(self, errors: int, size: int, cpu: int, memory: int, seconds: int) -> NoReturn:
        """Runs in the child."""
        code = 1
        try:
            os.dup2(errors, 2)
            os.closerange(3, 64)
            self._confine(cpu, memory, seconds)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            wasm = _read(size)
            if wasm is not None:
                _answer(*compile_checked(self._compiler, wasm, self._shape))
                code = 0
        finally:
            os._exit(code)

    def _confine(self, cpu: int, memory: int, seconds: int) -> None:
        if sys.platform == "linux":
            parent = os.getppid()
            longs = _unsigned_longs(signal.SIGKILL, 0, 0, 0)
            self._compiler.lib.prctl(_PR_SET_PDEATHSIG, *longs)
            if os.getppid() != parent:
                os._exit(1)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        for name, soft, hard in (
            ("CPU", cpu, cpu + 1),
            ("AS", memory, memory),
            ("DATA", memory, memory),
            ("CORE", 0, 0),
            ("FSIZE", 0, 0),
            ("NPROC", 0, 0),
            ("NOFILE", 0, 0),
        ):
            number = getattr(resource, f"RLIMIT_{name}", None)
            if number is not None:
                try:
                    resource.setrlimit(number, (soft, hard))
                except (ValueError, OSError):  # the system allows less, or lacks this limit
                    pass


def _serve_once(compiler: Compiler, shape: dict[str, int]) -> None:
    """For systems without fork: one order, in this process, which the host can end."""
    import time

    order = _read(ORDER.size)
    if order is not None:
        wasm = _read(ORDER.unpack(order)[0])
        if wasm is not None:
            _answer(*compile_checked(compiler, wasm, shape))
            os.write(2, REPORT.pack(0, int(time.process_time() * 1_000_000), 0))


def _unsigned_longs(*values: int) -> list[Any]:
    return [ffi.cast("unsigned long", value) for value in values]


def _read(size: int) -> bytearray | None:
    """Read `size` bytes from standard input; None if it ends earlier."""
    content = bytearray(size)
    view, at = memoryview(content), 0
    with open(0, "rb", buffering=0, closefd=False) as file:
        while at < size:
            count = file.readinto(view[at:])
            if not count:
                return None
            at += count
    return content


def _answer(kind: bytes, content: Any) -> None:
    os.write(1, FRAME.pack(kind, len(content)))
    view, at = memoryview(content), 0
    while at < len(view):
        at += os.write(1, view[at : at + _PIECE])
