"""`ServedBackend`: what only the backend of a sandbox on a server can do."""

from __future__ import annotations

from abc import ABC, abstractmethod

from wasmsand.sdk.results import SandboxInfo
from wasmsand.sdk.state import Running


class ServedBackend(ABC):
    """A base class of backends of sandboxes on servers."""

    id: str
    """The id of the sandbox on its server."""
    is_found: bool = False
    """Whether the sandbox existed before: then it does not end with the object that uses it."""

    @abstractmethod
    def info(self) -> SandboxInfo:
        """What the server knows of the sandbox."""

    @abstractmethod
    def set_timeout(self, seconds: float) -> None:
        """Let the sandbox end in `seconds` from now."""

    @abstractmethod
    def pause(self, running: Running) -> None:
        """Put the sandbox to the server's disk. Raises `StateError`."""

    @abstractmethod
    def resume(self) -> None:
        """Resume the sandbox now."""

    @abstractmethod
    def keep_alive(self) -> None:
        """From now on, `close` does not end the sandbox."""
