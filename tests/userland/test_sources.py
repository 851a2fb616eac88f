"""Sources are fetched by apt from a Debian mirror (here a directory)."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.userland.conftest import World
from userland.builder.commands import Commands
from userland.builder.errors import HashMismatch, Interrupted, NoNetwork, SourceVanished
from userland.builder.sources import fetch

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")


def test_source_is_fetched_once_and_kept_by_content(world: World) -> None:
    world.add("tool")
    source = world.recipes()["tool"].source
    stored = fetch(source, world.cache, Commands())
    assert stored == world.cache.sources / source.sha256 / "tool_1.0.orig.tar.gz"
    shutil.rmtree(world.mirror)
    assert fetch(source, world.cache, Commands()) == stored
    assert not stored.is_symlink()


def test_wrong_content_is_reported_with_both_hashes_and_not_kept(world: World) -> None:
    world.add("tool")
    source = world.recipes()["tool"].source
    wrong = replace(source, sha256="0" * 64)
    with pytest.raises(HashMismatch) as caught:
        fetch(wrong, world.cache, Commands())
    message = str(caught.value)
    assert "tool_1.0.orig.tar.gz (Debian source package tool) has the wrong content" in message
    assert f"expected {'0' * 64}" in message
    assert f"received {source.sha256}" in message
    assert "before you put a new hash" in caught.value.advice
    assert list(world.cache.sources.iterdir()) == []
    assert list(world.cache.work.iterdir()) == []


def test_a_version_that_is_gone_is_reported_with_the_available_ones(world: World) -> None:
    world.add("tool")
    suite = world.mirror / "dists/trixie"
    (suite / "main/source").mkdir(parents=True)
    source = replace(world.recipes()["tool"].source, file="tool_0.9.orig.tar.gz", sha256="0" * 64)
    with pytest.raises((SourceVanished, NoNetwork)) as caught:
        fetch(source, world.cache, Commands())
    # The directory has no signed index, so apt cannot list other versions.
    assert "WASMSAND_DEBIAN_MIRROR" in caught.value.advice


def test_mirror_that_does_not_answer_is_no_network(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("tool")
    monkeypatch.setenv("WASMSAND_DEBIAN_MIRROR", "http://127.0.0.1:9/debian")
    with pytest.raises(NoNetwork) as caught:
        fetch(world.recipes()["tool"].source, world.cache, Commands())
    assert "127.0.0.1:9" in str(caught.value)
    assert "WASMSAND_DEBIAN_MIRROR" in caught.value.advice


def test_apt_settings_of_the_user_are_not_touched(world: World) -> None:
    def state() -> list[tuple[str, int]]:
        places = [Path("/etc/apt"), Path("/var/lib/apt")]
        return sorted(
            (str(path), path.lstat().st_mtime_ns)
            for place in places
            if place.is_dir()
            for path in place.rglob("*")
        )

    world.add("tool")
    before = state()
    fetch(world.recipes()["tool"].source, world.cache, Commands())
    assert state() == before


def test_stopped_builder_fetches_nothing(world: World) -> None:
    world.add("tool")
    commands = Commands()
    commands.stop()
    with pytest.raises(Interrupted):
        fetch(world.recipes()["tool"].source, world.cache, commands)
    assert list(world.cache.sources.iterdir()) == []


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A directory, and its address on a server of this machine."""
    folder = tmp_path / "upstream"
    folder.mkdir()
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_source_that_the_archive_has_dropped_comes_from_upstream(
    world: World, upstream: tuple[Path, str]
) -> None:
    folder, address = upstream
    world.add("tool")
    source = world.recipes()["tool"].source
    (tarball,) = world.mirror.rglob("tool_1.0.orig.tar.gz")
    shutil.move(tarball, folder / "tool-1.0.tar.gz")
    elsewhere = (f"{address}/gone.tar.gz", f"{address}/tool-1.0.tar.gz")
    stored = fetch(replace(source, upstream=elsewhere), world.cache, Commands())
    assert stored.name == "tool_1.0.orig.tar.gz"


def test_a_place_with_wrong_content_is_skipped(world: World, upstream: tuple[Path, str]) -> None:
    folder, address = upstream
    world.add("tool")
    source = world.recipes()["tool"].source
    (tarball,) = world.mirror.rglob("tool_1.0.orig.tar.gz")
    shutil.move(tarball, folder / "right")
    (folder / "wrong").write_bytes(b"another file")
    places = (f"{address}/wrong", f"{address}/right")
    assert fetch(replace(source, upstream=places), world.cache, Commands()).is_file()


def test_a_source_that_is_nowhere_is_reported_with_all_places(
    world: World, upstream: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, address = upstream
    monkeypatch.setenv("WASMSAND_DEBIAN_ARCHIVE", f"{address}/old")
    world.add("tool")
    source = replace(world.recipes()["tool"].source, upstream=(f"{address}/tool.tar.gz",))
    (tarball,) = world.mirror.rglob("tool_1.0.orig.tar.gz")
    tarball.unlink()
    with pytest.raises((SourceVanished, NoNetwork)) as caught:
        fetch(source, world.cache, Commands())
    assert f"{address}/tool.tar.gz" in caught.value.advice
    assert f"{address}/old/pool/main/t/tool/tool_1.0.orig.tar.gz" in caught.value.advice


def test_old_versions_come_from_the_archive_of_old_versions(
    world: World, upstream: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, address = upstream
    monkeypatch.setenv("WASMSAND_DEBIAN_ARCHIVE", address)
    world.add("tool")
    (tarball,) = world.mirror.rglob("tool_1.0.orig.tar.gz")
    place = folder / "pool/main/t/tool/tool_1.0.orig.tar.gz"
    place.parent.mkdir(parents=True)
    shutil.move(tarball, place)
    assert fetch(world.recipes()["tool"].source, world.cache, Commands()).is_file()
