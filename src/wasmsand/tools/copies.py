"""Tools that copy the sandbox: snapshots to go back to, and copies to try several ways at once.

Owns `Machines`, the sandbox of a model with its copies and snapshots, and the tools
`sandbox_snapshot`, `sandbox_restore` and `sandbox_fork`. Rules: a model names snapshots and copies
itself; a name that it uses again replaces the old one. Both are bounded. If copies are offered,
every other tool has a parameter `copy`, the copy that it works in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from wasmsand.sdk.errors import StateError
from wasmsand.sdk.sandbox import Sandbox
from wasmsand.sdk.state import Running, Snapshot, checked_name
from wasmsand.tools.background import BackgroundCommands
from wasmsand.tools.definitions import ToolDefinition
from wasmsand.tools.live_sessions import Identities, LiveSessions
from wasmsand.tools.output import SavedOutputs
from wasmsand.tools.parameters import InvalidToolInput, Parameter

SNAPSHOTS_MAX: Final = 16
_LEAVE_OUT = Parameter(
    "leave_out_running",
    "boolean",
    "Leave out commands that are still running, instead of failing because of them.",
    default=False,
)
_COPY = Parameter(
    "copy",
    "string",
    "Name of the copy of the sandbox to work in, from sandbox_fork; the sandbox itself by default.",
    may_be_empty=False,
)
_NAME_TEXT = "1 to 255 characters without '/'."

SNAPSHOT = ToolDefinition(
    name="sandbox_snapshot",
    title="Take a snapshot",
    description=(
        "Remember the sandbox as it is now, with all files, the shell and the Python variables, to "
        "go back to it later with sandbox_restore. Use it before a risky change. Takes almost no "
        "time and space. Returns the names of all snapshots."
    ),
    parameters=(
        Parameter(
            "name",
            "string",
            f"Name of the snapshot, such as before-upgrade: {_NAME_TEXT} A snapshot with the same "
            "name is replaced.",
            required=True,
            may_be_empty=False,
        ),
        _LEAVE_OUT,
        _COPY,
    ),
)

RESTORE = ToolDefinition(
    name="sandbox_restore",
    title="Go back to a snapshot",
    description=(
        "Make the sandbox what it was when a snapshot was taken, or what a copy is now: all files, "
        "the shell and the Python variables are replaced, and running commands end. A copy that is "
        "restored into the sandbox ends. Snapshots stay. Returns the names of all snapshots and "
        "copies."
    ),
    parameters=(
        Parameter(
            "snapshot",
            "string",
            "Name of a snapshot of sandbox_snapshot, or of a copy of sandbox_fork.",
            required=True,
            may_be_empty=False,
        ),
        _COPY,
    ),
)

FORK = ToolDefinition(
    name="sandbox_fork",
    title="Copy the sandbox",
    description=(
        "Make an independent copy of the whole sandbox, to try something without changing the "
        "sandbox, or to try several ways at the same time. Other tools work in the copy if they "
        "get its name as copy. When a copy is what you want, give its name to sandbox_restore. "
        "Returns the names of all copies."
    ),
    parameters=(
        Parameter(
            "name",
            "string",
            f"Name of the copy, such as try-1: {_NAME_TEXT} A copy with the same name is replaced.",
            required=True,
            may_be_empty=False,
        ),
        _LEAVE_OUT,
        replace(_COPY, description="Name of a copy to copy instead of the sandbox itself."),
    ),
)

COPY_TOOLS: Final = (SNAPSHOT, RESTORE, FORK)


def with_copies(tool: ToolDefinition) -> ToolDefinition:
    """The same tool with the parameter `copy`."""
    return replace(tool, parameters=(*tool.parameters, _COPY))


@dataclass(frozen=True, slots=True)
class Machine:
    """A sandbox that tools work in."""

    sandbox: Sandbox
    outputs: SavedOutputs
    live: LiveSessions
    background: BackgroundCommands

    @classmethod
    def of(cls, sandbox: Sandbox, origin: Machine | None = None) -> Machine:
        """A sandbox, and what its tools keep. `origin` is what it is a copy of."""
        live = LiveSessions(sandbox)
        if origin is not None:
            live.adopt(origin.live.identities())
        return cls(sandbox, SavedOutputs(sandbox), live, BackgroundCommands(sandbox))


@dataclass(frozen=True, slots=True)
class _Kept:
    """A snapshot, and which of its sessions are those of the tools."""

    snapshot: Snapshot
    identities: Identities


def _restore(target: Machine, kept: _Kept) -> None:
    target.sandbox.restore(kept.snapshot)
    target.live.adopt(kept.identities)


class Machines:
    """A sandbox with its copies and snapshots. Used from any thread."""

    def __init__(self, sandbox: Sandbox, max_copies: int) -> None:
        self.main = Machine.of(sandbox)
        self._max_copies = max_copies
        self._lock = threading.RLock()
        """Held while a copy is made, so that the bounds hold."""
        self._copies: dict[str, Machine] = {}
        self._snapshots: dict[str, _Kept] = {}
        self._ended = False

    def find(self, name: str | None) -> Machine:
        """The copy with this name; the sandbox if it is None. Raises `InvalidToolInput`."""
        if name is None:
            return self.main
        with self._lock:
            found = self._copies.get(name)
        if found is None:
            known = ", ".join(self._copies) or "none"
            raise InvalidToolInput(f"there is no copy {name!r:.80}; copies: {known}")
        return found

    def snapshot(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """`sandbox_snapshot`."""
        name = given["name"]
        with self._lock:
            if name not in self._snapshots and len(self._snapshots) >= SNAPSHOTS_MAX:
                raise InvalidToolInput(
                    f"there are {SNAPSHOTS_MAX} snapshots already; use one of their names again: "
                    f"{', '.join(self._snapshots)}"
                )
            machine = self.find(given["copy"])
            with _advice(given):
                made = machine.sandbox.snapshot(name, running=_running(given))
            machine.sandbox.snapshots.delete(made)  # kept here
            self._snapshots.pop(name, None)
            self._snapshots[name] = _Kept(made, machine.live.identities())
            return {"snapshots": list(self._snapshots)}

    def restore(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """`sandbox_restore`."""
        name = given["snapshot"]
        with self._lock:
            target = self.find(given["copy"])
            if name in self._snapshots:
                _restore(target, self._snapshots[name])
            elif name in self._copies and self._copies[name] is not target:
                source = self._copies[name]
                made = source.sandbox.snapshot(running="drop")
                _restore(target, _Kept(made, source.live.identities()))
                del self._copies[name]
                source.sandbox.kill()
            else:
                known = ", ".join([*self._snapshots, *self._copies]) or "none"
                raise InvalidToolInput(
                    f"there is no snapshot {name!r:.80}; snapshots and copies: {known}"
                )
            return {"snapshots": list(self._snapshots), "copies": list(self._copies)}

    def fork(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """`sandbox_fork`."""
        name = str(checked_name(given["name"]))
        with self._lock:
            if name not in self._copies and len(self._copies) >= self._max_copies:
                raise InvalidToolInput(
                    f"there are {self._max_copies} copies already; use one of their names again, "
                    f"or restore one: {', '.join(self._copies)}"
                )
            origin = self.find(given["copy"])
            with _advice(given):
                twin = origin.sandbox.fork(running=_running(given))
            old = self._copies.pop(name, None)
            self._copies[name] = Machine.of(twin, origin)
            if old is not None:
                old.sandbox.kill()
            if self._ended:
                self.end_copies()
            return {"copies": list(self._copies)}

    def end_copies(self) -> None:
        """Kill all copies, and forget the snapshots."""
        with self._lock:
            self._ended = True
            copies, self._copies = list(self._copies.values()), {}
            self._snapshots.clear()
        for copy in copies:
            copy.sandbox.kill()

    def close(self) -> None:
        """End the copies, and what the tools have started in the sandbox."""
        self.end_copies()
        self._ended = False
        self.main.live.close()
        self.main.background.kill_all()


@contextmanager
def _advice(given: Mapping[str, Any]) -> Iterator[None]:
    """Tell the model what to do about what cannot be copied."""
    try:
        yield
    except StateError as error:
        if given["leave_out_running"]:
            raise
        raise StateError(f"{error}; end it, or set leave_out_running to true") from None


def _running(given: Mapping[str, Any]) -> Running:
    return "drop" if given["leave_out_running"] else "refuse"


COPY_ACTIONS: Mapping[str, Callable[[Machines, Mapping[str, Any]], dict[str, Any]]] = {
    SNAPSHOT.name: Machines.snapshot,
    RESTORE.name: Machines.restore,
    FORK.name: Machines.fork,
}
