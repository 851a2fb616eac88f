"""The server of a host, without Ray."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.waiting import wait_until
from wasmsand import Sandbox
from wasmsand.fleet.server_process import ServerFailed, ServerProcess
from wasmsand.fleet.values import HostPlan

TOKEN = "a-token-of-this-test"
OPTIONS = ("--workers", "1", "--grace-seconds", "1")


def test_a_new_server_waits_until_the_old_one_has_let_the_store_go(tmp_path: Path) -> None:
    plan = HostPlan("host-0", TOKEN, str(tmp_path / "host-0"), OPTIONS)
    first = ServerProcess(plan, "127.0.0.1")
    with Sandbox.connect(first.url, token=TOKEN) as sandbox:
        sandbox.files.write("file", "kept")
        identity = sandbox.id
        sandbox.pause()
        sandbox.disconnect()
    second: list[ServerProcess] = []
    starting = threading.Thread(target=lambda: second.append(ServerProcess(plan, "127.0.0.1")))
    starting.start()
    starting.join(1.5)
    assert starting.is_alive()
    os.kill(first.pid, signal.SIGKILL)
    starting.join(120)
    assert second
    with Sandbox.connect(second[0].url, id=identity, token=TOKEN) as sandbox:
        assert sandbox.files.read_text("file") == "kept"
    second[0].stop()
    assert (first.wait(), second[0].wait()) == (-signal.SIGKILL, 0)
    first.close()
    second[0].close()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    plan = HostPlan("host-0", TOKEN, None, ("--workers", "none"))
    with pytest.raises(ServerFailed, match="--workers"):
        ServerProcess(plan, "127.0.0.1")


_STARTER = """
import sys, time
from wasmsand.fleet.server_process import ServerProcess
from wasmsand.fleet.values import HostPlan
server = ServerProcess(HostPlan("host-0", sys.argv[1], None, tuple(sys.argv[2:])), "127.0.0.1")
print(server.pid, flush=True)
time.sleep(600)
"""


def test_the_server_ends_with_the_process_that_started_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _STARTER, TOKEN, *OPTIONS], stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        os.kill(starter.pid, signal.SIGKILL)
    wait_until(lambda: _has_ended(pid))


def _has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits for its new parent to notice its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
