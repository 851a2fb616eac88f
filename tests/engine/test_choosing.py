"""Which engine a host process has, and where the engine keeps its files."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from wasmsand.engine.choosing import default_engine, settle_places
from wasmsand.engine.wasmtime.compile_cache import VARIABLE


def test_all_of_a_process_share_one_engine() -> None:
    assert default_engine() is default_engine()


def test_no_engine_is_loaded_before_it_is_asked_for() -> None:
    script = (
        "import sys, wasmsand.engine, wasmsand.abi.memory, wasmsand.engine.abilities\n"
        "print([name for name in sys.modules if name.startswith('wasmsand.engine.wasmtime')])"
    )
    environ = {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True)
    assert (ended.stdout, ended.stderr) == (b"[]\n", b"")


def test_places_are_made_only_for_this_user_and_do_not_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "cache")
    before = os.umask(0o002)
    try:
        places = settle_places()
    finally:
        os.umask(before)
    assert places.compiled_modules == tmp_path / "cache" / "modules"
    assert places.scratch.parent == places.compiled_modules
    for place in places:
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    monkeypatch.chdir("/")
    assert settle_places() == places


def test_places_that_cannot_be_made_are_still_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    assert settle_places().compiled_modules == tmp_path / "file" / "modules"
