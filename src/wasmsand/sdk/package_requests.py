"""Requests for packages, and their preparation on this host.

Owns `PackageRequest`, and what backends of this host share: finding packages in the image or in the
package index before a sandbox is changed. Rules: problems with packages become public exceptions
here; the exceptions are the same for every backend.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wasmsand.sdk.errors import ImageMissingError, package_error
from wasmsand.sdk.results import PackageInfo

if TYPE_CHECKING:
    from wasmsand.machine.packages.metadata import PackageMetadata
    from wasmsand.machine.packages.preparing import PreparedPackages


@dataclass(frozen=True, slots=True)
class PackageRequest:
    """Packages to install."""

    requirements: tuple[str, ...]
    from_index: bool = True
    """Whether packages that the image has not may be taken from the package index."""
    timeout_seconds: float | None = None
    on_progress: Callable[[str], object] | None = None
    """Receives lines about what is being done."""


@contextmanager
def package_problems() -> Iterator[None]:
    """Turn problems with packages into public exceptions."""
    from wasmsand.machine import ImageMissing, PackageProblem  # many modules

    try:
        yield
    except PackageProblem as problem:
        raise package_error(problem.kind.value, str(problem), problem.package) from None
    except ImageMissing as missing:
        raise ImageMissingError(str(missing)) from None


def prepare_packages(request: PackageRequest, installed: Iterable[PackageInfo]) -> PreparedPackages:
    """Find the packages that a request needs, and download those that are not on this host."""
    from wasmsand.machine.packages.offered import registry
    from wasmsand.machine.packages.preparing import prepare

    seconds = request.timeout_seconds
    with package_problems():
        return prepare(
            request.requirements,
            registry(),
            {package.name: package.version for package in installed},
            from_index=request.from_index,
            deadline=None if seconds is None else time.monotonic() + seconds,
            say=request.on_progress,
        )


def packages_of_image() -> list[PackageInfo]:
    """The packages of this host's image, sorted by name."""
    from wasmsand.machine.packages.offered import registry
    from wasmsand.machine.packages.registry import directory_of

    with package_problems():
        return [package_info(found, directory_of(found.key).decode()) for found in registry().all()]


def package_info(metadata: PackageMetadata, location: str) -> PackageInfo:
    """A package as the API shows it."""
    return PackageInfo(
        metadata.key, metadata.version, location, metadata.summary, metadata.is_native
    )
