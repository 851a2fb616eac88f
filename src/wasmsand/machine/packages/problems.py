"""`PackageProblem`: why a package cannot be installed or uninstalled.

Rules: the message is a whole sentence for the user, and says what to do where there is something
to do; callers distinguish problems by `kind`, never by the message.
"""

from __future__ import annotations

from enum import Enum


class PackageFault(Enum):
    """The kinds of problems. The values are those of `code` in `sdk.errors`."""

    NOT_FOUND = "package_not_found"
    """There is no such package, or it is not installed."""
    VERSION = "package_version"
    """There is another version."""
    NOT_BUILT = "package_not_built"
    """A package with native code that this host does not have."""
    NATIVE = "native_package"
    """A package with native code that the sandbox cannot have."""
    NOT_ALLOWED = "index_not_allowed"
    """Installs from the package index are not allowed here."""
    INDEX = "package_index_failed"
    """The package index or pip failed, or a downloaded wheel is invalid."""
    CONFLICT = "package_conflict"
    """Files of the sandbox, or another package, are in the way."""


class PackageProblem(Exception):
    """A package cannot be installed or uninstalled."""

    def __init__(self, kind: PackageFault, package: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.package = package
