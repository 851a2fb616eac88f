"""Operations that sandboxes in separate processes or on servers do not offer yet.

Owns `WithoutDisks`, a base class of backends. Rules: an operation that a backend does not offer
is not missing; it raises `UnsupportedError`, which says what to use instead.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, ClassVar

from wasmsand.sdk.errors import UnsupportedError
from wasmsand.sdk.results import MountDiff, MountInfo

if TYPE_CHECKING:
    from wasmsand.sdk.mounts import Mount


def no_mounts(kind: str) -> UnsupportedError:
    """The error for mounts in a sandbox that is not in this process."""
    return UnsupportedError(
        f"{kind} cannot mount directories: a sandbox in a process of its own may not open files, "
        'and a server never mounts directories for its clients; use isolation="none", or copy '
        "with files.upload and files.download"
    )


def unsupported(kind: str, what: str) -> UnsupportedError:
    """The error for an operation that a kind of sandbox does not offer."""
    return UnsupportedError(f'{kind} does not offer {what} yet; use isolation="none"')


class WithoutDisks:
    """A backend without disk images and mounts."""

    kind: ClassVar[str]
    """How the user selects this backend, for example `isolation="process"`."""

    def save_disk(self, stream: IO[bytes]) -> None:
        """See `Backend`."""
        raise self._unsupported("disk images")

    def load_disk(self, stream: IO[bytes]) -> None:
        """See `Backend`."""
        raise self._unsupported("disk images")

    def mount(self, path: str, mount: Mount) -> MountInfo:
        """See `Backend`."""
        raise self._no_mounts()

    def unmount(self, path: str, *, force: bool = False) -> None:
        """See `Backend`."""
        raise self._no_mounts()

    def mounts(self) -> list[MountInfo]:
        """See `Backend`."""
        return []

    def mount_diff(self, path: str, *, patch: bool) -> MountDiff:
        """See `Backend`."""
        raise self._no_mounts()

    def apply_mount(self, path: str, *, force: bool = False) -> MountDiff:
        """See `Backend`."""
        raise self._no_mounts()

    def _no_mounts(self) -> UnsupportedError:
        return no_mounts(self.kind)

    def _unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f'{self.kind} does not offer {what}; use isolation="none"')
