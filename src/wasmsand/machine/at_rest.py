"""What a sandbox is at rest, as one value.

Owns `MachineState` and how a machine produces one. Rules: a state is immutable. It shares file
content with its machine (copy-on-write) but depends on nothing else of that machine, so any number
of machines can be created from it. Taking a state holds the sandbox's lock for a bounded time,
whatever the sandbox contains. Guests may run meanwhile: the tree is that of one moment between two
system calls. Programs do not survive: a machine created from a state runs none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.flags import S_IFCHR
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.table import INIT_PID
from wasmsand.kernel.vfs import ROOT, FrozenTree, Namespace
from wasmsand.machine.host_access import find

if TYPE_CHECKING:
    from wasmsand.machine.host_access import HostedMachine
    from wasmsand.machine.machine import Machine, MachineOptions
    from wasmsand.machine.mounts.table import MountState
    from wasmsand.machine.network.inspecting.authority import Authority
    from wasmsand.machine.sessions import CapturedSession

_TERMINALS: Final = b"/dev/pts"


@dataclass(frozen=True, slots=True)
class SessionState:
    """A program that the host started (a shell or an interpreter) and that was still running:
    everything needed to start it again."""

    pid: int
    argv: tuple[bytes, ...]
    environ: tuple[bytes, ...]
    """The environment that it started with."""
    cwd: bytes | None
    """Its working directory; None if that directory was removed."""


@dataclass(frozen=True, slots=True)
class MachineState:
    """A sandbox at one moment."""

    options: MachineOptions
    tree: FrozenTree
    """Its files: layers over the image. The layers also record which inodes were removed."""
    variables: Mapping[str, str]
    """Environment variables for commands."""
    cwd: str
    """The working directory for commands."""
    sessions: tuple[SessionState, ...] = ()
    mounts: tuple[MountState, ...] = ()
    """What is mounted: the host's directories by their paths, and the changes of overlays."""
    authority: Authority | None = field(default=None, repr=False, compare=False)
    """The certificate authority that its programs trust. It is not saved."""


def state_of(machine: Machine, captured: Sequence[CapturedSession] = ()) -> MachineState:
    """The state of a machine now. Files without a name that `captured` programs have open are part
    of it: a machine that is created from it must adopt these programs."""
    held = frozenset[int]().union(*(session.process.held_inodes for session in captured))
    with machine.lock:
        tree = replace(machine.kernel.root.freeze(), held=held)
        sessions = _sessions(machine)
        variables = dict(machine.variables)
        mounts = machine.mounts.states()
    # The network's policy may have changed since the machine was made.
    options = replace(machine.options, network=machine.bridge.policy)
    return MachineState(
        options,
        _shortened(machine, tree),
        variables,
        machine.cwd,
        sessions,
        mounts,
        machine.bridge.authority,
    )


def frozen_tree(machine: HostedMachine) -> FrozenTree:
    """The files of a machine now."""
    with machine.lock:
        tree = machine.kernel.root.freeze()
    return _shortened(machine, tree)


def _shortened(machine: HostedMachine, tree: FrozenTree) -> FrozenTree:
    """The same tree with fewer layers. Merging needs no lock, because frozen layers never
    change."""
    if not tree.is_long:
        return tree
    merged = tree.merged()
    with machine.lock:
        machine.kernel.root.stand_on(merged, instead_of=tree)
    return merged


def _sessions(machine: Machine) -> tuple[SessionState, ...]:
    """Needs the lock. The loop is bounded by `max_processes`."""
    namespace = machine.kernel.namespace
    return tuple(
        SessionState(process.pid, process.argv, process.environ, _directory(namespace, process))
        for process in machine.kernel.processes
        if process.pid == process.job != INIT_PID and not process.dead
    )


def _directory(namespace: Namespace, process: Process) -> bytes | None:
    try:
        return namespace.path_of(process.cwd)
    except KernelError:
        return None


def forget_terminals(machine: Machine) -> None:
    """Remove device files of terminals that were open when the tree was frozen."""
    with machine.lock:
        namespace = machine.kernel.namespace
        directory = find(namespace, namespace.root, _TERMINALS)
        if directory is None:
            return  # a test image without /dev/pts
        for entry in namespace.readdir(directory):
            if entry.type == S_IFCHR:
                namespace.unlink(ROOT, directory, entry.name)
