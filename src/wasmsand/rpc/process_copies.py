"""`ProcessCopies`: copies of a sandbox in a separate process.

A part of `ProcessBackend`. Rules: copies and snapshots stay in the process of their sandbox, so
nothing is copied between processes; they share its barriers, and end if it crashes. Whoever wants a
copy in a process of its own saves the sandbox and loads it again.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from wasmsand.rpc.failures import failures
from wasmsand.rpc.params import Params
from wasmsand.rpc.shared_process import SandboxAddress, SharedProcess, leave_later
from wasmsand.sdk.errors import StateError
from wasmsand.sdk.state import KeptByClient, SandboxState

if TYPE_CHECKING:
    from wasmsand.rpc.backend import ProcessBackend, RpcProcess
    from wasmsand.sdk.backend import BackendProcess
    from wasmsand.sdk.options import SandboxOptions


_COPY_SECONDS: Final = 30.0
"""How long a capture or a copy may take; it usually takes milliseconds."""


@dataclass(frozen=True, slots=True)
class RemoteCapture:
    """A captured program, which the process keeps until a state contains it."""

    command: int


@dataclass(frozen=True, slots=True)
class CopiedState:
    """What the backend of a copy knows at its beginning."""

    variables: Mapping[str, str]
    cwd: str
    barriers: tuple[str, ...]
    programs: dict[int, tuple[int, int]]
    """Command and pid of programs that came with the state, by their command in the original."""


class RemoteState:
    """A snapshot in the process."""

    def __init__(
        self, process: SharedProcess, made: Params, variables: Mapping[str, str], cwd: str
    ) -> None:
        """`made` is the response to `snapshot.create`."""
        self.process = process
        self.snapshot = made.text("snapshot")
        self.size = made.integer("sizeBytes")
        self.variables = dict(variables)
        self.cwd = cwd
        process.join()
        delete: dict[str, object] = {"snapshot": self.snapshot}
        finalizer = weakref.finalize(
            self, leave_later, process, "snapshot.delete", delete, os.getpid()
        )
        finalizer.atexit = False


class ProcessCopies:
    """Copies of a sandbox in a separate process."""

    _process: SharedProcess
    _connection: SandboxAddress
    _adopted: dict[int, tuple[int, int]]
    """See `CopiedState.programs`."""
    variables: dict[str, str]
    cwd: str
    barriers: tuple[str, ...]

    def _call_within(self, seconds: float | None, method: str, **params: object) -> Params:
        raise NotImplementedError

    def capture(self, process: BackendProcess) -> object:
        """See `Backend`."""
        command = _number(process)
        self._call_copying("commands.capture", command=command)
        return RemoteCapture(command)

    def capture_at_fork(self, process: BackendProcess) -> Callable[[], object]:
        """See `Backend`."""
        command = _number(process)
        self._call_copying("commands.capture", command=command, atFork=True)

        def take() -> object:
            self._call_copying("commands.captured", command=command)
            return RemoteCapture(command)

        return take

    def take_state(self, captured: Sequence[object] = ()) -> object:
        """See `Backend`."""
        commands = [item.command for item in captured if isinstance(item, RemoteCapture)]
        # The SDK has refused what runs besides.
        made = self._call_copying("snapshot.create", commands=commands, running="drop")
        return RemoteState(self._process, made, self.variables, self.cwd)

    def open_state(self, state: object, options: SandboxOptions) -> ProcessBackend:
        """See `Backend`."""
        from wasmsand.rpc.backend import ProcessBackend

        assert isinstance(state, RemoteState)
        with failures():
            made = state.process.connection.call("snapshot.open", {"snapshot": state.snapshot})
        programs = {
            item.integer("was"): (item.integer("command"), item.integer("pid"))
            for item in made.objects("commands")
        }
        copied = CopiedState(state.variables, state.cwd, self.barriers, programs)
        return ProcessBackend.of_copy(state.process, made.integer("sandbox"), options, copied)

    def restore_state(self, state: object, options: SandboxOptions) -> ProcessBackend:
        """See `Backend`."""
        return self.open_state(state, options)

    def adopt(self, captured: object, *, is_last: bool) -> RpcProcess:
        """See `Backend`."""
        from wasmsand.rpc.backend import RpcProcess

        assert isinstance(captured, RemoteCapture)
        command, pid = self._adopted[captured.command]
        return RpcProcess(self._connection, command, pid)

    def save_state(self, state: SandboxState, name: str | None, stream: IO[bytes]) -> None:
        """See `Backend`."""
        machine = state.machine
        assert isinstance(machine, RemoteState)
        kept = state.kept or KeptByClient(machine.variables, machine.cwd)
        wanted: dict[str, object] = {
            "snapshot": machine.snapshot,
            "sessions": [
                {"was": saved.captured.command, "kind": saved.kind, "identity": saved.identity}
                for saved in state.sessions
                if isinstance(saved.captured, RemoteCapture)
            ],
            "variables": dict(kept.variables),
            "cwd": kept.cwd,
            "timeoutMs": state.options.timeout_ms,
        }
        connection = machine.process.connection
        with failures():
            number = connection.call("snapshot.save", wanted).integer("stream")
            try:
                while (piece := connection.call("streams.read", {"stream": number})).has("data"):
                    stream.write(piece.data("data"))
            finally:
                connection.notify("streams.close", stream=number)

    def size_of(self, copied: object) -> int:
        """See `Backend`. The size of a state contains those of its programs."""
        return copied.size if isinstance(copied, RemoteState) else 0

    def _call_copying(self, method: str, **params: object) -> Params:
        return self._call_within(_COPY_SECONDS, method, **params)


def _number(process: BackendProcess) -> int:
    from wasmsand.rpc.backend import RpcProcess

    if not isinstance(process, RpcProcess):
        raise StateError("it is not a program of this sandbox")
    return process.number
