"""Wheels of an index are hostile input: what is refused, and what is unpacked."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.small_index import make_wheel
from wasmsand.kernel.vfs import ROOT, ImageBuilder, Namespace, SharedTree, TreeFs
from wasmsand.machine.packages import wheel_cache, wheels
from wasmsand.machine.packages.wheel_cache import (
    NotCached,
    add_wheel,
    is_cached,
    load_fresh,
    load_wheel,
)
from wasmsand.machine.packages.wheels import BadWheel, Wheel

pytestmark = pytest.mark.no_userland


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(wheel_cache, "host_cache", lambda: tmp_path / "cache")
    load_wheel.cache_clear()
    yield tmp_path / "cache"
    load_wheel.cache_clear()


def nothing(tree: SharedTree, name: str) -> dict[str, bytes]:
    return {}


def files_of(tree: SharedTree) -> dict[str, bytes]:
    base = TreeFs(ImageBuilder().build())
    base.attach(base.root_ino, b"package", tree)
    namespace = Namespace(base)
    found: dict[str, bytes] = {}

    def visit(path: bytes) -> None:
        node = namespace.resolve(ROOT, namespace.root, path)
        for entry in namespace.readdir(node, 0, 10_000)[2:]:
            inner = path + b"/" + entry.name
            if entry.type == 0o040000:
                visit(inner)
            else:
                content = namespace.read(namespace.resolve(ROOT, namespace.root, inner), 0, 1 << 20)
                found[inner.decode().removeprefix("/package/")] = content

    visit(b"/package")
    return found


def test_a_wheel_is_unpacked_once_and_shared(tmp_path: Path) -> None:
    file = make_wheel(tmp_path, "demo", "1.2", files={"demo/__init__.py": "x = 1\n"})
    calls: list[str] = []

    def compile_modules(tree: SharedTree, name: str) -> dict[str, bytes]:
        calls.append(name)
        return {"demo/__pycache__/__init__.cpython-314.pyc": b"compiled"}

    sha256 = add_wheel(file, compile_modules)
    assert add_wheel(file, compile_modules) == sha256
    assert calls == ["demo"]
    wheel = load_wheel(sha256)
    assert load_wheel(sha256) is wheel
    assert (wheel.metadata.key, wheel.metadata.version) == ("demo", "1.2")
    found = files_of(wheel.tree)
    assert found["demo/__init__.py"] == b"x = 1\n"
    assert found["demo/__pycache__/__init__.cpython-314.pyc"] == b"compiled"
    assert found["demo-1.2.dist-info/INSTALLER"] == b"wasmsand\n"


def test_data_directories_of_a_wheel_go_where_they_belong(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "demo-1.0.data/purelib/demo/__init__.py": "",
        "demo-1.0.data/scripts/tool": "#!python -E\nprint(1)\n",
        "demo-1.0.data/scripts/sh-tool": "#!/bin/sh\n",
        "demo-1.0.data/data/share/man/x": "man",
        "demo-1.0.data/headers/x.h": "",
    }
    found = files_of(load_wheel(add_wheel(make_wheel(tmp_path, "demo", files=files), nothing)).tree)
    assert "demo/__init__.py" in found
    assert found["demo-1.0.dist-info/scripts/tool"] == b"#!/usr/bin/python3\nprint(1)\n"
    assert found["demo-1.0.dist-info/scripts/sh-tool"] == b"#!/bin/sh\n"
    assert not [path for path in found if "man" in path or path.endswith(".h")]


@pytest.mark.parametrize(
    "name",
    [
        "../escape.py",
        "/etc/passwd",
        "demo/../../escape.py",
        "demo//x.py",
        "demo/./x.py",
        "c:/windows",
        "demo\\..\\escape",
        "demo/" + "x" * 300,
        "demo/" + "d/" * 600 + "x",
        "demo/\x01.py",
        "demo-1.0.data/purelib/../../x",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    file = make_wheel(tmp_path, "demo", files={"demo/__init__.py": "", name: "evil"})
    with pytest.raises(BadWheel, match="not a plain relative path"):
        add_wheel(file, nothing)
    assert not list((tmp_path / "cache").rglob("*.bin"))


def test_a_link_in_a_wheel_is_refused(tmp_path: Path) -> None:
    file = make_wheel(tmp_path, "demo")
    with zipfile.ZipFile(file, "a") as archive:
        link = zipfile.ZipInfo("demo/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(BadWheel, match="not a regular file"):
        Wheel(file)


@pytest.mark.parametrize(
    ("first", "second"),
    [("demo/a", "demo/a/b"), ("demo/a/b/c", "demo/a"), ("x.py", "demo-1.0.data/purelib/x.py")],
)
def test_two_files_in_one_place_are_refused(first: str, second: str, tmp_path: Path) -> None:
    file = make_wheel(tmp_path, "demo", files={first: "1", second: "2"})
    with pytest.raises(BadWheel, match=r"two files have|is a file and a directory"):
        Wheel(file)


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "MEMBERS_MAX", 10)
    with pytest.raises(BadWheel, match="at most 10"):
        Wheel(make_wheel(tmp_path, "demo", files={f"demo/{n}.py": "" for n in range(11)}))


def test_too_much_content_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "UNPACKED_BYTES_MAX", 10_000)
    with pytest.raises(BadWheel, match="at most 10000"):
        Wheel(make_wheel(tmp_path, "demo", files={"demo/x": "0" * 20_000}))


def test_content_that_is_larger_than_announced_is_refused(tmp_path: Path) -> None:
    """A bomb whose directory states a small size."""
    file = make_wheel(tmp_path, "demo", files={"bomb": b"\0" * 5_000_000})
    data = bytearray(file.read_bytes())
    size = struct.pack("<L", 5_000_000)
    assert data.count(size) == 2
    file.write_bytes(bytes(data.replace(size, struct.pack("<L", 10))))
    with pytest.raises(BadWheel):
        add_wheel(file, nothing)
    assert not list((tmp_path / "cache").rglob("*.bin"))


def test_a_wheel_with_native_code_is_refused(tmp_path: Path) -> None:
    file = make_wheel(tmp_path, "demo", tag="cp314-cp314-manylinux_2_17_x86_64")
    with pytest.raises(BadWheel, match="native code"):
        Wheel(file)


@pytest.mark.parametrize("size", [0, 10, 100, 300])
def test_a_truncated_wheel_is_refused(size: int, tmp_path: Path) -> None:
    file = make_wheel(tmp_path, "demo")
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(BadWheel):
        Wheel(file)


def test_damaged_content_is_refused(tmp_path: Path) -> None:
    file = make_wheel(tmp_path, "demo", files={"demo.py": "y" * 3000 + "z"})
    data = bytearray(file.read_bytes())
    data[45] ^= 0xFF
    file.write_bytes(bytes(data))
    with pytest.raises(BadWheel):
        add_wheel(file, nothing)


def test_metadata_that_names_another_package_is_refused(tmp_path: Path) -> None:
    file = make_wheel(tmp_path, "demo", metadata="Name: other\nVersion: 1.0\n")
    with pytest.raises(BadWheel, match="its metadata names 'other'"):
        Wheel(file)


def test_a_wheel_without_metadata_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("demo.py", "")
    file = tmp_path / "demo-1.0-py3-none-any.whl"
    file.write_bytes(content.getvalue())
    with pytest.raises(BadWheel, match="0 directories with metadata"):
        Wheel(file)


def test_a_wheel_cannot_claim_to_be_native_or_to_have_another_installer(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "demo.py": "",
        "demo-1.0.dist-info/native.txt": "required",
        "demo-1.0.dist-info/INSTALLER": "evil",
    }
    found = files_of(load_fresh(add_wheel(make_wheel(tmp_path, "demo", files=files), nothing)).tree)
    assert "demo-1.0.dist-info/native.txt" not in found
    assert found["demo-1.0.dist-info/INSTALLER"] == b"wasmsand\n"


@pytest.mark.parametrize("name", ["0" * 64, "../" + "0" * 61, "", "x"])
def test_a_hash_that_the_cache_does_not_have_is_not_found(name: str) -> None:
    with pytest.raises(NotCached):
        load_fresh(name)


def test_a_damaged_entry_of_the_cache_is_not_found(tmp_path: Path, cache: Path) -> None:
    sha256 = add_wheel(make_wheel(tmp_path, "demo"), nothing)
    assert is_cached(sha256)
    next(cache.rglob("listing.json")).write_text("[]")
    with pytest.raises(NotCached):
        load_fresh(sha256)


def test_the_cache_is_bounded_and_keeps_what_was_used_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel_cache, "ENTRIES_MAX", 2)
    first = add_wheel(make_wheel(tmp_path, "first"), nothing)
    directory = wheel_cache.wheel_directory()
    os.utime(directory / first, (1, 1))
    used = load_fresh(first)
    second = add_wheel(make_wheel(tmp_path, "second"), nothing)
    os.utime(directory / second, (2, 2))
    third = add_wheel(make_wheel(tmp_path, "third"), nothing)
    assert [is_cached(sha256) for sha256 in (first, second, third)] == [True, False, True]
    monkeypatch.setattr(wheel_cache, "BYTES_MAX", 1)
    os.utime(directory / first, (1, 1))
    os.utime(directory / third, (1, 1))
    fourth = add_wheel(make_wheel(tmp_path, "fourth"), nothing)
    assert [is_cached(sha256) for sha256 in (first, third, fourth)] == [False, False, True]
    assert files_of(used.tree)["first.py"] == b"version = '1.0'\n", "it is still readable"


def test_what_a_dead_process_has_left_is_removed(tmp_path: Path) -> None:
    add_wheel(make_wheel(tmp_path, "first"), nothing)
    left = wheel_cache.wheel_directory() / "dead.tmp"
    left.mkdir()
    os.utime(left, (1, 1))
    add_wheel(make_wheel(tmp_path, "second"), nothing)
    assert not left.exists()


def test_a_wheel_that_fails_leaves_nothing_in_the_cache(tmp_path: Path) -> None:
    def fail(tree: SharedTree, name: str) -> dict[str, bytes]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add_wheel(make_wheel(tmp_path, "demo"), fail)
    assert list(wheel_cache.wheel_directory().iterdir()) == []
