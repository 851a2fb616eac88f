"""The process from which the processes of isolated sandboxes are forked."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rpc.test_process_isolation import children_of
from tests.waiting import wait_until
from wasmsand import Sandbox, SandboxCrashedError, SandboxOptions
from wasmsand.rpc.backend import ProcessBackend, open_process_backend

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has pidfds")


@pytest.fixture
def pair() -> Iterator[tuple[ProcessBackend, ProcessBackend]]:
    first, second = open_process_backend(SandboxOptions()), open_process_backend(SandboxOptions())
    yield first, second
    first.close()
    second.close()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def targets(pid: int) -> set[str]:
    """What the pipes and sockets of a process are."""
    opened = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
    return {name for name in opened if name.startswith(("pipe:", "socket:"))}


def test_processes_of_sandboxes_have_one_parent(
    pair: tuple[ProcessBackend, ProcessBackend],
) -> None:
    parents = {parent_of(backend.pid) for backend in pair}
    assert parents <= set(children_of(os.getpid()))
    assert len(parents) == 1


def test_a_process_has_no_pipe_or_socket_of_another(
    pair: tuple[ProcessBackend, ProcessBackend],
) -> None:
    first, second = pair
    template = parent_of(second.pid)
    assert not targets(second.pid) & targets(first.pid)
    assert not targets(second.pid) & targets(template)


def test_a_process_is_a_session_of_its_own(pair: tuple[ProcessBackend, ProcessBackend]) -> None:
    for backend in pair:
        assert os.getsid(backend.pid) == backend.pid


def test_processes_do_not_share_random_numbers(
    pair: tuple[ProcessBackend, ProcessBackend],
) -> None:
    script = (
        "od -An -tx1 -N16 /dev/urandom; echo $RANDOM$RANDOM$RANDOM;"
        " python3 -c 'import random; print(random.random())'"
    )
    first, second = (
        Sandbox.from_backend(backend).commands.run(script).stdout.splitlines() for backend in pair
    )
    assert all(one != other for one, other in zip(first, second, strict=True))


def test_without_the_template_its_sandboxes_end_and_new_ones_start(
    pair: tuple[ProcessBackend, ProcessBackend],
) -> None:
    first, _ = pair
    template = parent_of(first.pid)
    os.kill(template, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{first.pid}").exists())
    with pytest.raises(SandboxCrashedError, match="signal 9"):
        Sandbox.from_backend(first).commands.run("true")
    for _ in range(3):
        with Sandbox(isolation="process") as sandbox:
            assert sandbox.commands.run("echo hi").stdout == "hi\n"
    backend = open_process_backend(SandboxOptions())
    assert parent_of(backend.pid) not in (template, os.getpid())
    backend.close()


def test_another_environment_gets_a_process_that_is_started(
    pair: tuple[ProcessBackend, ProcessBackend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "UTC-3")
    backend = open_process_backend(SandboxOptions())
    assert parent_of(backend.pid) == os.getpid()
    assert Sandbox.from_backend(backend).commands.run("echo hi").stdout == "hi\n"
    backend.close()


def test_the_template_goes_on_while_a_terminal_interrupts(
    pair: tuple[ProcessBackend, ProcessBackend],
) -> None:
    template = parent_of(pair[0].pid)
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(template, number)
    with Sandbox(isolation="process") as sandbox:
        assert sandbox.commands.run("echo hi").stdout == "hi\n"
    backend = open_process_backend(SandboxOptions())
    assert parent_of(backend.pid) == template
    backend.close()
