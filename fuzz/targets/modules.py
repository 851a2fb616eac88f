"""A guest's own modules: mutated WebAssembly is refused, or runs and harms nobody.

Rules: a module that cannot be loaded causes a `KernelError`; one that runs ends by itself or at its
time limit; afterwards the machine has given everything back and still runs programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from fuzz.machines import check_alive, new_machine
from fuzz.mutation import mutated
from fuzz.oracles import check_given_back
from fuzz.target import MIB, Target
from tests.abi.fuzz.guest import ALIVE
from tests.engine.guests import forking
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.kernel.errno import KernelError
from wasmsand.machine import CommandRequest

_SECONDS: Final = 0.3
_LINUX: Final = (
    '(import "linux" "syscall" (func $s (param i32 i32 i32 i32 i32 i32 i32) (result i32)))'
)
_STACK: Final = '(global (export "__stack_pointer") (mut i32) (i32.const 4096))'
_TEXTS: Final = (
    ALIVE,
    '(module (memory (export "memory") 1) (func (export "_start")))',
    f'(module {_LINUX} (memory (export "memory") 1 100) {_STACK} (func (export "_start") '
    "(drop (memory.grow (i32.const 50)))))",
    f'(module {_LINUX} (memory (export "memory") 1) {_STACK} (table 1000 10000 funcref) '
    '(elem (i32.const 0) $f) (func $f) (func (export "_start") '
    "(drop (table.grow (ref.null func) (i32.const 100))) (call_indirect (i32.const 0))))",
    f'(module {_LINUX} (memory (export "memory") 1) {_STACK} '
    '(func $f (export "_start") (call $f)))',
    f'(module {_LINUX} (memory (export "memory") 1) {_STACK} '
    '(global (export "__signal_flag") i32 (i32.const 16)) (func (export "__signal_run")) '
    '(func (export "_start") (loop $l (br $l))))',
    f'(module {_LINUX} (memory (export "memory") 1) {_STACK} (tag $t (param i32)) '
    '(func (export "_start") (throw $t (i32.const 1))))',
    f'(module {_LINUX} (memory (export "memory") 1 1 shared) {_STACK} (func (export "_start")))',
    f'(module {_LINUX} (memory (export "memory") 1) {_STACK} (data "passive") '
    '(func (export "_start") (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 7)) '
    "(data.drop 0) (unreachable)))",
    '(module (import "wasi_snapshot_preview1" "fd_write" (func $w (param i32 i32 i32 i32) '
    '(result i32))) (memory (export "memory") 1) (func (export "_start") '
    "(drop (call $w (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 20)))))",
    f'(module {_LINUX} (memory (export "memory") 1) {_STACK} '
    '(func $x (export "_start")) (start $x))',
)
_WORDS: Final = (
    b"\0asm\1\0\0\0", b"memory", b"_start", b"__stack_pointer", b"__signal_flag", b"__signal_run",
    b"__thread_start", b"__thread_locals", b"asyncify_start_unwind", b"linux", b"syscall", b"fork",
    b"wasi_snapshot_preview1", b"\x7f", b"\x7e", b"\x70", b"\x6f", b"\x41", b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x08", b"\x10\x00", b"\x03\x40\x0c\x00\x0b", b"\x40\x00", b"\xfc\x0f\x00",
)  # fmt: skip


class Modules(Target):
    """See above."""

    name = "modules"
    about = "WebAssembly modules that a guest made"
    words = _WORDS
    longest = 8192
    memory_bytes = 400 * MIB

    def seeds(self) -> Iterable[bytes]:
        for text in (*_TEXTS, forking()):
            try:
                module = wat_to_wasm(text)
            except Exception:
                continue  # needs a feature that this engine lacks
            if len(module) <= self.longest:
                yield module

    def mutate(self, random: Random, data: bytes, other: bytes) -> bytes:
        if random.randrange(4) == 0:
            return _with_section(random, data, other)
        return mutated(random, data, other, _WORDS, most=self.longest)

    def run(self, data: bytes) -> None:
        machine = new_machine()
        base = machine.kernel.ledger.used
        try:
            machine.files.write("/tmp/module", data, mode=0o755)
            try:
                machine.run(CommandRequest(("/tmp/module",), {}, "/tmp", timeout_seconds=_SECONDS))
            except KernelError:
                pass
            check_given_back(machine, base)
            check_alive(machine)
        finally:
            machine.close()


def _sections(module: bytes) -> list[bytes]:
    """The sections of a module, up to the first invalid size."""
    found, place = [], 8
    while place < len(module):
        start, place, size, shift = place, place + 1, 0, 0
        while place < len(module):
            byte = module[place]
            size |= (byte & 0x7F) << shift
            place, shift = place + 1, shift + 7
            if byte < 0x80 or shift > 28:
                break
        place += size
        found.append(module[start:place])
    return found


def _with_section(random: Random, data: bytes, other: bytes) -> bytes:
    """One section replaced by that of another module, with its size corrected."""
    mine, theirs = _sections(data), _sections(other)
    if not mine or not theirs:
        return data
    theirs_one = random.choice(theirs)
    places = [place for place, section in enumerate(mine) if section[:1] == theirs_one[:1]]
    place = random.choice(places) if places else random.randrange(len(mine))
    if random.randrange(2):
        mine[place] = theirs_one
    else:
        body = bytearray(mine[place][2:])
        for _ in range(1 + random.randrange(3)):
            if body:
                body[random.randrange(len(body))] = random.choice(random.choice(_WORDS))
        mine[place] = mine[place][:1] + _leb(len(body)) + bytes(body)
    return (data[:8] + b"".join(mine))[:8192]


def _leb(value: int) -> bytes:
    encoded = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        encoded.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(encoded)
