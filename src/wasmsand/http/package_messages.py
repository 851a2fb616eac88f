"""Types of JSON requests and responses about Python packages. Rules: see `messages`."""

from __future__ import annotations

from wasmsand.http.message_types import Milliseconds, RequestMessage, ResponseMessage
from wasmsand.sdk.results import PackageInfo


class InstallPackages(RequestMessage):
    """Python packages to install."""

    requirements: list[str]
    """Names with optional versions, such as `numpy>=2`."""
    timeout_ms: Milliseconds | None = None
    """Limit of the search in the package index and of the download; null is the server's
    maximum."""


class UninstallPackages(RequestMessage):
    """Python packages to uninstall."""

    names: list[str]


class PackageList(ResponseMessage):
    """Python packages, sorted by name."""

    packages: list[PackageInfo]
