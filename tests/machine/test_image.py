"""The base image as sandboxes see it, and the host's memory for it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.machine.image_directories import program_entry, write_manifest
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.machine import CommandRequest, Machine, image_at

pytestmark = pytest.mark.no_userland

LARGE = 3_000_000


def padded_program(padding: bytes = b"p") -> bytes:
    """A program that a custom section makes large."""
    size = bytes([LARGE & 0x7F | 0x80, LARGE >> 7 & 0x7F | 0x80, LARGE >> 14 & 0x7F | 0x80])
    wat = '(module (memory (export "memory") 1) (func (export "_start")))'
    return wat_to_wasm(wat) + b"\0" + size + bytes([LARGE >> 21]) + b"\0" + padding * (LARGE - 1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_manifest(
        tmp_path, [program_entry(tmp_path, "large", padded_program(), "/usr/bin/large")]
    )


@pytest.fixture
def machine(directory: Path) -> Iterator[Machine]:
    made = Machine(image=image_at(directory))
    yield made
    made.close()


def test_the_file_of_a_program_can_be_read(machine: Machine) -> None:
    content = padded_program()
    assert machine.files.read("/usr/bin/large") == content


def test_starting_a_program_does_not_keep_its_file_in_memory(machine: Machine) -> None:
    request = CommandRequest(("/usr/bin/large",), {}, "/", timeout_seconds=30)
    run = partial(machine.run, request)
    run()  # compiles it
    tracemalloc.start()
    try:
        completed = run()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert completed.exit_code == 0
    assert kept < LARGE


def test_a_file_that_has_shrunk_is_an_error(directory: Path, machine: Machine) -> None:
    (directory / "large.wasm").write_bytes(padded_program()[:5000])
    with pytest.raises(ValueError, match=r"large\.wasm is shorter than \d+ bytes"):
        machine.files.read("/usr/bin/large")
