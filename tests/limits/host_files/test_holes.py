"""Files with holes: host operations need neither memory nor time for the holes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from tests.limits.host_files.turns import HUGE, LONGEST_HOLD, Host, PythonPeak
from wasmsand import Sandbox
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import MIB
from wasmsand.kernel.vfs import ROOT
from wasmsand.kernel.vfs.chunks import CHUNK_SIZE
from wasmsand.machine import export_tar
from wasmsand.sdk.local import LocalBackend

pytestmark = pytest.mark.no_userland


CHILD = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
from tests.limits.host_files.turns import HUGE, Host
host = Host()
files = host.files
files.write("/tmp/f", b"old")
host.truncate("/tmp/f", HUGE)
{work}
print(host.machine.kernel.root.space.used_blocks, files.stat("/tmp/f").size)
"""


@pytest.mark.parametrize(
    ("work", "told"),
    [
        ("files.write('/tmp/f', b'')", "0 0"),
        ("files.write('/tmp/f', b'new')", "1 3"),
        ("host.link('/tmp/f', '/tmp/g'); files.write('/tmp/f', b'new')", "1 3"),
        ("host.link('/tmp/f', '/tmp/g'); files.write('/tmp/g', b'')", "0 0"),
        ("files.append('/tmp/f', b'end')", f"2 {HUGE + 3}"),
        ("files.append('/tmp/f', bytes(3 << 20))", f"769 {HUGE + (3 << 20)}"),
        ("files.copy('/tmp/f', '/tmp/g')", f"2 {HUGE}"),
        ("files.copy('/tmp', '/home/g')", f"2 {HUGE}"),
        ("files.rename('/tmp/f', '/tmp/g'); files.copy('/tmp/g', '/tmp/f')", f"2 {HUGE}"),
        ("assert files.read('/tmp/f', HUGE - 5, 100) == bytes(5)", f"1 {HUGE}"),
        ("files.write('/tmp/f', b'new', mode=0o600)", "1 3"),
    ],
)
def test_holes_are_never_read_as_data(work: str, told: str, repository: Path) -> None:
    """Runs in a process that may use 1 GiB."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD.format(work=work)],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (child.stdout, child.stderr[-2000:]) == (told + "\n", "")


def test_a_file_of_holes_is_read_only_in_parts(host: Host) -> None:
    host.files.write("/tmp/f", b"x")
    host.truncate("/tmp/f", HUGE)
    with pytest.raises(KernelError, match=r"^EFBIG: /tmp/f has .* holes; read it in parts"):
        host.files.read("/tmp/f")
    with pytest.raises(KernelError, match=r"^EFBIG: "):
        host.files.read("/tmp/f", 0, HUGE)
    with pytest.raises(KernelError, match=r"^EFBIG: "):
        b"".join(export_tar(host.machine, "/tmp"))


def interleaved(host: Host, path: str, chunks: int) -> None:
    host.files.write(path, b"")
    node = host.node(path)
    for number in range(chunks):
        host.namespace.write(ROOT, node, number * 2 * CHUNK_SIZE, b"x")


def test_copying_an_interleaved_file_is_not_quadratic(host: Host) -> None:
    interleaved(host, "/tmp/f", 30_000)
    started = time.monotonic()
    host.files.copy("/tmp/f", "/tmp/g")
    assert time.monotonic() - started < 2
    assert host.turns.longest < LONGEST_HOLD
    used = host.machine.kernel.root.space.used_blocks
    assert used == 60_000
    host.namespace.write(ROOT, host.node("/tmp/g"), 0, b"y")
    assert (host.files.read("/tmp/f", 0, 1), host.files.read("/tmp/g", 0, 1)) == (b"x", b"y")
    assert host.machine.kernel.root.space.used_blocks == used


def test_a_sandbox_of_this_host_is_not_hurt_by_a_write_to_holes() -> None:
    """As first reported, through the public API."""
    with Sandbox() as sandbox:
        machine = cast("LocalBackend", sandbox._attachment.backend)._machine
        sandbox.files.write("f", b"x")
        node = machine.kernel.namespace.resolve(
            ROOT, machine.kernel.namespace.root, b"/home/user/f"
        )
        machine.kernel.namespace.resize(ROOT, node, 1 << 31)
        with PythonPeak() as peak:
            sandbox.files.write("f", "")
        assert peak.bytes < MIB
        assert sandbox.files.stat("f").size == 0
