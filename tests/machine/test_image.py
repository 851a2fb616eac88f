"""The base image as sandboxes see it, and the host's memory for it."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.machine.image_directories import program_entry, write_manifest
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.machine import (
    CommandRequest,
    ImageMissing,
    Machine,
    image,
    image_at,
    image_programs,
)

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
    with pytest.raises(KernelError, match=r"large\.wasm is too short") as failure:
        machine.files.read("/usr/bin/large")
    assert failure.value.errno is Errno.EIO


def two_directories(tmp_path: Path, base: dict[str, str], name: str) -> tuple[Path, Path]:
    """A directory with the program `large`, and one with the program `name` that completes one
    with the programs `base`."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    write_manifest(first, [program_entry(first, "large", padded_program(), "/usr/bin/large")])
    entry = program_entry(second, name, padded_program(b"q"), f"/usr/bin/{name}")
    write_manifest(second, [entry], base=base)
    return first, second


def use(directories: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "image_directories", lambda: directories)
    monkeypatch.setattr(image, "_base", None)


def test_a_second_directory_completes_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = {"large": hashlib.sha256(padded_program()).hexdigest()}
    use(two_directories(tmp_path, needed, "more"), monkeypatch)
    assert [program.name for program in image_programs()] == ["large", "more"]
    machine = Machine(image=image.base_image())
    try:
        assert machine.files.read("/usr/bin/large") == padded_program()
        assert machine.files.read("/usr/bin/more") == padded_program(b"q")
    finally:
        machine.close()


@pytest.mark.parametrize(
    ("base", "name"), [({"large": "0" * 64}, "more"), ({"other": "0" * 64}, "more"), ({}, "large")]
)
def test_a_second_directory_of_another_user_space_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: dict[str, str], name: str
) -> None:
    use(two_directories(tmp_path, base, name), monkeypatch)
    with pytest.raises(ImageMissing, match=r"second was built for another user space than .*first"):
        image.base_image()


def test_the_package_with_the_second_directory_need_not_be_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    search = image.image_directories.__wrapped__
    monkeypatch.setattr(image, "PACKAGES", "no_such_package_anywhere")
    assert search() == (image.IMAGE_DIRECTORY,)
    package = tmp_path / "some_packages"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(image, "PACKAGES", "some_packages")
    assert search() == (image.IMAGE_DIRECTORY,)
    (package / "_image").mkdir()
    (package / "_image/manifest.json").touch()
    assert search() == (image.IMAGE_DIRECTORY, package / "_image")


def _put_a_tree(directory: Path, version: int) -> None:
    """Add the directory /usr/share/words with one file to an image of this format."""
    listing: dict[str, Any] = {
        "files": [["/usr/share/words/a", 0o644, 0, 5]],
        "links": [],
        "directories": [],
    }
    text = json.dumps(listing).encode()
    (directory / "files.bin").write_bytes(b"words" + text)
    there: dict[str, Any] = {3: listing, 4: {"listing": [5, len(text)]}}[version]
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest["format"] = version
    manifest["trees"] = [{"path": "/usr/share/words", "inodes": 1, "subdirs": 0, **there}]
    (directory / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("version", [3, 4])
def test_a_large_directory_is_listed_when_somebody_looks_into_it(
    directory: Path, version: int
) -> None:
    _put_a_tree(directory, version)
    machine = Machine(image=image_at(directory))
    try:
        assert [entry.name for entry in machine.files.list("/usr/share/words")] == ["a"]
        assert machine.files.read("/usr/share/words/a") == b"words"
    finally:
        machine.close()


def test_an_image_of_another_format_is_refused(directory: Path) -> None:
    _put_a_tree(directory, 4)
    manifest = json.loads((directory / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps({**manifest, "format": 5}))
    with pytest.raises(ImageMissing, match="has format 5, not 4: run 'wasmsand build' again"):
        image_at(directory)
