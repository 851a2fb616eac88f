"""A machine without programs, and a host's tree with one entry of each kind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine.archives.reading import new_machine
from wasmsand.machine import Machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = new_machine()
    yield made
    made.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory of the host with one entry of each kind that all formats can hold."""
    top = tmp_path / "tree"
    (top / "directory").mkdir(parents=True)
    (top / "directory" / "file").write_bytes(bytes(range(256)) * 300)
    (top / "empty").write_bytes(b"")
    (top / "script").write_bytes(b"#!/bin/sh\n")
    (top / "script").chmod(0o4755)
    (top / "link").symlink_to("directory/file")
    os.link(top / "directory" / "file", top / "second")
    os.mkfifo(top / "fifo")
    for path in top.rglob("*"):
        os.utime(path, (1_234_567_890, 1_234_567_890), follow_symlinks=False)
    return top
