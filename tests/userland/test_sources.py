"""Fetching sources by apt from a Debian mirror (here: a directory)."""

from __future__ import annotations

import shutil
from dataclasses import replace
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


def test_wrong_content_is_told_with_both_hashes_and_nothing_is_kept(world: World) -> None:
    world.add("tool")
    source = world.recipes()["tool"].source
    wrong = replace(source, sha256="0" * 64)
    with pytest.raises(HashMismatch) as caught:
        fetch(wrong, world.cache, Commands())
    message = str(caught.value)
    assert "tool_1.0.orig.tar.gz (source package tool) has the wrong content" in message
    assert f"expected {'0' * 64}" in message
    assert f"received {source.sha256}" in message
    assert "before you put a new hash" in caught.value.advice
    assert list(world.cache.sources.iterdir()) == []
    assert list(world.cache.work.iterdir()) == []


def test_version_that_is_gone_is_told_with_what_there_is(world: World) -> None:
    world.add("tool")
    suite = world.mirror / "dists/trixie"
    (suite / "main/source").mkdir(parents=True)
    source = replace(world.recipes()["tool"].source, file="tool_0.9.orig.tar.gz", sha256="0" * 64)
    with pytest.raises((SourceVanished, NoNetwork)) as caught:
        fetch(source, world.cache, Commands())
    # The directory has no signed index: apt cannot say what else there is.
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
