"""Compiled modules on disk: found, replaced if damaged, and dispensed with if impossible."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.guests import program
from tests.engine.hosts import Host, key_of, load
from tests.engine.orders import order
from wasmsand.engine.protocol import ModuleRejected
from wasmsand.engine.wasmtime import compile_cache
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.compile_cache import default_directory
from wasmsand.engine.wasmtime.engine import WasmtimeEngine

WASM = wat_to_wasm(program("nop"))
KEY = key_of(WASM)


class Source:
    """Bytes that count how often they are read."""

    def __init__(self, content: bytes = WASM) -> None:
        self.reads = 0
        self._content = content
        self._lock = threading.Lock()

    def __call__(self) -> bytes:
        with self._lock:
            self.reads += 1
        return self._content


def never() -> bytes:
    raise AssertionError("the module should not be read")


@pytest.fixture
def new_engine(tmp_path: Path) -> Callable[[], WasmtimeEngine]:
    """Engines that share one cache, as processes would."""
    return lambda: WasmtimeEngine(cache_directory=tmp_path / "modules")


def run(engine: WasmtimeEngine, read: Callable[[], bytes]) -> None:
    """Load the module and see that it runs."""
    assert Host(engine).run(engine.load(KEY, read).instantiate(1 << 20)) is None


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "modules").iterdir())


def test_a_second_process_does_not_compile(
    new_engine: Callable[[], WasmtimeEngine], tmp_path: Path
) -> None:
    first, second = new_engine(), new_engine()
    assert not first.is_compiled(KEY)
    run(first, Source())
    assert len(entries(tmp_path)) == 1
    assert first.is_compiled(KEY)
    assert second.is_compiled(KEY)
    run(second, never)


def test_loading_a_module_fills_the_cache(new_engine: Callable[[], WasmtimeEngine]) -> None:
    new_engine().load(KEY, lambda: WASM)
    run(new_engine(), never)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"not machine code",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: bytes(len(content)),
        lambda content: content.replace(b"50.", b"49.") if b"50." in content else b"",
    ],
    ids=["empty", "nonsense", "half", "one byte short", "zeros", "other version"],
)
def test_a_damaged_entry_is_compiled_again_and_replaced(
    new_engine: Callable[[], WasmtimeEngine],
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
    caplog: pytest.LogCaptureFixture,
) -> None:
    run(new_engine(), Source())
    (entry,) = entries(tmp_path)
    whole = entry.read_bytes()
    entry.unlink()
    entry.write_bytes(damage(whole))
    source = Source()
    run(new_engine(), source)
    assert source.reads == 1
    assert "unusable" in caplog.text
    assert entry.read_bytes() == whole
    run(new_engine(), never)


def test_entries_of_another_setup_are_ignored(
    new_engine: Callable[[], WasmtimeEngine], tmp_path: Path
) -> None:
    run(new_engine(), Source())
    (entry,) = entries(tmp_path)
    entry.rename(entry.with_name(f"{KEY}-0123456789abcdef.cwasm"))
    source = Source()
    run(new_engine(), source)
    assert source.reads == 1


def test_threads_that_want_the_same_module_compile_it_once(
    new_engine: Callable[[], WasmtimeEngine],
) -> None:
    engine, source = new_engine(), Source()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(engine.load(KEY, source))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.reads == 1
    assert len(set(map(id, found))) == 1


def test_writers_at_the_same_time_leave_one_whole_entry(
    new_engine: Callable[[], WasmtimeEngine], tmp_path: Path
) -> None:
    engines = [new_engine() for _ in range(6)]
    threads = [threading.Thread(target=e.load, args=(KEY, lambda: WASM)) for e in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entries(tmp_path)) == 1
    run(new_engine(), never)


def test_a_directory_that_cannot_be_made_costs_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    engine = WasmtimeEngine(cache_directory=tmp_path / "file" / "modules")
    run(engine, Source())
    other = wat_to_wasm(program("nop nop nop"))
    load(engine, other)
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "WASMSAND_CACHE" in warnings[0].getMessage()
    assert not WasmtimeEngine(cache_directory=tmp_path / "file" / "modules").is_compiled(KEY)


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_a_directory_that_others_can_write_to_is_not_used(
    new_engine: Callable[[], WasmtimeEngine], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(new_engine(), Source())
    (tmp_path / "modules").chmod(0o777)
    source = Source()
    run(new_engine(), source)
    assert source.reads == 1
    assert "WASMSAND_CACHE" in caplog.text


def test_a_compilation_is_logged_and_counted(
    new_engine: Callable[[], WasmtimeEngine], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "wasmsand.engine")
    engine = new_engine()
    run(engine, Source())
    assert "compiled module" in caplog.text
    assert engine.compilations == 1
    caplog.clear()
    run(engine, never)
    run(new_engine(), never)
    assert caplog.text == ""
    assert engine.compilations == 1


def test_a_rejected_module_is_rejected_again(new_engine: Callable[[], WasmtimeEngine]) -> None:
    engine, broken = new_engine(), b"\0asm broken"
    for _ in range(2):
        with pytest.raises(ModuleRejected):
            engine.load(key_of(broken), lambda: broken)


def test_the_directory_is_chosen_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WASMSAND_CACHE", str(tmp_path / "a"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    monkeypatch.setenv("HOME", str(tmp_path / "c"))
    assert default_directory() == tmp_path / "a" / "modules"
    monkeypatch.delenv("WASMSAND_CACHE")
    assert default_directory() == tmp_path / "b" / "wasmsand" / "modules"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_directory() == tmp_path / "c" / ".cache" / "wasmsand" / "modules"


def other_module(number: int) -> bytes:
    return wat_to_wasm(program("nop", more=f"(global i32 (i32.const {number}))"))


def load_transient(engine: WasmtimeEngine, wasm: bytes) -> None:
    engine.compile_apart(order(wasm))


def test_transient_modules_are_kept_apart_and_found_again(
    new_engine: Callable[[], WasmtimeEngine], tmp_path: Path
) -> None:
    load_transient(new_engine(), WASM)
    assert [path.name for path in entries(tmp_path)] == ["guests"]
    assert (tmp_path / "modules" / "guests").stat().st_mode & 0o077 == 0
    engine = new_engine()
    assert engine.is_compiled(KEY)
    run(engine, never)


def test_the_least_recently_used_transient_modules_are_dropped(
    new_engine: Callable[[], WasmtimeEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_cache, "TRANSIENT_ENTRIES_MAX", 3)
    run(new_engine(), Source(WASM))  # of the user space: it stays
    modules = [other_module(number) for number in range(5)]
    for number, wasm in enumerate(modules):
        load_transient(new_engine(), wasm)
        os.utime(next((tmp_path / "modules/guests").glob(f"{key_of(wasm)}*")), (number, number))
        if number == 2:
            assert new_engine().is_compiled(key_of(modules[0]))  # used just now
    engine = new_engine()
    assert [engine.is_compiled(key_of(wasm)) for wasm in modules] == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert engine.is_compiled(KEY)


def test_a_transient_module_of_the_image_is_kept_when_others_are_dropped(
    new_engine: Callable[[], WasmtimeEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_cache, "TRANSIENT_ENTRIES_MAX", 1)
    for use in (lambda engine: engine.keep_compiled(KEY), lambda engine: run(engine, never)):
        load_transient(new_engine(), WASM)
        use(new_engine())
        load_transient(new_engine(), other_module(1))  # drops the transient entry
        assert new_engine().is_compiled(KEY)
        shutil.rmtree(tmp_path / "modules")


def test_transient_modules_have_a_limit_of_bytes(
    new_engine: Callable[[], WasmtimeEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_cache, "TRANSIENT_BYTES_MAX", 1)
    for number in range(3):
        load_transient(new_engine(), other_module(number))
    assert len(list((tmp_path / "modules/guests").iterdir())) == 1


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_transient_modules_that_others_could_have_written_are_not_used(
    new_engine: Callable[[], WasmtimeEngine], tmp_path: Path
) -> None:
    load_transient(new_engine(), WASM)
    (tmp_path / "modules" / "guests").chmod(0o777)
    assert not new_engine().is_compiled(KEY)
