"""Python programs that exceed limits: each ends as natively, and the sandbox stays usable."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from wasmsand import CommandResult, Sandbox

pytestmark = pytest.mark.userland


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox in which Python must still work after the test."""
    with Sandbox() as sandbox:
        yield sandbox
        assert sandbox.commands.run("python3 -c 'print(6 * 7)'").stdout == "42\n"


def run(sandbox: Sandbox, code: str, timeout_ms: int = 60_000) -> CommandResult:
    return sandbox.commands.run(["python3", "-c", code], timeout_ms=timeout_ms)


def last_line(result: CommandResult) -> str:
    return result.stderr.splitlines()[-1]


def test_an_endless_loop_ends_by_the_timeout(sandbox: Sandbox) -> None:
    began = time.monotonic()
    result = run(sandbox, "while True: pass", timeout_ms=500)
    assert (result.exit_code, result.stderr) == (124, "command timed out\n")
    assert time.monotonic() - began < 20


def test_a_list_that_does_not_fit_is_a_memory_error(sandbox: Sandbox) -> None:
    for code in ("[0] * 10**10", "bytearray(3 * 10**9)", "'x' * 2**31", "list(range(10**9))"):
        result = run(sandbox, code)
        assert result.exit_code == 1
        assert last_line(result).split(":")[0] in ("MemoryError", "OverflowError")


def test_memory_that_grows_for_ever_ends_with_a_memory_error() -> None:
    code = (
        "x = []\ntry:\n while True: x.append(bytes(10**6))\n"
        "except MemoryError:\n n = len(x); del x; print(50 < n < 134)"  # 128 MiB are 134.2 MB
    )
    with Sandbox(memory_limit_bytes=128 * 1024 * 1024) as sandbox:
        assert run(sandbox, code).stdout == "True\n"
        assert run(sandbox, "print(1)").stdout == "1\n"


@pytest.mark.parametrize(
    "code",
    [
        "def f(): f()\nf()",
        "x = []\nfor _ in range(10**5): x = [x]\nrepr(x)",
        "import json; json.loads('[' * 10**5)",
        "import sys; sys.setrecursionlimit(10**6)\n"
        "class A:\n def __getattr__(self, n): return getattr(self, n)\nA().x",
        "import sys; sys.setrecursionlimit(10**6)\ndef f(x): return list(map(f, [x]))\nf(1)",
        "import threading\ndef f(): f()\n"
        "def g():\n try: f()\n except RecursionError as e: raise SystemExit(str(e))\n"
        "t = threading.Thread(target=g); t.start(); t.join(); f()",
    ],
)
def test_deep_recursion_is_a_recursion_error(sandbox: Sandbox, code: str) -> None:
    result = run(sandbox, code)
    assert result.exit_code == 1
    assert last_line(result).startswith("RecursionError: ")


def test_objects_that_hold_each_other_a_million_deep_can_be_freed(sandbox: Sandbox) -> None:
    assert run(sandbox, "x = []\nfor _ in range(10**6): x = [x]\ndel x").exit_code == 0


@pytest.mark.parametrize(
    ("code", "exit_code", "stderr"),
    [
        ("import os; print('lost', end=''); os._exit(3)", 3, ""),
        ("import sys; sys.exit(4)", 4, ""),
        ("import sys; sys.exit('why')", 1, "why\n"),
        ("raise SystemExit", 0, ""),
        ("import os; os.kill(os.getpid(), 9)", 137, ""),
        ("import os; os.abort()", 134, ""),
        ("1 / 0", 1, None),
    ],
)
def test_a_python_program_ends_with_its_exit_code(
    sandbox: Sandbox, code: str, exit_code: int, stderr: str | None
) -> None:
    result = run(sandbox, code)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    if stderr is None:
        assert last_line(result) == "ZeroDivisionError: division by zero"
    else:
        assert result.stderr == stderr


def test_a_writer_that_is_killed_leaves_what_it_had_written(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        'python3 -c \'while True: open("f", "ab", 0).write(b"x" * 1000)\' & sleep 1; kill -9 $!;'
        " wait $!; echo $?"
    )
    assert result.stdout == "137\n"
    size = sandbox.files.stat("f").size
    assert size > 0
    assert size % 1000 == 0


def test_threads_are_limited_by_max_processes() -> None:
    code = (
        "import threading, time\n"
        "try:\n"
        " for i in range(500):\n"
        "  threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
        "except RuntimeError as e: print(i < 40, e)"
    )
    with Sandbox(max_processes=40) as sandbox:
        assert run(sandbox, code).stdout == "True can't start new thread\n"
        assert run(sandbox, "print(1)").stdout == "1\n"


def test_output_past_the_limit_ends_the_program() -> None:
    with Sandbox(max_output_bytes=100_000) as sandbox:
        result = run(sandbox, "while True: print('x' * 1000)")
        assert result.exit_code != 0
        assert run(sandbox, "print(1)").stdout == "1\n"


def test_a_full_disk_is_an_error_of_the_program(sandbox: Sandbox) -> None:
    result = run(sandbox, "open('f', 'wb').write(bytes(300 * 2**20))")
    assert last_line(result) == "OSError: [Errno 28] No space left on device"
    sandbox.commands.run("rm f")


def test_programs_that_start_together_each_get_the_memory_that_there_is(
    sandbox: Sandbox,
) -> None:
    """Eight programs of 60 MiB fit in the limit of 1 GiB, whenever each takes its memory."""
    take = "x = bytearray(60 << 20); import time; time.sleep(0.2)"
    for _ in range(3):
        result = sandbox.commands.run(
            f"for i in 1 2 3 4 5 6 7 8; do python3 -c '{take}' & done; wait"
        )
        assert (result.exit_code, result.stderr) == (0, "")


def test_a_program_gets_the_memory_of_one_that_has_just_ended(sandbox: Sandbox) -> None:
    take = "python3 -c 'bytearray(800 << 20)'"
    result = sandbox.commands.run(f"{take} && {take} && {take} && echo all")
    assert (result.stdout, result.stderr) == ("all\n", "")
