"""Small programs for the machine's tests, in WebAssembly text, and machines to run them.

`program` makes a module from statements; the other functions make statements. Memory from `TEXT`
on holds the strings that statements use; memory from `ROOM` on is free.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.engine.guests import forking
from wasmsand.abi.linux.numbers import CallNumber
from wasmsand.engine.protocol import Engine
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.vfs import FrozenTree, ImageBuilder, standard_tree
from wasmsand.machine import Machine, MachineOptions

SIGNAL_FLAG = 16
TAKEN = 512
TEXT = 1024
ROOM = 8192
PAGES_PER_MIB = 16
SIGALRM, SIGUSR1, SIGTERM = 14, 10, 15

READ, WRITE, EXIT_GROUP, KILL = (
    CallNumber.READ,
    CallNumber.WRITE,
    CallNumber.EXIT_GROUP,
    CallNumber.KILL,
)
NANOSLEEP, SIGACTION, SETITIMER = (
    CallNumber.CLOCK_NANOSLEEP_TIME64,
    CallNumber.RT_SIGACTION,
    CallNumber.SETITIMER,
)
GETPID, CLONE, EXECVE, WAIT4 = (
    CallNumber.GETPID,
    CallNumber.CLONE,
    CallNumber.EXECVE,
    CallNumber.WAIT4,
)


def call(number: int, *words: int | str) -> str:
    """An expression: a system call. Strings are expressions."""
    padded: list[int | str] = [number, *words, *[0] * (6 - len(words))]
    texts = [word if isinstance(word, str) else f"(i32.const {word})" for word in padded]
    return f"(call $syscall {' '.join(texts)})"


def do(number: int, *words: int | str) -> str:
    """A statement: a system call whose result is not used."""
    return f"(drop {call(number, *words)})"


def words(address: int, *values: int) -> str:
    """A data segment of words."""
    content = "".join(f"\\{byte:02x}" for v in values for byte in v.to_bytes(4, "little"))
    return f'(data (i32.const {address}) "{content}")'


def text(address: int, content: str) -> str:
    return f'(data (i32.const {address}) "{content}\\00")'


def program(*statements: str, more: str = "", on_signal: str = "", pages: int = 1) -> str:
    """A module. `on_signal` runs for every signal that has a handler."""
    return f"""(module
      (import "linux" "syscall"
        (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
      (memory (export "memory") {pages})
      (global (export "__stack_pointer") (mut i32) (i32.const 512))
      (global (export "__signal_flag") i32 (i32.const {SIGNAL_FLAG}))
      {more}
      (func $signals (export "__signal_run")
        (block $none (loop $next
          (br_if $none (i32.le_s {call(CallNumber.SIGNAL_TAKE, TAKEN)} (i32.const 0)))
          {on_signal}
          {do(CallNumber.SIGNAL_RETURN, TAKEN + 16)}
          (br $next))))
      (func (export "_start") (local $n i32) {" ".join(statements)}))"""


FOR_EVER = "(loop $for_ever (br $for_ever))"
HANDLE_ALARM = do(SIGACTION, SIGALRM, 128, 0, 8)
"""Needs `ACTION`."""
ACTION = words(128, 77, 0, 0, 0, 0)
EVERY_MILLISECOND = words(160, 0, 1000, 0, 1000)
LONG_TIME = words(192, 1000, 0, 0, 0)


RUN_HANDLERS = f"(if (i32.load (i32.const {SIGNAL_FLAG})) (then (call $signals)))"
"""What the libc does after every call."""
SPAWN = f"(if (i32.eqz {call(CLONE, 0x4111)}) (then {do(EXECVE, 256, 0, 0)}))"
"""vfork and exec of the program whose path is at 256."""


def sleep_for_ever() -> str:
    """Needs `LONG_TIME`."""
    return do(NANOSLEEP, 1, 0, 192, 0)


def grow(mebibytes: int) -> str:
    """A statement: grow the memory, or fail to."""
    return f"(drop (memory.grow (i32.const {mebibytes * PAGES_PER_MIB})))"


def echo(*, after: str = "") -> str:
    """A program that copies its input to its output, then does `after`."""
    return program(
        f"""(block $end (loop $again
          (local.set $n {call(READ, 0, ROOM, 4096)})
          (br_if $end (i32.le_s (local.get $n) (i32.const 0)))
          {do(WRITE, 1, ROOM, "(local.get $n)")}
          (br $again)))""",
        after,
    )


def say(content: str, fd: int = 1) -> tuple[str, str]:
    """A statement that writes, and the data segment it needs."""
    return do(WRITE, fd, TEXT, len(content)), text(TEXT, content)


PROGRAMS: Mapping[str, str] = {
    "echo": echo(),
    "ok": program(say("ok")[0], more=say("ok")[1]),
    "complain": program(say("bad", 2)[0], do(EXIT_GROUP, 3), more=say("bad", 2)[1]),
    "spin": program(FOR_EVER),
    "sleep": program(sleep_for_ever(), more=LONG_TIME),
    "chatter": program(
        f"(loop $again {do(WRITE, 1, TEXT, 1000)} (br $again))",
        more=text(TEXT, "x" * 1000),
    ),
    "memory": program("(drop (i32.load (i32.const 0x7FFFFFFF)))"),
    "divide": program("(drop (i32.div_u (i32.const 1) (i32.load (i32.const 4096))))"),
    "unreachable": program("(unreachable)"),
    "recurse": program("(call $deeper)", more="(func $deeper (call $deeper))"),
    "abort": program(do(KILL, call(GETPID), 6)),
    # Counts ten alarms while it computes; the signal handler ends it.
    "ticks": program(
        HANDLE_ALARM, do(SETITIMER, 0, 160, 0), FOR_EVER,
        more=ACTION + EVERY_MILLISECOND + "(global $left (mut i32) (i32.const 10))",
        on_signal=f"""(global.set $left (i32.sub (global.get $left) (i32.const 1)))
          (if (i32.eqz (global.get $left)) (then {do(EXIT_GROUP, 42)}))""",
    ),
    # The same while it waits.
    "alarm": program(
        HANDLE_ALARM, do(SETITIMER, 0, 160, 0), sleep_for_ever(), RUN_HANDLERS,
        more=ACTION + EVERY_MILLISECOND + LONG_TIME,
        on_signal=do(EXIT_GROUP, 43),
    ),
    # Leaves a sleeping child behind, which keeps the output open.
    "background": program(
        SPAWN, say("started")[0],
        more=text(256, "/usr/bin/sleep") + say("started")[1],
    ),
    # Starts `ok` and waits for it.
    "parent": program(
        SPAWN, do(WAIT4, -1, ROOM, 0, 0),
        do(EXIT_GROUP, f"(i32.load8_u (i32.const {ROOM + 1}))"),
        more=text(256, "/usr/bin/complain"),
    ),
    "become": program(do(EXECVE, 256, 0, 0), more=text(256, "/usr/bin/ok")),
    "grow": program(
        f"""(loop $again (drop (memory.grow (i32.const 16)))
          {do(CallNumber.SCHED_YIELD)} (br $again))"""
    ),
    "fork": forking(depth=3, forks=3),
}  # fmt: skip


def image(**files: bytes) -> FrozenTree:
    """An image with `PROGRAMS` in /usr/bin and executable `files` beside them."""
    builder = ImageBuilder()
    standard_tree(builder)
    for name, source in PROGRAMS.items():
        builder.add_file(b"/usr/bin/" + name.encode(), wat_to_wasm(source), 0o755)
    for name, content in files.items():
        builder.add_file(b"/usr/bin/" + name.encode(), content, 0o755)
    return builder.build()


def new_machine(engine: Engine, limits: Limits | None = None, **files: bytes) -> Machine:
    """A machine with these programs."""
    options = MachineOptions(limits=limits or Limits())
    return Machine(options, image=image(**files), engine=engine)
