"""The hostile WASI guest, in WebAssembly text: it makes the calls that a file lists.

Each record of the file is ten 64-bit words: the place of a function in the table, and its
arguments. Before each call the guest restores its data, like the guest of the Linux ABI.
"""

from __future__ import annotations

from collections.abc import Sequence

from tests.abi.fuzz.guest import DATA, DATA_SIZE, MEMORY, OPS, OPS_SIZE, PRISTINE
from wasmsand.abi.wasi.table import FUNCTIONS, MODULE, WasiFunction

OPS_NAME = b"ops"
"""In the root."""
RECORD_WORDS = 10
_CONTROL = 0xB000
_VECTOR, _RESULT, _PATH = _CONTROL, _CONTROL + 16, _CONTROL + 32
_ROOT = 4
_TYPES = {"i": "i32", "I": "i64"}

Record = tuple[int, ...]


def encode(records: Sequence[Record]) -> bytes:
    """The file that the guest reads."""
    padded = (record + (0,) * (RECORD_WORDS - len(record)) for record in records)
    return b"".join(word.to_bytes(8, "little") for record in padded for word in record)


def _import(row: WasiFunction) -> str:
    types = " ".join(_TYPES[letter] for letter in row.parameters)
    result = "(result i32)" if row.results else ""
    return f'(import "{MODULE}" "{row.name}" (func ${row.name} (param {types}) {result}))'


def _call(row: WasiFunction) -> str:
    """A call with the arguments of the current record."""
    arguments = " ".join(
        f"({_TYPES[letter]}.load offset={8 + 8 * place} (local.get $op))"
        for place, letter in enumerate(row.parameters)
    )
    call = f"(call ${row.name} {arguments})"
    return f"(drop {call})" if row.results else call


def _bytes(content: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in content)


def wasi_fuzz_guest(data: bytes) -> str:
    """The module; `data` is what its pointers point to."""
    assert len(data) <= DATA_SIZE
    vector = OPS.to_bytes(4, "little") + OPS_SIZE.to_bytes(4, "little")
    choices = "".join(
        f"(if (i32.eq (i32.load (local.get $op)) (i32.const {number})) (then {_call(row)}))"
        for number, row in enumerate(FUNCTIONS)
    )
    return f"""(module
      {"".join(_import(row) for row in FUNCTIONS)}
      (memory (export "memory") {MEMORY >> 16} {MEMORY >> 16})
      (data (i32.const {PRISTINE}) "{_bytes(data)}")
      (data (i32.const {_VECTOR}) "{_bytes(vector)}")
      (data (i32.const {_PATH}) "{_bytes(OPS_NAME)}")
      (func (export "_start") (local $op i32) (local $end i32)
        (drop (call $path_open (i32.const {_ROOT}) (i32.const 0) (i32.const {_PATH})
          (i32.const {len(OPS_NAME)}) (i32.const 0) (i64.const 2) (i64.const 0) (i32.const 0)
          (i32.const {_RESULT})))
        (drop (call $fd_read (i32.load (i32.const {_RESULT})) (i32.const {_VECTOR}) (i32.const 1)
          (i32.const {_RESULT + 4})))
        (drop (call $fd_close (i32.load (i32.const {_RESULT}))))
        (local.set $op (i32.const {OPS}))
        (local.set $end (i32.add (local.get $op) (i32.load (i32.const {_RESULT + 4}))))
        (block $done
          (loop $again
            (br_if $done (i32.ge_u (local.get $op) (local.get $end)))
            (memory.copy (i32.const {DATA}) (i32.const {PRISTINE}) (i32.const {DATA_SIZE}))
            {choices}
            (local.set $op (i32.add (local.get $op) (i32.const {8 * RECORD_WORDS})))
            (br $again)))))"""
