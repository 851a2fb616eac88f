"""The state of a sandbox at rest: taken while guests run, and used to start other sandboxes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.limits.lock_holds import MeasuredLock
from tests.machine.guests import new_machine
from tests.waiting import PATIENCE
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import MIB, Limits
from wasmsand.kernel.vfs import FileInode
from wasmsand.kernel.vfs.layers import LAYERS_MAX
from wasmsand.machine import CommandRequest, Machine, MachineState, Output

pytestmark = pytest.mark.no_userland
HOLD_MS = 2


@pytest.fixture
def limits() -> Limits:
    return Limits(fs_limit_bytes=64 * MIB, max_inodes=50_000)


@pytest.fixture
def machine(engine: WasmtimeEngine, limits: Limits) -> Iterator[Machine]:
    made = new_machine(engine, limits)
    yield made
    made.close()


def twin_of(machine: Machine, state: MachineState) -> Machine:
    return Machine.from_state(state, engine=machine.engine)


def test_a_twin_has_the_same_files_and_neither_sees_what_the_other_does(machine: Machine) -> None:
    machine.files.write("/tmp/kept", b"kept")
    machine.files.write("/tmp/changed", b"before")
    machine.files.write("/tmp/gone", b"x")
    state = machine.state()
    machine.files.write("/tmp/changed", b"by the first")
    machine.files.remove("/tmp/gone")
    twin = twin_of(machine, state)
    assert twin.files.read("/tmp/changed") == b"before"
    twin.files.append("/tmp/kept", b" and more")
    twin.files.write("/tmp/new", b"x")
    assert machine.files.read("/tmp/kept") == b"kept"
    assert [entry.name for entry in machine.files.list("/tmp")] == ["changed", "kept"]
    third = twin_of(machine, state)
    names = [entry.name for entry in third.files.list("/tmp")]
    assert names == ["changed", "gone", "kept"]
    assert twin.run(CommandRequest(("ok",), {}, "/tmp")).stdout == b"ok"


def test_options_variables_and_directory_are_part_of_the_state(
    engine: WasmtimeEngine, machine: Machine, limits: Limits
) -> None:
    machine.variables["NAME"] = "value"
    machine.cwd = "/tmp"
    state = machine.state()
    machine.variables["NAME"] = "another"
    twin = Machine.from_state(state, engine=engine)
    assert (twin.variables, twin.cwd) == ({"NAME": "value"}, "/tmp")
    assert twin.options == machine.options
    twin.variables["NAME"] = "a third"
    assert state.variables == {"NAME": "value"}
    with pytest.raises(KernelError, match="ENOSPC"):
        twin.files.write("/tmp/large", bytes(limits.fs_limit_bytes + 1))


def test_space_is_charged_in_the_twin_as_it_was(machine: Machine) -> None:
    machine.files.write("/tmp/f", bytes(5 * MIB))
    twin = twin_of(machine, machine.state())
    assert twin.kernel.root.space.used_bytes == machine.kernel.root.space.used_bytes
    twin.files.remove("/tmp/f")
    assert twin.kernel.root.space.used_bytes == 0
    assert len(machine.files.read("/tmp/f")) == 5 * MIB


def test_a_state_is_taken_while_programs_run_and_names_them(machine: Machine) -> None:
    process = machine.start(CommandRequest(("echo",), {"A": "1"}, "/tmp", stdin=None))
    process.write(b"hello")
    assert process.read(PATIENCE) == (Output(1, b"hello"),)
    machine.run(CommandRequest(("background",), {}, "/tmp"))  # what it left is not a session
    state = machine.state()
    (session,) = state.sessions
    assert session.pid == process.pid
    assert (session.argv, session.environ, session.cwd) == ((b"echo",), (b"A=1",), b"/tmp")
    twin = twin_of(machine, state)
    assert len(twin.kernel.processes) == 1
    process.write(b" again")
    assert process.read(PATIENCE) == (Output(1, b" again"),)


def test_a_session_in_a_directory_that_was_removed_has_none(machine: Machine) -> None:
    machine.files.mkdir("/tmp/d")
    process = machine.start(CommandRequest(("sleep",), {}, "/tmp/d", stdin=None))
    machine.files.remove("/tmp/d")
    assert [session.cwd for session in machine.state().sessions] == [None]
    process.kill()


def test_a_file_that_was_removed_but_open_costs_the_twin_nothing(machine: Machine) -> None:
    machine.files.mkdir("/tmp/d")
    process = machine.start(CommandRequest(("sleep",), {}, "/tmp/d", stdin=None))
    machine.files.remove("/tmp/d")
    assert machine.kernel.root.space.used_inodes == 1
    assert twin_of(machine, machine.state()).kernel.root.space.used_inodes == 0
    process.kill()


def test_a_terminal_of_the_first_does_not_keep_the_twin_from_its_own(machine: Machine) -> None:
    terminal = machine.open_terminal(CommandRequest(("echo",), {}, "/tmp"))
    twin = twin_of(machine, machine.state())
    assert twin.files.list("/dev/pts") == []
    own = twin.open_terminal(CommandRequest(("echo",), {}, "/tmp"))
    own.write(b"typed\n")
    assert own.read().startswith(b"typed")
    own.close()
    terminal.close()
    twin.close()


def test_many_states_keep_the_chain_of_layers_short(machine: Machine) -> None:
    for number in range(3 * LAYERS_MAX):
        machine.files.write("/tmp/count", b"%d" % number)
        state = machine.state()
        assert len(state.tree.layers) <= LAYERS_MAX
        assert len(machine.kernel.root.freeze().layers) <= LAYERS_MAX
    assert twin_of(machine, state).files.read("/tmp/count") == b"%d" % number


@pytest.mark.needs_sources
def test_content_is_shared_and_the_lock_is_held_for_a_moment_only(machine: Machine) -> None:
    machine.files.write("/tmp/large", bytes(32 * MIB))
    for number in range(LAYERS_MAX):
        for entry in range(1000):
            machine.files.write(f"/tmp/{number}/{entry}", b"x")
        machine.kernel.root.freeze()
    lock = machine.lock = MeasuredLock()
    used = machine.kernel.root.space.used_bytes
    state = machine.state()  # merges layers of thousands of files
    assert lock.longest < HOLD_MS * 1_000_000
    assert len(state.tree.layers) == 2
    first, second = (twin_of(machine, state) for _ in range(2))
    assert first.kernel.root.space.used_bytes == used
    ino = next(i for i, inode in state.tree.layers[0].items() if inode.name == b"large")
    inodes = [made.kernel.root.attributes(ino) for made in (machine, first, second)]
    assert len({id(inode.content) for inode in inodes if isinstance(inode, FileInode)}) == 1
