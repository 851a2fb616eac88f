"""Operations that a v86 machine does not offer.

Owns `WithoutLocalParts`, a base class of `V86Backend`. Rules: each raises `UnsupportedError`, which
says what to use instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING

from wasmsand.sdk.errors import UnsupportedError
from wasmsand.sdk.results import MountDiff, MountInfo, NetworkRules, PackageInfo, PortInfo

if TYPE_CHECKING:
    import socket

    from wasmsand.machine.network.events import NetworkEvent
    from wasmsand.sdk.backend import (
        Backend,
        BackendProcess,
        BackendTerminal,
        CommandRequest,
        PackageRequest,
    )
    from wasmsand.sdk.mounts import Mount
    from wasmsand.sdk.options import SandboxOptions
    from wasmsand.sdk.state import SandboxState


class WithoutLocalParts:
    """A backend without copies, terminals, packages, network, ports and mounts."""

    survives_fork = False
    has_our_bash = False

    def _unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"mode='v86' does not offer {what}; use mode='simple'")

    def open_terminal(self, request: CommandRequest, rows: int, columns: int) -> BackendTerminal:
        """See `Backend`."""
        raise self._unsupported("terminals")

    def capture(self, process: BackendProcess) -> object:
        """See `Backend`."""
        raise self._unsupported("copies of programs")

    def capture_at_fork(self, process: BackendProcess) -> Callable[[], object]:
        """See `Backend`."""
        raise self._unsupported("copies of programs")

    def take_state(self, captured: Sequence[object] = ()) -> object:
        """See `Backend`."""
        raise self._unsupported("snapshots and forks")

    def open_state(self, state: object, options: SandboxOptions) -> Backend:
        """See `Backend`."""
        raise self._unsupported("snapshots and forks")

    def restore_state(self, state: object, options: SandboxOptions) -> Backend:
        """See `Backend`."""
        raise self._unsupported("snapshots and forks")

    def adopt(self, captured: object, *, is_last: bool) -> BackendProcess:
        """See `Backend`."""
        raise self._unsupported("copies of programs")

    def save_state(self, state: SandboxState, name: str | None, stream: IO[bytes]) -> None:
        """See `Backend`."""
        raise self._unsupported("saved sandboxes")

    def size_of(self, copied: object) -> int:
        """See `Backend`."""
        raise self._unsupported("snapshots and forks")

    def install_packages(self, request: PackageRequest) -> None:
        """See `Backend`."""
        raise self._unsupported("Python packages")

    def uninstall_packages(self, names: tuple[str, ...]) -> None:
        """See `Backend`."""
        raise self._unsupported("Python packages")

    def installed_packages(self) -> list[PackageInfo]:
        """See `Backend`."""
        return []

    def available_packages(self) -> list[PackageInfo]:
        """See `Backend`."""
        return []

    def allow_network(self, rules: tuple[str, ...]) -> None:
        """See `Backend`."""
        raise self._unsupported("a network")

    def deny_network(self, rules: tuple[str, ...]) -> None:
        """See `Backend`."""
        raise self._unsupported("a network")

    def network_rules(self) -> NetworkRules:
        """See `Backend`."""
        raise self._unsupported("a network")

    def network_log(self) -> list[NetworkEvent]:
        """See `Backend`."""
        return []

    def connect_port(self, port: int, timeout_seconds: float | None) -> socket.socket:
        """See `Backend`."""
        raise self._unsupported("ports")

    def wait_port(self, port: int, timeout_seconds: float | None) -> bool:
        """See `Backend`."""
        raise self._unsupported("ports")

    def listening_ports(self) -> list[PortInfo]:
        """See `Backend`."""
        raise self._unsupported("ports")

    def open_port(self, port: int, host_port: int | None) -> str:
        """See `Backend`."""
        raise self._unsupported("ports")

    def close_port(self, port: int) -> bool:
        """See `Backend`."""
        return False

    def mount(self, path: str, mount: Mount) -> MountInfo:
        """See `Backend`."""
        raise self._unsupported("mounts")

    def unmount(self, path: str, *, force: bool = False) -> None:
        """See `Backend`."""
        raise self._unsupported("mounts")

    def mounts(self) -> list[MountInfo]:
        """See `Backend`."""
        return []

    def mount_diff(self, path: str, *, patch: bool) -> MountDiff:
        """See `Backend`."""
        raise self._unsupported("mounts")

    def apply_mount(self, path: str, *, force: bool = False) -> MountDiff:
        """See `Backend`."""
        raise self._unsupported("mounts")
