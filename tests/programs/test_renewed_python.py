"""Python from a memory image that the host renewed: another hash seed, otherwise the same."""

from __future__ import annotations

import gc
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import wait_until
from userland.builder.preinitialise import _ENVIRONMENT
from wasmsand import Sandbox
from wasmsand.engine import default_engine
from wasmsand.machine import image_programs, renewal
from wasmsand.machine.checkpoint import ENVIRONMENT
from wasmsand.machine.image_directory import ProgramFile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs unnamed files")

PLAIN = "/usr/libexec/python3-plain"
HASH = "python3 -c 'print(hash(\"text\"))'"
PATIENCE_SECONDS = 120


def run(sandbox: Sandbox, command: str) -> str:
    result = sandbox.commands.run(command)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def other_hash(sandbox: Sandbox, known: set[str]) -> str:
    """The hash of a start that is not among the known ones; one must come soon."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = run(sandbox, HASH)
        if found not in known:
            return found
        time.sleep(0.1)
    raise AssertionError("no start got another seed")


def image_mappings() -> int:
    return len(re.findall(r"/#\d+ \(deleted\)|memory-image", Path("/proc/self/maps").read_text()))


def require_no_mappings() -> None:
    """Wait, because a thread frees the memory of a process, and may end after the sandbox."""

    def are_gone() -> bool:
        gc.collect()
        return image_mappings() == 0

    wait_until(are_gone, "memory of an image is still mapped", PATIENCE_SECONDS)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every start cause the next preparation."""
    monkeypatch.delenv(renewal.VARIABLE)
    monkeypatch.setattr(renewal, "FIRST_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(renewal, "RENEWED_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(renewal, "RENEWED_AFTER_COSTS", 0.0)
    monkeypatch.setattr(renewal, "_memories", {})


def python() -> ProgramFile:
    return next(program for program in image_programs() if program.name == "python")


@pytest.fixture(scope="module")
def renewed() -> Iterator[None]:
    """Programs start from one preparation of this host."""
    engine, program = default_engine(), python()
    assert program.prepared is not None
    key = program.prepared.memory.sha256
    memories = renewal.prepared_memories(engine)
    image = renewal._prepare(engine, program)
    made = renewal.Renewal(memories.load(key), lambda: image, lambda job: job())
    made._newest, made._due = image, float("inf")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(renewal.VARIABLE)
        patch.setitem(memories._known, key, made)
        yield


@pytest.mark.usefixtures("at_once")
def test_the_host_gives_later_starts_other_seeds() -> None:
    with Sandbox() as sandbox:
        seen = {run(sandbox, HASH)}
        for _ in range(2):
            seen.add(other_hash(sandbox, seen))
    require_no_mappings()


@pytest.mark.usefixtures("renewed")
def test_the_image_of_the_host_is_used() -> None:
    with Sandbox() as one, Sandbox() as other:
        renewed = run(one, HASH)
        assert run(other, HASH) == renewed
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(renewal.VARIABLE, "off")
            assert run(one, HASH) != renewed


@pytest.mark.usefixtures("renewed")
def test_random_values_and_start_values_are_new_at_each_start() -> None:
    code = "import random, uuid; print(random.random(), uuid.uuid4())"
    with Sandbox() as sandbox:
        assert run(sandbox, f"python3 -c '{code}'") != run(sandbox, f"python3 -c '{code}'")
        sandbox.files.write(
            "show.py", "import os, sys; print(sys.argv, sys.executable, os.environ['A'], sys.path)"
        )
        shown = run(sandbox, "A=b python3 show.py x")
        assert shown.startswith("['show.py', 'x'] /usr/bin/python3 b ['/home/user', ")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(renewal.VARIABLE, "off")
            assert run(sandbox, "A=b python3 show.py x") == shown


@pytest.mark.usefixtures("renewed")
def test_threads_children_and_another_program_work() -> None:
    code = """
import os, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(lambda n: len({str(i) for i in range(n)}), range(100))))
print(subprocess.run([sys.executable, "-c", "print(hash('text'))"], capture_output=True,
                     text=True).stdout == f"{hash('text')}\\n")
sys.stdout.flush()
os.execv("/bin/echo", ["echo", "gone"])
"""
    with Sandbox() as sandbox:
        sandbox.files.write("all.py", code)
        assert run(sandbox, "python3 all.py") == "4950\nTrue\ngone\n"


@pytest.mark.usefixtures("renewed")
def test_memory_grows_and_is_gone_with_the_process() -> None:
    with Sandbox() as sandbox:
        code = "data = bytearray(60_000_000); print(data.count(0))"
        assert run(sandbox, f"python3 -c '{code}'") == "60000000\n"
        assert sandbox.commands.run("python3 -c 'while True: pass'", timeout_ms=300).timed_out
        with sandbox.python() as session:
            session.run("kept = {'a', 'b', 'c'}")
            assert session.run("sorted(kept)").value == ["a", "b", "c"]
            assert image_mappings() > 0
    require_no_mappings()


@pytest.mark.usefixtures("renewed")
def test_a_variable_still_asks_for_the_plain_interpreter() -> None:
    with Sandbox() as sandbox:
        fixed = f"PYTHONHASHSEED=7 {HASH}"
        assert run(sandbox, fixed) == run(sandbox, fixed)
        assert run(sandbox, fixed) != run(sandbox, HASH)


def test_the_plain_interpreter_is_the_same_module() -> None:
    program = python()
    assert program.names == (PLAIN,)
    assert program.prepared is not None
    assert program.prepared.names == ("/usr/libexec/python3",)


def test_hosts_prepare_as_the_builder_does() -> None:
    assert ENVIRONMENT == _ENVIRONMENT
