"""Guests for the engine's tests, in WebAssembly text.

`program` wraps a body of `_start` in what every guest needs. `FORKING` is written by hand as
Asyncify would transform a program: each function on the way to `linux.fork` saves its frame to a
buffer and restores it from there.
"""

from __future__ import annotations

SYSCALL = (
    '(import "linux" "syscall" (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))'
)
SIGNATURES = "(type $none (func)) (type $takes_i32 (func (param i32)))"


def call_host(nr: str, a: str = "(i32.const 0)", b: str = "(i32.const 0)") -> str:
    """An expression: `linux.syscall(nr, a, b, 0, 0, 0, 0)`."""
    zeros = " (i32.const 0)" * 4
    return f"(call $syscall {nr} {a} {b}{zeros})"


def program(start: str, *, more: str = "", pages: int = 2, imports: str = SYSCALL) -> str:
    """A module whose `_start` has the body `start`."""
    return f"""(module {SIGNATURES} {imports}
      (memory (export "memory") {pages})
      (global $sp (export "__stack_pointer") (mut i32) (i32.const 65536))
      {more}
      (func $start (export "_start") {start}))"""


BUFFER = 70_000
"""Where `FORKING` keeps its Asyncify header."""
FRAMES = BUFFER + 8
COUNTER = 69_000
"""An i32 in memory that the program counts in."""

_ASYNCIFY = """
  (global $state (mut i32) (i32.const 0))
  (global $data (mut i32) (i32.const 0))
  (func $check
    (if (i32.gt_u (i32.load (global.get $data)) (i32.load offset=4 (global.get $data)))
      (then unreachable)))
  (func (export "asyncify_start_unwind") (param i32)
    (global.set $state (i32.const 1)) (global.set $data (local.get 0)) (call $check))
  (func (export "asyncify_stop_unwind") (global.set $state (i32.const 0)) (call $check))
  (func (export "asyncify_start_rewind") (param i32)
    (global.set $state (i32.const 2)) (global.set $data (local.get 0)) (call $check))
  (func (export "asyncify_stop_rewind") (global.set $state (i32.const 0)) (call $check))
  (func $push (param i32)
    (i32.store (i32.load (global.get $data)) (local.get 0))
    (i32.store (global.get $data) (i32.add (i32.load (global.get $data)) (i32.const 4))))
  (func $pop (result i32)
    (i32.store (global.get $data) (i32.sub (i32.load (global.get $data)) (i32.const 4)))
    (i32.load (i32.load (global.get $data))))
"""
FORK = '(import "linux" "fork" (func $fork (param i32) (result i32)))'


def forking(
    depth: int = 3,
    forks: int = 1,
    *,
    pages: int = 2,
    buffer_bytes: int = 4096,
    more: str = "",
    before: str = "",
) -> str:
    """A program that forks `forks` times, `depth` calls deep, and reports each result.

    After each fork it makes the host call 1 with (result, number of the fork). Each of the
    `depth` functions checks that its local variables survived. Parent and children all go on
    to the next fork, so there are 2 ** forks ends, each announced by the host call 2.
    `more` are further definitions; `before` runs before the first fork.
    """
    count = f"(i32.load (i32.const {COUNTER}))"
    report = call_host("(i32.const 1)", "(local.get $result)", count)
    return f"""(module {SIGNATURES} {SYSCALL} {FORK}
      (memory (export "memory") {pages})
      (global $sp (export "__stack_pointer") (mut i32) (i32.const 65536))
      {_ASYNCIFY} {more}
      (func $deep (param $n i32) (result i32)
        (local $kept i32) (local $result i32)
        (if (i32.eq (global.get $state) (i32.const 2))
          (then (local.set $n (call $pop)) (local.set $kept (call $pop)))
          (else (local.set $kept (i32.mul (local.get $n) (i32.const 7)))))
        (if (i32.eqz (local.get $n))
          (then (local.set $result (call $fork (i32.const {BUFFER}))))
          (else (local.set $result (call $deep (i32.sub (local.get $n) (i32.const 1))))))
        (if (i32.eq (global.get $state) (i32.const 1))
          (then (call $push (local.get $kept)) (call $push (local.get $n))
                (return (i32.const 0))))
        (if (i32.ne (local.get $kept) (i32.mul (local.get $n) (i32.const 7)))
          (then unreachable))
        (local.get $result))
      (func $start (export "_start")
        (local $result i32)
        (if (i32.eq (global.get $state) (i32.const 0))
          (then
            (i32.store (i32.const {BUFFER}) (i32.const {FRAMES}))
            (i32.store (i32.const {BUFFER + 4}) (i32.const {FRAMES + buffer_bytes}))
            {before}))
        (block $done
          (loop $again
            (if (i32.eqz (global.get $state))
              (then
                (br_if $done (i32.ge_u {count} (i32.const {forks})))
                (i32.store (i32.const {COUNTER}) (i32.add {count} (i32.const 1)))))
            (local.set $result (call $deep (i32.const {depth})))
            (if (i32.eq (global.get $state) (i32.const 1)) (then (return)))
            (drop {report})
            (br $again)))
        (drop {call_host("(i32.const 2)")})))"""
