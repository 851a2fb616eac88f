"""The hostile guest, in WebAssembly text: it makes the calls that a file lists.

Each record of the file is eight words: a number, six arguments, and a bit set of the
arguments to be replaced by the guest's own pid. Before each call the guest restores its
data (`PRISTINE` is copied over `DATA`), unblocks all signals and arms a timer whose
handler ends a call that would block for ever.
"""

from __future__ import annotations

from collections.abc import Sequence

OPS_PATH = b"/ops"
MEMORY = 0x40000
PRISTINE = 0x1000
DATA = 0x6000
DATA_SIZE = 0x5000
CONTROL = 0xB000
SIGNAL_FLAG = CONTROL
OPS = 0x10000
OPS_SIZE = 0x10000
HEAP = 0x20000
"""Free memory, for buffers that calls write."""

_MASK = CONTROL + 16
_ACTION = CONTROL + 32
_TIMER = CONTROL + 64
_TAKEN = CONTROL + 128
_PATH = CONTROL + 512
_TICK_MICROSECONDS = 3000
_SIGALRM, _SIG_SETMASK = 14, 2

Record = tuple[int, int, int, int, int, int, int, int]


def encode(records: Sequence[Record]) -> bytes:
    """The file that the guest reads."""
    return b"".join(word.to_bytes(4, "little") for record in records for word in record)


def _bytes(content: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in content)


def _call(*words: str) -> str:
    padded = [*words, *["(i32.const 0)"] * (7 - len(words))]
    return f"(call $syscall {' '.join(padded)})"


def _const(*values: int) -> list[str]:
    return [f"(i32.const {value})" for value in values]


def _argument(index: int) -> str:
    """Argument `index` of the current record, or the pid."""
    load = f"(i32.load offset={4 + 4 * index} (local.get $op))"
    chosen = f"(i32.and (i32.load offset=28 (local.get $op)) (i32.const {1 << index}))"
    return f"(select (local.get $pid) {load} {chosen})"


def fuzz_guest(data: bytes) -> str:
    """The module; `data` is what its pointers point to."""
    assert len(data) <= DATA_SIZE
    action = b"".join(v.to_bytes(4, "little") for v in (16, 0, 0, 0, 0))
    timer = b"".join(v.to_bytes(4, "little") for v in (0, _TICK_MICROSECONDS) * 2)
    arguments = " ".join(_argument(index) for index in range(6))
    return f"""(module
      (import "linux" "syscall"
        (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
      (memory (export "memory") {MEMORY >> 16} {MEMORY >> 16})
      (global (export "__stack_pointer") (mut i32) (i32.const 4096))
      (global (export "__signal_flag") i32 (i32.const {SIGNAL_FLAG}))
      (data (i32.const {PRISTINE}) "{_bytes(data)}")
      (data (i32.const {_ACTION}) "{_bytes(action)}")
      (data (i32.const {_TIMER}) "{_bytes(timer)}")
      (data (i32.const {_PATH}) "{_bytes(OPS_PATH)}\\00")
      (func $signals (export "__signal_run")
        (block $none
          (loop $next
            (br_if $none (i32.le_s {_call(*_const(1002, _TAKEN))} (i32.const 0)))
            (drop {_call(*_const(1003, _TAKEN + 16))})
            (br $next))))
      (func (export "_start") (local $op i32) (local $end i32) (local $fd i32) (local $pid i32)
        (local.set $fd {_call(*_const(56, -100, _PATH))})
        (local.set $end (i32.add (i32.const {OPS})
          {_call("(i32.const 63)", "(local.get $fd)", *_const(OPS, OPS_SIZE))}))
        (drop {_call("(i32.const 57)", "(local.get $fd)")})
        (local.set $pid {_call("(i32.const 172)")})
        (local.set $op (i32.const {OPS}))
        (block $done
          (loop $again
            (br_if $done (i32.ge_u (local.get $op) (local.get $end)))
            (memory.copy (i32.const {DATA}) (i32.const {PRISTINE}) (i32.const {DATA_SIZE}))
            (drop {_call(*_const(135, _SIG_SETMASK, _MASK, 0, 8))})
            (drop {_call(*_const(134, _SIGALRM, _ACTION, 0, 8))})
            (drop {_call(*_const(103, 0, _TIMER, 0))})
            (drop (call $syscall (i32.load (local.get $op)) {arguments}))
            (if (i32.load (i32.const {SIGNAL_FLAG})) (then (call $signals)))
            (local.set $op (i32.add (local.get $op) (i32.const 32)))
            (br $again)))))"""


ALIVE = """(module
  (import "linux" "syscall" (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global (export "__stack_pointer") (mut i32) (i32.const 65536))
  (data (i32.const 100) "alive")
  (func (export "_start")
    (drop (call $syscall (i32.const 64) (i32.const 1) (i32.const 100) (i32.const 5)
      (i32.const 0) (i32.const 0) (i32.const 0)))))"""
"""A program that writes one word, to check that the sandbox is usable."""
