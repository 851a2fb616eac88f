"""What copies of sandboxes cannot do yet; docs/limitations.md has the same IDs."""

from __future__ import annotations

import os
import signal

import pytest

from tests.sdk import backends
from wasmsand import Sandbox, SandboxCrashedError, StateError


@pytest.mark.xfail(
    reason="L135: a sandbox in a separate process shares it with its copies",
    raises=SandboxCrashedError,
    strict=True,
)
def test_a_copy_outlives_a_crash_of_the_process_of_its_original() -> None:
    with Sandbox(isolation="process") as sandbox, sandbox.fork() as twin:
        pid = sandbox._attachment.backend.pid  # type: ignore[attr-defined]
        os.kill(pid, signal.SIGKILL)
        assert twin.commands.run("echo alive").stdout == "alive\n"


def test_without_a_store_a_snapshot_ends_with_its_sandbox_on_a_server() -> None:
    url, token = backends.server()
    with Sandbox.connect(url, token=token) as sandbox:
        snapshot = sandbox.snapshot()
    with pytest.raises(StateError, match="no store"):
        Sandbox.from_snapshot(snapshot)
