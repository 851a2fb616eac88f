"""Debian packages that are installed before `wasmsand build` can run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from userland.builder import ahead

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="installs with apt-get")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without compiler, whose apt-get writes its arguments to a file and fails."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("env", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    written = tmp_path / "arguments"
    for name, script in {
        "apt-get": f'echo "$*" >> {written}; exit 1',
        "sudo": 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    return written


def test_the_toolchain_and_what_recipes_need_are_installed_at_once(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # It fails, and leaves the message to the builder.
    assert ahead.main(["libffi"]) == 1
    installed = machine.read_text().splitlines()[0].split()
    assert installed[0] == "install"
    assert {"clang-22", "lld-22", "libclang-rt-22-dev-wasm32", "autoconf"} <= set(installed)
    printed = capsys.readouterr()
    assert printed.out.startswith("make: installing Debian packages: clang-22 ")
    assert printed.err == ""


def test_nothing_is_installed_for_recipes_that_are_not_built(machine: Path) -> None:
    assert ahead.main(["sed"]) == 1
    assert "autoconf" not in machine.read_text()


def test_nothing_is_installed_if_the_compiler_is_there(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "find_toolchain", lambda commands: object())
    assert ahead.main(["libffi"]) == 0
    assert not machine.exists()
