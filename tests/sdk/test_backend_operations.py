"""Terminals, disk images and state at rest: operations of `Backend` that some backends lack."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.sdk.backends import server
from tests.waiting import PATIENCE, wait_until
from wasmsand import DiskImageError, Sandbox, SandboxOptions, UnsupportedError
from wasmsand.kernel.clock import ManualClock
from wasmsand.sdk.backend import Backend, CommandRequest
from wasmsand.sdk.errors import CommandError
from wasmsand.sdk.local import LocalBackend
from wasmsand.sdk.opening import connect_backend, open_backend


@pytest.fixture
def backend() -> Iterator[Backend]:
    made = open_backend(SandboxOptions())
    yield made
    made.close()


def bash(script: str, **environ: str) -> CommandRequest:
    return CommandRequest(("/bin/bash", "--norc", "-c", script), environ, "/tmp")


def test_a_command_on_a_terminal_sees_one_of_its_size(backend: Backend) -> None:
    terminal = backend.open_terminal(bash('tty; stty size; echo "$NAME"', NAME="you"), 30, 100)
    shown = b""
    while piece := terminal.read():
        shown += piece
    assert shown == b"/dev/pts/0\r\n30 100\r\nyou\r\n"
    assert terminal.wait() == 0


def test_keys_typed_at_a_terminal_are_input_and_signals(backend: Backend) -> None:
    terminal = backend.open_terminal(bash("read x; echo got $x; cat"), 24, 80)
    terminal.write(b"word\r")
    shown = b""
    while not shown.endswith(b"got word\r\n"):
        shown += terminal.read()
    assert terminal.wait(0) is None
    terminal.write(b"\x03")
    assert terminal.wait(PATIENCE) == 130


def test_a_missing_program_gets_no_terminal(backend: Backend) -> None:
    with pytest.raises(CommandError, match="ENOENT"):
        backend.open_terminal(CommandRequest(("nothing",), {}, "/tmp"), 24, 80)


def test_a_disk_image_is_saved_and_loaded(backend: Backend) -> None:
    backend.write_file("/home/user/kept", b"content", mode=0o600)
    image, image_after_close = io.BytesIO(), io.BytesIO()
    backend.save_disk(image)
    backend.close()
    backend.save_disk(image_after_close)
    assert image_after_close.getvalue() == image.getvalue()
    image.seek(0)
    other = open_backend(SandboxOptions())
    other.load_disk(image)
    assert other.read_file("/home/user/kept") == b"content"
    assert other.stat("/home/user/kept").mode == 0o600
    with pytest.raises(DiskImageError, match="not a disk image"):
        other.load_disk(io.BytesIO(b"something else" * 100))
    other.close()


def _of_a_process() -> Backend:
    return open_backend(SandboxOptions(env={"A": "1"}, cwd="/tmp"), "process")


def _of_a_server() -> Backend:
    url, token = server()
    return connect_backend(url, token, SandboxOptions(env={"A": "1"}, cwd="/tmp"))


@pytest.mark.parametrize(
    ("make", "where"),
    [(_of_a_process, 'isolation="process"'), (_of_a_server, "Sandbox.connect")],
    ids=["process", "http"],
)
def test_a_backend_that_lacks_an_operation_says_what_to_use(
    make: Callable[[], Backend], where: str
) -> None:
    backend = make()
    operations: dict[str, Callable[[], object]] = {
        "disk images": lambda: backend.save_disk(io.BytesIO()),
    }
    for what, act in operations.items():
        with pytest.raises(UnsupportedError) as raised:
            act()
        assert str(raised.value) == f'{where} does not offer {what}; use isolation="none"'
    with pytest.raises(UnsupportedError):
        backend.load_disk(io.BytesIO())
    assert (backend.variables, backend.cwd) == ({"A": "1"}, "/tmp")
    backend.close()


def test_a_sandbox_starts_from_the_state_of_another() -> None:
    options = SandboxOptions(env={"A": "1", "B": "2"}, cwd="/home/user/work")
    backend = LocalBackend(options)
    with Sandbox.from_backend(backend, options) as first:
        first.env.set("C", "3")
        first.env.unset("B")
        first.files.write("notes", "kept\n")
        shell = first.shell()
        state = backend.state()
        (session,) = state.sessions
        assert (session.argv[0], session.cwd) == (b"/bin/bash", b"/home/user/work")
        with Sandbox.from_backend(LocalBackend(options, state), options) as twin:
            shown = twin.commands.run("cat notes; echo $A-$B-$C; pwd; echo changed > notes").stdout
            assert shown == "kept\n1--3\n/home/user/work\n"
            twin.env.set("A", "twin")
        assert shell.run("cat notes; echo $A").stdout == "kept\n1\n"


class _FastClock(ManualClock):
    """A clock that moves a hundred seconds every 10 ms, inside a `with` block."""

    def __enter__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.01):
            self.advance(100)


def _pass_an_hour(sandbox: Sandbox, clock: ManualClock) -> None:
    """Move the clock once the program `sleep` runs, which is after its command has started."""
    wait_until(lambda: any(p.argv[0] == "sleep" for p in sandbox.commands.list()))
    time.sleep(0.05)
    clock.advance(3600)


@pytest.mark.needs_sources
def test_timeouts_of_commands_and_sessions_pass_by_the_clock_of_the_sandbox() -> None:
    clock = _FastClock()
    options = SandboxOptions(timeout_ms=3_600_000)
    with Sandbox.from_backend(LocalBackend(options, clock=clock), options) as sandbox:
        shell = sandbox.shell()
        for run in (sandbox.commands.run, shell.run):
            with clock:
                slept = run("sleep 1000; echo awake", timeout_ms=10**10)
            assert (slept.stdout, slept.exit_code) == ("awake\n", 0)
            assert slept.execution_time_ms >= 1_000_000
            hour = threading.Thread(target=_pass_an_hour, args=(sandbox, clock), daemon=True)
            hour.start()
            late = run("echo begun; sleep 100000")
            hour.join()
            assert (late.stdout, late.exit_code) == ("begun\n", 124)
            assert late.execution_time_ms == 3_600_000
        assert shell.run("echo usable").stdout == "usable\n"
