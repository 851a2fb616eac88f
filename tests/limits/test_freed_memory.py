"""Memory of sandboxes that have ended goes back to the operating system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import gc, time
from pathlib import Path
from wasmsand import Sandbox

def resident():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024

def use(files):
    with Sandbox(fs_limit_bytes=128 << 20) as sandbox:
        script = f"for i in $(seq {files}); do head -c 200000 /dev/urandom > f$i; done"
        assert sandbox.commands.run(script, timeout_ms=60_000).exit_code == 0
        return resident()

use(1)
before = resident()
most = use(400)
deadline = time.monotonic() + 30
while resident() - before > (most - before) // 2 and time.monotonic() < deadline:
    time.sleep(0.1)
    gc.collect()  # as a host does now and then
print(before, most, resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="asks the GNU C library")
def test_a_host_is_small_again_after_a_large_sandbox() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    )
    before, most, after = map(int, done.stdout.split())
    assert most - before > 70
    assert after - before <= (most - before) // 2, done.stdout
