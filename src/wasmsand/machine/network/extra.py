"""Why the bridge cannot see requests.

Owns `InspectionImpossible` and `require_extra`. Rules: the packages that inspection needs are
optional and imported late; if one is missing, the error names the command that installs it.
"""

from __future__ import annotations

from typing import Final

_PACKAGES: Final = ("cryptography", "h11")


class InspectionImpossible(Exception):
    """Rules on requests, or secrets, cannot be used. The message says what to do."""


class NetworkExtraMissing(InspectionImpossible, ImportError):
    """A package that rules on requests and secrets need is not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            "rules with a method or a path, and secrets, need the package "
            f"{package}: pip install 'wasmsand[network]'"
        )
        self.name = package


def require_extra() -> None:
    """Raise `NetworkExtraMissing` unless everything that inspection needs is installed."""
    for package in _PACKAGES:
        if not _is_installed(package):
            raise NetworkExtraMissing(package)


def _is_installed(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None
