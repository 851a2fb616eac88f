"""Several programs, the API and the host change one directory at the same time."""

from __future__ import annotations

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.machine.mounts.test_same_as_native import SCRIPT, native
from wasmsand import Sandbox, SandboxError
from wasmsand.sdk.mounts import MountMode


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    place = tmp_path / "inside"
    (place / "dir" / "sub").mkdir(parents=True)
    (place / "a").write_bytes(b"a" * 5000)
    (place / "dir" / "b").write_bytes(b"b" * 100)
    return place


@pytest.mark.parametrize("mode", ["read-write", "overlay", "read-only"])
def test_the_view_is_right_in_the_end(
    inside: Path, tmp_path: Path, mode: MountMode, caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()

    def use_api(sandbox: Sandbox) -> None:
        number = 0
        files = sandbox.files
        while not stop.is_set():
            number += 1
            with suppress(SandboxError):
                files.write(f"/mnt/d/dir/a{number % 3}", b"x" * number)
            with suppress(SandboxError):
                files.list("/mnt/d", recursive=True)
            with suppress(SandboxError):
                files.rm("/mnt/d/dir/a1")
            with suppress(SandboxError):
                files.rename("/mnt/d/dir", "/mnt/d/c")
            with suppress(SandboxError):
                files.read("/mnt/d/a")

    def change_host() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            with suppress(OSError):
                os.rename(inside / "a", inside / "link")
            with suppress(OSError):
                os.rename(inside / "link", inside / "a")
            with suppress(OSError):
                (inside / "dir" / "c").write_text("x" * (number % 1000))
            with suppress(OSError):
                os.unlink(inside / "sub")
            with suppress(OSError):
                os.rename(inside / "dir", inside / "sub")

    with Sandbox(cwd="/", timeout_ms=120_000) as sandbox, caplog.at_level(logging.ERROR):
        sandbox.mount("/mnt/d", inside, mode=mode)
        sandbox.files.write("/changes.py", SCRIPT.read_bytes())
        threads = [threading.Thread(target=use_api, args=(sandbox,))]
        if mode != "overlay":  # which does not have files that the host moves (L126)
            threads.append(threading.Thread(target=change_host))
        for thread in threads:
            thread.start()
        try:
            result = sandbox.commands.run(
                "for i in 1 2 3; do python3 /changes.py /mnt/d $i 250 > /tmp/$i 2>&1 & done; wait"
            )
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert (result.stderr, result.exit_code) == ("", 0)
        seen = sandbox.commands.run("python3 /changes.py /mnt/d 0 0")
        assert seen.exit_code == 0, seen.stderr
        if mode != "overlay":
            assert seen.stdout == native(inside, 0, 0)
        assert not [record for record in caplog.records if "bug" in record.getMessage()]
