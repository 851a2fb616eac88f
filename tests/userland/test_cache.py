"""The cache holds only complete outputs, whatever happens to a builder."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from userland.builder.cache import ENTRY_FILE, Cache, default_root, disk_errors
from userland.builder.errors import BuildError, DiskFull, Interrupted

KEY = "k" * 64


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    cache = Cache(tmp_path / "cache")
    cache.prepare()
    return cache


def publish(cache: Cache, content: str = "content") -> None:
    with cache.lock("tool"), cache.scratch("tool") as scratch:
        made = scratch / "out"
        (made / "deep").mkdir(parents=True)
        (made / "deep/file").write_text(content)
        cache.publish("tool", KEY, made, {"make": 1.25})


def test_published_output_is_found_again(cache: Cache) -> None:
    assert cache.find("tool", KEY) is None
    publish(cache)
    entry = cache.find("tool", KEY)
    assert entry is not None
    assert (entry.folder / "deep/file").read_text() == "content"
    assert entry.seconds == {"make": 1.25}
    assert entry.files["deep/file"][0] == len("content")


@pytest.mark.parametrize("damage", ["no entry file", "cut entry file", "cut file", "no file"])
def test_half_written_entry_is_ignored_and_replaced(cache: Cache, damage: str) -> None:
    publish(cache)
    folder = cache.built / "tool" / KEY
    match damage:
        case "no entry file":
            (folder / ENTRY_FILE).unlink()
        case "cut entry file":
            (folder / ENTRY_FILE).write_text((folder / ENTRY_FILE).read_text()[:40])
        case "cut file":
            (folder / "deep/file").write_text("cont")
        case "no file":
            (folder / "deep/file").unlink()
    assert cache.find("tool", KEY) is None
    publish(cache)
    assert cache.find("tool", KEY) is not None


def test_entry_of_another_format_is_ignored(cache: Cache) -> None:
    publish(cache)
    file = cache.built / "tool" / KEY / ENTRY_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 99}))
    assert cache.find("tool", KEY) is None


def test_scratch_is_removed_after_an_error_with_read_only_parts(cache: Cache) -> None:
    def fail_half_way() -> None:
        with cache.scratch("tool") as scratch:
            (scratch / "folder").mkdir()
            (scratch / "folder/file").touch()
            (scratch / "folder").chmod(0o555)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert list(cache.work.iterdir()) == []


def test_leftovers_of_a_killed_builder_are_removed_but_not_work_in_progress(cache: Cache) -> None:
    (cache.work / "dead").mkdir()
    with cache.scratch("alive"):
        cache.prepare()
        assert [path.name for path in cache.work.iterdir()] == ["alive"]


def test_lock_excludes_other_processes_and_dies_with_its_holder(cache: Cache) -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path; from userland.builder.cache import Cache\n"
        "with Cache(Path(sys.argv[2])).lock('tool'):\n"
        "    print('mine', flush=True); sys.stdin.read()\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    with subprocess.Popen(
        [sys.executable, "-c", program, root, str(cache.root.parent)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"mine\n"
        waited = threading.Event()

        def on_wait() -> None:
            waited.set()
            holder.kill()

        with cache.lock("tool", on_wait=on_wait):
            assert waited.is_set()


def test_wait_for_a_lock_ends_when_the_build_is_stopped(cache: Cache) -> None:
    stop = threading.Event()
    with cache.lock("tool"), pytest.raises(Interrupted), cache.lock("tool", stop, stop.set):
        pass


def test_a_full_disk_is_reported_with_advice(tmp_path: Path) -> None:
    with pytest.raises(DiskFull) as caught, disk_errors(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert str(tmp_path) in str(caught.value)
    assert "WASMSAND_CACHE" in caught.value.advice


def test_an_unusable_cache_directory_is_reported_with_the_variable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BuildError) as caught:
        Cache(tmp_path / "file").prepare()
    assert "WASMSAND_CACHE" in caught.value.advice


def test_the_environment_chooses_the_cache_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WASMSAND_CACHE", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert default_root() == Path("/a")
    monkeypatch.delenv("WASMSAND_CACHE")
    assert default_root() == Path("/b/wasmsand")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_root() == Path.home() / ".cache/wasmsand"
