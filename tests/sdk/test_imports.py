"""What importing the package loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.no_userland

_LATER = ("wasmsand.engine", "wasmsand.abi", "wasmsand.machine.machine", "wasmsand.sdk.local")


def test_importing_sandbox_leaves_the_machine_for_later() -> None:
    """A program that connects to a server, or only names the class, does not pay for a machine."""
    code = "import sys; from wasmsand import Sandbox; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    modules = loaded.stdout.split()
    assert "wasmsand.sdk.sandbox" in modules
    early = [name for name in modules if name.startswith(_LATER)]
    assert early + [name for name in ("sqlite3", "hashlib", "tempfile") if name in modules] == []
