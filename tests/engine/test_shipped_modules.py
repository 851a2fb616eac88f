"""Compiled modules of installed packages: used if they fit and are intact, else compiled here."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.guests import program
from tests.engine.hosts import MEMORY_LIMIT, Host, key_of
from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.shipped_modules import (
    INDEX_NAME,
    ShippedFile,
    ShippedIndex,
    index_text,
    read_index,
)
from wasmsand.engine.wasmtime import config
from wasmsand.engine.wasmtime.bindings import RELEASE, ffi, lib, wat_to_wasm
from wasmsand.engine.wasmtime.compiler import compile_module, serialise
from wasmsand.engine.wasmtime.config import EngineSettings, probe
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.engine.wasmtime.processors import BASELINES

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in BASELINES,
    reason="no modules are shipped for this platform",
)
WASM = wat_to_wasm(
    program("nop", more='(func (export "__thread_start") (param i32)) (data (i32.const 9) "x")')
)
KEY = key_of(WASM)
STACK = 60_000


def described(path: Path, content: bytes) -> ShippedFile:
    path.write_bytes(content)
    path.chmod(0o644)
    return ShippedFile(path, key_of(content), len(content))


def ship(directory: Path) -> ShippedIndex:
    """A package with one compiled module."""
    directory.mkdir(mode=0o755)
    processor = BASELINES[platform.machine()]
    engine = config.new_engine(EngineSettings(), processor=processor)
    index = ShippedIndex(
        directory=directory,
        engine="wasmtime",
        release=RELEASE,
        target=processor.target,
        processor=processor.name,
        probe=described(directory / "probe.cwasm", probe(engine)),
        modules={
            KEY: described(directory / "module.cwasm", serialise(compile_module(engine, WASM)))
        },
    )
    (directory / INDEX_NAME).write_text(index_text(index))
    return index


@pytest.fixture
def index(tmp_path: Path) -> ShippedIndex:
    return ship(tmp_path / "wasmsand_native")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "modules"


Opener = Callable[[ShippedIndex], WasmtimeEngine]


@pytest.fixture
def engine_with(cache: Path) -> Opener:
    """Engines that share one cache, as processes would."""
    return lambda index: WasmtimeEngine(cache_directory=cache, shipped=[index])


def run(engine: WasmtimeEngine) -> None:
    """Load the module and see that it runs."""
    module = engine.load(KEY, lambda: WASM)
    assert Host(engine).run(module.instantiate(MEMORY_LIMIT)) is None


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_a_shipped_module_runs_without_compilation(
    index: ShippedIndex,
    engine_with: Opener,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("WASMSAND_COMPILE", "never")
    engine = engine_with(index)
    assert engine.comes_compiled(KEY)
    run(engine)
    assert engine.compilations == 0
    assert not list(cache.glob("*.cwasm")), "the file of the package is mapped, not copied"
    assert not warnings(caplog)


def test_its_threads_need_no_compilation_either(index: ShippedIndex, engine_with: Opener) -> None:
    engine = engine_with(index)
    first = engine.load(KEY, lambda: WASM).instantiate(MEMORY_LIMIT)
    assert Host(engine).run(first.new_thread(STACK, 0)) is None
    first.close()
    assert engine.compilations == 0


def test_never_means_never(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WASMSAND_COMPILE", "never")
    engine = WasmtimeEngine(cache_directory=cache, shipped=[])
    with pytest.raises(ModuleRejected, match="wasmsand warm"):
        engine.load(KEY, lambda: WASM)
    monkeypatch.delenv("WASMSAND_COMPILE")
    run(engine)
    assert engine.compilations == 1


def test_a_file_is_checked_once_per_machine(index: ShippedIndex, engine_with: Opener) -> None:
    first = engine_with(index)
    assert not first.is_compiled(KEY), "nobody has checked it"
    assert first.find(KEY) is None, "`find` does not take the time to check it"
    run(first)
    later = engine_with(index)
    assert later.is_compiled(KEY)
    assert later.find(KEY) is not None


def test_a_file_that_was_written_since_is_checked_again(
    index: ShippedIndex, engine_with: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    run(engine_with(index))
    path = index.modules[KEY].path
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # a forger can do this
    engine = engine_with(index)
    assert not engine.is_compiled(KEY)
    run(engine)
    assert engine.compilations == 1
    (warning,) = warnings(caplog)
    assert "does not match its hash" in warning
    assert "reinstall" in warning


@pytest.mark.parametrize("content", [b"", b"not machine code", None])
def test_a_damaged_or_missing_file_is_not_used(
    index: ShippedIndex,
    engine_with: Opener,
    caplog: pytest.LogCaptureFixture,
    content: bytes | None,
) -> None:
    path = index.modules[KEY].path
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    engine = engine_with(index)
    run(engine)
    assert engine.compilations == 1
    (warning,) = warnings(caplog)
    assert str(path) in warning


def test_modules_of_another_release_are_not_used(
    index: ShippedIndex, engine_with: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engine_with(dataclasses.replace(index, release="50.0.0.1"))
    run(engine)
    assert engine.compilations == 1
    (reason,) = engine.why_not_compiled()
    assert reason == f"they are for wasmtime 50.0.0.1, and wasmtime {RELEASE} is installed"
    (warning,) = warnings(caplog)
    assert "wasmsand warm" in warning


@pytest.mark.parametrize(
    ("function", "value", "reason"),
    [
        ("wasmtime_config_epoch_interruption_set", False, "epoch interruption"),
        ("wasmtime_config_memory_may_move_set", True, "memory may move"),
        ("wasmtime_config_memory_init_cow_set", False, "initialization with CoW"),
        ("wasmtime_config_concurrency_support_set", True, "concurrency support"),
        ("wasmtime_config_wasm_threads_set", True, "threads"),
        ("wasmtime_config_wasm_gc_set", True, "gc"),
    ],
)
def test_modules_with_other_settings_are_not_used(
    index: ShippedIndex,
    engine_with: Opener,
    caplog: pytest.LogCaptureFixture,
    function: str,
    value: bool,
    reason: str,
) -> None:
    other = lib.wasm_config_new()
    for name, usual in (dict(config.configuration(EngineSettings())) | {function: value}).items():
        getattr(lib, name)(other, usual)
    compiler = ffi.gc(lib.wasm_engine_new_with_config(other), lib.wasm_engine_delete)
    path = index.probe.path
    engine = engine_with(dataclasses.replace(index, probe=described(path, probe(compiler))))
    run(engine)
    assert engine.compilations == 1
    (warning,) = warnings(caplog)
    assert reason in warning


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names a feature of x86-64")
def test_modules_for_another_processor_are_not_used(
    index: ShippedIndex, engine_with: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    # wasmtime compiles nothing that this processor cannot run. So the list of features in the
    # module is changed.
    lacking, having = b"has_apx\x02\x00", b"has_apx\x02\x01"
    path = index.probe.path
    content = path.read_bytes()
    assert content.count(lacking) == 1
    changed = described(path, content.replace(lacking, having))
    engine = engine_with(dataclasses.replace(index, probe=changed))
    run(engine)
    assert engine.compilations == 1
    (warning,) = warnings(caplog)
    assert "they are for x86-64-v2 (x86_64-unknown-linux-gnu)" in warning
    assert "has_apx" in warning


def test_a_file_that_others_can_write_is_copied_and_not_mapped(
    index: ShippedIndex, engine_with: Opener, cache: Path
) -> None:
    path = index.modules[KEY].path
    path.chmod(0o664)
    engine = engine_with(index)
    run(engine)
    assert engine.compilations == 0
    (copy,) = cache.glob("*.cwasm")
    assert copy.read_bytes() == path.read_bytes()
    path.write_bytes(b"changed by somebody else")
    run(engine_with(index))


def test_without_a_cache_such_a_file_is_read_into_memory(
    index: ShippedIndex, tmp_path: Path
) -> None:
    index.modules[KEY].path.chmod(0o664)
    (tmp_path / "file").touch()
    engine = WasmtimeEngine(cache_directory=tmp_path / "file" / "modules", shipped=[index])
    run(engine)
    assert engine.compilations == 0


def test_without_a_cache_each_process_checks_the_file(index: ShippedIndex, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for _ in range(2):
        engine = WasmtimeEngine(cache_directory=tmp_path / "file" / "modules", shipped=[index])
        assert not engine.is_compiled(KEY)
        run(engine)
        assert engine.is_compiled(KEY)
        assert engine.compilations == 0


def test_what_this_machine_compiled_comes_first(
    index: ShippedIndex, engine_with: Opener, cache: Path
) -> None:
    run(WasmtimeEngine(cache_directory=cache, shipped=[]))  # for all features of this processor
    index.modules[KEY].path.unlink()
    engine = engine_with(index)
    assert engine.is_compiled(KEY)
    run(engine)
    assert engine.compilations == 0


def test_an_index_is_read_as_it_was_written(index: ShippedIndex) -> None:
    assert read_index(index.directory) == index


@pytest.mark.parametrize(
    "damage",
    [
        lambda index: "not JSON",
        lambda index: "[]",
        lambda index: json.dumps(index | {"modules": {"key": {"file": "x"}}}),
        lambda index: json.dumps(
            index | {"probe": {"file": "../probe.cwasm", "sha256": "0" * 64, "size": 1}}
        ),
    ],
)
def test_a_damaged_index_counts_as_absent(
    index: ShippedIndex,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[dict[str, object]], str],
) -> None:
    file = index.directory / INDEX_NAME
    file.write_text(damage(json.loads(file.read_text())))
    assert read_index(index.directory) is None
    assert "damaged" in caplog.text


def test_an_index_of_a_later_format_counts_as_absent(index: ShippedIndex) -> None:
    file = index.directory / INDEX_NAME
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 99}))
    assert read_index(index.directory) is None
