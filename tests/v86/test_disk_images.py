"""Disk images of v86 mode keep every change, and damaged ones are refused."""

from __future__ import annotations

import io

import pytest

from tests.v86.built import needs_v86
from wasmsand import DiskImageError, Sandbox, SandboxOptions
from wasmsand.v86.backend import open_v86_backend
from wasmsand.v86.disk import MAGIC

pytestmark = needs_v86

OPTIONS = SandboxOptions(timeout_ms=240_000)


def test_changes_removals_and_replaced_directories_are_kept() -> None:
    saved = io.BytesIO()
    backend = open_v86_backend(OPTIONS)
    try:
        first = Sandbox.from_backend(backend, OPTIONS)
        change = (
            "rm /etc/hostname; rm -r /usr/share/zoneinfo/Europe; mkdir /usr/share/zoneinfo/Europe;"
            "echo mine > /usr/share/zoneinfo/Europe/file; chmod 600 /etc/group;"
            "ln -s target /opt/link; head -c 100000 /dev/urandom > /opt/data;"
            "chown user /opt/data; sha256sum /opt/data"
        )
        digest = first.commands.run(change, user="root").stdout
        backend.save_disk(saved)
    finally:
        backend.close()
    saved.seek(0)
    backend = open_v86_backend(OPTIONS)
    try:
        second = Sandbox.from_backend(backend, OPTIONS)
        backend.load_disk(saved)
        look = (
            "sha256sum /opt/data; stat -c '%U %a' /opt/data /etc/group; readlink /opt/link;"
            "ls /etc/hostname 2>/dev/null; ls /usr/share/zoneinfo/Europe"
        )
        shown = second.commands.run(look, user="root").stdout
        assert shown == f"{digest}user 644\nroot 600\ntarget\nfile\n"
        # A machine that is lost comes back with the files of its disk image.
        backend._machine.agent().lose("a test")
        assert second.files.read_text("/usr/share/zoneinfo/Europe/file") == "mine\n"
    finally:
        backend.close()


@pytest.mark.parametrize("position", [0, len(MAGIC) + 5, -2000])
def test_a_damaged_disk_image_is_refused(position: int) -> None:
    backend = open_v86_backend(OPTIONS)
    try:
        saved = io.BytesIO()
        backend.write_file("/tmp/x", b"content" * 1000)
        backend.save_disk(saved)
        content = bytearray(saved.getvalue())
        content[position] ^= 1
        for damaged in (bytes(content), saved.getvalue()[:-1000]):
            with pytest.raises(DiskImageError, match="not a disk image"):
                backend.load_disk(io.BytesIO(damaged))
    finally:
        backend.close()
