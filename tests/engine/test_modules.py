"""Which modules are accepted as programs, and the messages of refusals."""

from __future__ import annotations

import gc
import weakref

import pytest

from tests.engine.guests import FORK, SYSCALL, program
from tests.engine.hosts import Host, key_of, load
from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine


def test_imports_are_listed(engine: WasmtimeEngine) -> None:
    assert load(engine, program("")).imports == (("linux", "syscall"),)


def test_an_unloaded_module_is_freed_after_its_last_user_and_stays_compiled(
    engine: WasmtimeEngine,
) -> None:
    wasm = wat_to_wasm(program("", more="(global i32 (i32.const 17))"))
    module = engine.load(key_of(wasm), lambda: wasm)
    alive = weakref.ref(module)
    engine.unload(module.key)
    assert engine.load(module.key, lambda: wasm) is module
    engine.unload(module.key)
    engine.unload("0" * 64)
    del module
    gc.collect()
    assert alive() is None
    assert engine.is_compiled(key_of(wasm))


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"(module)", b"\0asm\1\0\0\0\xff"])
def test_other_bytes_are_rejected(engine: WasmtimeEngine, content: bytes) -> None:
    with pytest.raises(ModuleRejected):
        engine.load(key_of(content), lambda: content)


def test_an_unknown_import_is_named(engine: WasmtimeEngine) -> None:
    unknown = '(import "env" "gethostname" (func))'
    with pytest.raises(ModuleRejected, match=r"unknown import: env\.gethostname$"):
        load(engine, program("", imports=SYSCALL + unknown))


def test_a_long_list_of_unknown_imports_is_cut(engine: WasmtimeEngine) -> None:
    unknown = " ".join(f'(import "env" "f{number}" (func))' for number in range(100))
    with pytest.raises(ModuleRejected, match=r"env\.f7 and 92 more$"):
        load(engine, program("", imports=SYSCALL + unknown))


def test_a_library_is_rejected_as_one(engine: WasmtimeEngine) -> None:
    library = '(module (memory (export "memory") 1) (func (export "_initialize")))'
    with pytest.raises(ModuleRejected, match=r"it is a library"):
        load(engine, library)


@pytest.mark.parametrize(
    "wrong",
    [
        '(import "linux" "syscall" (func (param i32) (result i32)))',
        '(import "linux" "syscall" (global i32))',
        '(import "linux" "syscall" (memory 1))',
        '(import "linux" "syscall" (func (param v128 exnref)))',
    ],
)
def test_an_import_of_the_wrong_type_is_rejected(engine: WasmtimeEngine, wrong: str) -> None:
    wat = f'(module {wrong} (func (export "_start")))'
    if "memory" not in wrong:
        wat = wat.replace("(func (export", '(memory (export "memory") 1) (func (export')
    with pytest.raises(ModuleRejected):
        load(engine, wat).instantiate(1 << 20)


@pytest.mark.parametrize(
    ("wat", "culprit"),
    [
        ('(module (func (export "_start")))', "memory"),
        ('(module (memory (export "memory") 1))', "_start"),
        ('(module (memory (export "memory") 1) (func (export "_start") (param i32)))', "_start"),
        (
            '(module (memory (export "memory") 1) (global (export "_start") i32 (i32.const 0)))',
            "_start",
        ),
        (program("", imports=SYSCALL + FORK), "asyncify"),
        (
            '(module (memory (export "memory") 1) (func (export "_start")) '
            '(data (i32.const 65536) "x"))',
            "instantiated",
        ),
        (
            '(module (memory (export "memory") 1) (func (export "_start")) '
            "(table 2000000 funcref))",
            "instantiated",
        ),
    ],
)
def test_a_module_against_the_guest_abi_is_rejected(
    engine: WasmtimeEngine, wat: str, culprit: str
) -> None:
    with pytest.raises(ModuleRejected, match=culprit):
        load(engine, wat).instantiate(1 << 20)


@pytest.mark.parametrize(
    "wat",
    [
        "(module (memory 1 1 shared))",
        "(module (memory i64 1))",
        "(module (memory 1) (memory 1))",
        "(module (type (struct (field i32))))",
        "(module (func $run) (start $run))",
    ],
    ids=["shared memory", "memory64", "two memories", "gc", "start section"],
)
def test_unsupported_features_are_rejected(engine: WasmtimeEngine, wat: str) -> None:
    with pytest.raises(ModuleRejected):
        load(engine, wat)


def test_exports_of_exotic_types_do_no_harm(engine: WasmtimeEngine, host: Host) -> None:
    exotic = """
      (func (export "vector") (param v128 exnref externref (ref null $none)))
      (global (export "g1") v128 (v128.const i64x2 0 0))
      (global (export "g2") exnref (ref.null exn))
      (global (export "g3") (mut (ref null $none)) (ref.null $none))
      (table (export "t") 1 exnref)
      (tag (export "tag") (param i32))"""
    assert host.run_wat(program("", more=exotic)) is None


def test_a_module_is_loaded_once_per_process(engine: WasmtimeEngine) -> None:
    assert load(engine, program("nop")) is load(engine, program("nop"))


def test_bytes_that_differ_from_the_key_are_a_bug_of_the_host(engine: WasmtimeEngine) -> None:
    wasm = wat_to_wasm(program("nop nop"))
    with pytest.raises(ValueError, match="hash"):
        engine.load(key_of(b"else"), lambda: wasm)


@pytest.mark.parametrize("key", ["", "../../etc/passwd", "A" * 64, "0" * 63])
def test_a_malformed_key_is_refused(engine: WasmtimeEngine, key: str) -> None:
    with pytest.raises(ValueError, match="content key"):
        engine.load(key, lambda: b"")
