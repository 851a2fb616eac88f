"""Python packages of a sandbox: `sandbox.packages`.

Rules: arguments are validated here; everything else is the backend's.
"""

from __future__ import annotations

import builtins
from typing import Final

from wasmsand.sdk import arguments
from wasmsand.sdk.attachment import Attachment
from wasmsand.sdk.output import TextSink
from wasmsand.sdk.package_requests import PackageRequest
from wasmsand.sdk.results import PackageInfo

INSTALL_TIMEOUT_MS: Final = 600_000


class Packages:
    """The Python packages of one sandbox: `sandbox.packages`.

    Packages of the image are installed at once. All others come from the package index, with the
    settings of pip on this machine; the sandbox needs no network.

    Example:
        sandbox.packages.install("numpy", "humanize>=4")
        [package.name for package in sandbox.packages.list()]
    """

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment

    def install(
        self,
        *requirements: str,
        timeout_ms: float | None = INSTALL_TIMEOUT_MS,
        on_progress: TextSink | None = None,
    ) -> builtins.list[PackageInfo]:
        """Install packages and what they need, all or none; return those that are new.

        Example:
            sandbox.packages.install("numpy", "humanize==4.*", on_progress=print)

        A requirement is a name with an optional version, as for pip. A package that is installed
        already is not changed if its version matches. `timeout_ms` bounds the search and the
        download, and `on_progress` receives lines about them, except for a sandbox on a server.
        Raises `PackageError`.
        """
        arguments.callback("on_progress", on_progress)
        request = PackageRequest(
            arguments.requirements("requirements", requirements),
            timeout_seconds=arguments.timeout_seconds("timeout_ms", timeout_ms),
            on_progress=on_progress,
        )
        before = {(package.name, package.version) for package in self.list()}
        self._attachment.backend.install_packages(request)
        after = self.list()
        return [package for package in after if (package.name, package.version) not in before]

    def uninstall(self, *names: str) -> None:
        """Uninstall packages, all or none; packages that they need stay.

        Example:
            sandbox.packages.uninstall("humanize")

        Raises `PackageNotFoundError` if one of them is not installed.
        """
        self._attachment.backend.uninstall_packages(arguments.requirements("names", names))

    def list(self) -> builtins.list[PackageInfo]:
        """Return the installed packages, sorted by name.

        Example:
            {package.name: package.version for package in sandbox.packages.list()}
        """
        return self._attachment.backend.installed_packages()

    def available(self) -> builtins.list[PackageInfo]:
        """Return the packages of the image, which are installed at once, sorted by name.

        Example:
            [package.name for package in sandbox.packages.available() if package.native]
        """
        return self._attachment.backend.available_packages()

    def __repr__(self) -> str:
        return f"<Packages of {self._attachment!r}>"
