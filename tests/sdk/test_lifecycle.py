"""The life of a sandbox, from `Sandbox()` to `kill()`."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from tests.sdk.backends import MakeSandbox
from tests.waiting import eventually, wait_until
from wasmsand import Sandbox, SandboxClosedError
from wasmsand.sdk.local import LocalBackend


def test_a_new_sandbox_runs_a_command(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox()
    try:
        assert sandbox.commands.run("echo hello").stdout == "hello\n"
    finally:
        sandbox.kill()


def test_kill_is_idempotent(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox()
    sandbox.kill()
    sandbox.kill()


def test_with_gives_the_sandbox_and_kills_it_at_the_end(make_sandbox: MakeSandbox) -> None:
    with make_sandbox() as sandbox:
        sandbox.files.write("a", "x")
    with pytest.raises(SandboxClosedError):
        sandbox.files.read("a")


def test_with_kills_the_sandbox_and_passes_the_exception_on(make_sandbox: MakeSandbox) -> None:
    with pytest.raises(ZeroDivisionError), make_sandbox() as sandbox:
        raise ZeroDivisionError
    assert repr(sandbox) == "<Sandbox killed>"


def test_a_killed_sandbox_cannot_be_entered_again(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox()
    sandbox.kill()
    with pytest.raises(SandboxClosedError), sandbox:
        pass


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.commands.start("true"),
        lambda s: s.commands.list(),
        lambda s: s.shell(),
        lambda s: s.usage(),
        lambda s: s.files.read_text("a"),
        lambda s: s.files.read_stream("a"),
        lambda s: s.files.append("a", "b"),
        lambda s: s.files.rename("a", "b"),
        lambda s: s.files.copy("a", "b"),
        lambda s: s.files.symlink("a", "b"),
        lambda s: s.files.readlink("a"),
        lambda s: s.files.chmod("a", 0o644),
        lambda s: s.files.upload("/etc/passwd", "b"),
        lambda s: s.files.download("a", "/nowhere/b"),
        lambda s: s.files.export_tar("a"),
        lambda s: s.files.import_tar(b"", "b"),
        lambda s: s.files.watch("a"),
        lambda s: s.commands.run("true"),
        lambda s: s.files.read("/etc/passwd"),
        lambda s: s.files.write("a", "b"),
        lambda s: s.files.list("/"),
        lambda s: s.files.mkdir("d"),
        lambda s: s.files.rm("a"),
        lambda s: s.files.stat("/"),
        lambda s: s.files.exists("/"),
        lambda s: s.env.set("A", "b"),
        lambda s: s.env.get("A"),
        lambda s: s.env.unset("A"),
        lambda s: s.env.all(),
    ],
)
def test_every_use_after_kill_is_a_closed_error(
    make_sandbox: MakeSandbox, use: Callable[[Sandbox], object]
) -> None:
    sandbox = make_sandbox()
    sandbox.kill()
    with pytest.raises(SandboxClosedError, match="was killed; create a new Sandbox"):
        use(sandbox)


def test_repr_shows_the_state_and_no_values_of_variables(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(timeout_ms=5, env={"TOKEN": "secret"}) as sandbox:
        assert repr(sandbox) == "<Sandbox cwd='/home/user' timeout_ms=5>"
        assert repr(sandbox.env) == "<Environment ['TOKEN']>"


def test_kill_from_another_thread_ends_a_running_command(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox()
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(sandbox.commands.run("sleep 30"))
        except SandboxClosedError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    sandbox.kill()
    thread.join(timeout=5)
    assert not thread.is_alive()
    assert isinstance(outcome[0], SandboxClosedError)


def test_sandboxes_do_not_see_each_other(make_sandbox: MakeSandbox) -> None:
    with make_sandbox() as one, make_sandbox() as two:
        one.files.write("/tmp/mine", "x")
        one.env.set("MINE", "x")
        assert not two.files.exists("/tmp/mine")
        assert two.commands.run('echo "[$MINE]"; ls /tmp').stdout == "[]\n"


def test_a_change_to_a_shared_system_file_stays_in_its_sandbox(make_sandbox: MakeSandbox) -> None:
    with make_sandbox() as one, make_sandbox() as two:
        before = two.files.read("/etc/passwd")
        one.files.write("/etc/passwd", "changed")
        assert two.files.read("/etc/passwd") == before


def test_cwd_is_made_when_missing_and_is_where_commands_start(make_sandbox: MakeSandbox) -> None:
    with make_sandbox(cwd="/srv/work/deep") as sandbox:
        assert sandbox.commands.run("pwd; echo $PWD").stdout == "/srv/work/deep\n" * 2
        sandbox.files.write("a", "x")
        assert sandbox.files.read("/srv/work/deep/a") == b"x"


def test_several_threads_share_one_sandbox(make_sandbox: MakeSandbox) -> None:
    with make_sandbox() as sandbox:

        def work(number: int) -> str:
            sandbox.files.write(f"in{number}", str(number))
            return sandbox.commands.run(f"cat in{number}").stdout

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == [str(number) for number in range(8)]


def gone(reference: Callable[[], object | None]) -> bool:
    def is_collected() -> bool:
        gc.collect()
        return reference() is None

    return eventually(is_collected, 10)


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s.commands.run("sleep 60 &"),
        lambda s: s.commands.start("sleep 60"),
        lambda s: s.commands.start("yes", timeout_ms=50_000),
        lambda s: next(iter(s.commands.start("yes"))),
        lambda s: s.shell().run("sleep 60 &"),
        lambda s: next(s.files.export_tar("/usr/bin")),
    ],
)
def test_a_sandbox_that_nobody_holds_is_ended(use: Callable[[Sandbox], object]) -> None:
    """In this process: its machine, threads and memory go."""
    sandbox = Sandbox()
    machine = cast("LocalBackend", sandbox._attachment.backend)._machine
    kernel, reference = machine.kernel, weakref.ref(machine)
    use(sandbox)
    del sandbox, machine
    assert gone(reference)
    wait_until(lambda: len(kernel.processes) == 1, "more than init is left")


def test_a_handle_keeps_its_sandbox_alive() -> None:
    command = Sandbox().commands.start("sleep 0.3; echo done")
    gc.collect()
    assert command.wait().stdout == "done\n"
    files = Sandbox().files
    gc.collect()
    assert files.exists("/etc/passwd")
