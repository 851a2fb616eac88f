"""What the parts of a sandbox share: its machine while it lives, and its directory.

Rules: every use of the machine goes through `Handle.machine`, so that use after
`kill()` is the same clear error everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wasmsand.sdk.errors import SandboxClosedError

if TYPE_CHECKING:
    from wasmsand.machine import Machine


class Handle:
    """A machine that may have been closed."""

    __slots__ = ("_machine", "cwd")

    def __init__(self, machine: Machine, cwd: str) -> None:
        self._machine: Machine | None = machine
        self.cwd = cwd

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._machine is None

    @property
    def machine(self) -> Machine:
        """The machine. Raises `SandboxClosedError` after `close`."""
        machine = self._machine
        if machine is None:
            raise SandboxClosedError("the sandbox was killed; create a new Sandbox")
        return machine

    def check_open(self) -> None:
        """Raise `SandboxClosedError` after `close`."""
        _ = self.machine

    def close(self) -> None:
        """End the machine; idempotent, from any thread."""
        machine, self._machine = self._machine, None
        if machine is not None:
            machine.close()
