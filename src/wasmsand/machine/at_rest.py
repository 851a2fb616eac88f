"""What a sandbox is at rest, as one value.

Owns `MachineState`, and how a machine gives one. Rules: a state is immutable, shares the content
of files with the machine that gave it (copy on write) and depends on nothing of that machine, so
any number of machines can be made from it; giving one holds the sandbox's lock for a bounded
time, whatever the sandbox contains. Guests may run meanwhile: the tree is as it was at one moment
between two system calls. Programs do not survive: a machine that takes a state runs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.flags import S_IFCHR
from wasmsand.kernel.process.process import Process
from wasmsand.kernel.process.table import INIT_PID
from wasmsand.kernel.vfs import ROOT, FrozenTree, Namespace
from wasmsand.machine.host_access import find

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine, MachineOptions

_TERMINALS: Final = b"/dev/pts"


@dataclass(frozen=True, slots=True)
class SessionState:
    """A program that the host had started, as a shell or an interpreter, and that still ran: what
    it takes to start it anew."""

    pid: int
    argv: tuple[bytes, ...]
    environ: tuple[bytes, ...]
    """What it started with."""
    cwd: bytes | None
    """Where it was; None if that directory had been removed."""


@dataclass(frozen=True, slots=True)
class MachineState:
    """A sandbox at one moment."""

    options: MachineOptions
    tree: FrozenTree
    """Its files: layers over the image, in which removed and changed inodes stand too."""
    variables: Mapping[str, str]
    """Environment variables that commands get."""
    cwd: str
    """Where commands start."""
    sessions: tuple[SessionState, ...] = ()


def state_of(machine: Machine) -> MachineState:
    """The state of a machine now."""
    with machine.lock:
        tree = machine.kernel.root.freeze()
        sessions = _sessions(machine)
        variables = dict(machine.variables)
    return MachineState(
        machine.options, _shortened(machine, tree), variables, machine.cwd, sessions
    )


def frozen_tree(machine: Machine) -> FrozenTree:
    """The files of a machine now."""
    with machine.lock:
        tree = machine.kernel.root.freeze()
    return _shortened(machine, tree)


def _shortened(machine: Machine, tree: FrozenTree) -> FrozenTree:
    """The same tree with few layers. They are merged while guests run: frozen layers never
    change."""
    if not tree.is_long:
        return tree
    merged = tree.merged()
    with machine.lock:
        machine.kernel.root.stand_on(merged, instead_of=tree)
    return merged


def _sessions(machine: Machine) -> tuple[SessionState, ...]:
    """Needs the lock; there are at most `max_processes`."""
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
    """Remove the device files of terminals that the machine which gave its tree had open."""
    with machine.lock:
        namespace = machine.kernel.namespace
        directory = find(namespace, namespace.root, _TERMINALS)
        if directory is None:
            return  # an image of a test
        for entry in namespace.readdir(directory):
            if entry.type == S_IFCHR:
                namespace.unlink(ROOT, directory, entry.name)
