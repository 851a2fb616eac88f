"""Which packages of the registry a list of requirements needs.

Owns `resolve`. Rules: requirements are those of pip (PEP 508), of which a path or an address is
refused; dependencies come before their users; a module of the standard library needs nothing; the
registry has one version of each package, so a version that does not match is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement

from wasmsand.machine.packages.metadata import PackageMetadata, applies, normalised
from wasmsand.machine.packages.problems import PackageFault, PackageProblem
from wasmsand.machine.packages.registry import ALIASES, PROVIDED, Registry

ALL: Final = "all"
"""Stands for every package of the registry whose dependencies this host has."""


class InvalidPackageName(ValueError):
    """A requirement is not a package's name with an optional version."""


def parse(requirement: str) -> Requirement:
    """Parse a requirement such as `numpy>=2`. Raises `InvalidPackageName`."""
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        raise InvalidPackageName(
            f"{requirement[:200]!r} is not a package's name with an optional version, such as "
            "'numpy' or 'numpy>=2'"
        ) from None
    if parsed.url is not None:
        raise InvalidPackageName(f"{requirement[:200]!r}: a package is given by name, not by URL")
    return parsed


def resolve(
    requirements: Iterable[str], registry: Registry, *, advice: str = ""
) -> tuple[str, ...]:
    """The normalised names of the packages to install, dependencies first.

    Raises `PackageProblem`, `InvalidPackageName`. `advice` is added to the message about an
    unknown package.
    """
    order: dict[str, None] = {}
    for text in requirements:
        if text == ALL:
            for package in registry.all():
                order |= _installable(package, registry)
            continue
        wanted = parse(text)
        if not applies(wanted.marker) or satisfied_by_standard_library(wanted, registry):
            continue
        package = find(wanted, registry, advice=advice)
        _add(package, frozenset(wanted.extras), registry, order, ())
    return tuple(order)


def _installable(package: PackageMetadata, registry: Registry) -> dict[str, None]:
    """A package and its dependencies; nothing if this host does not have all of them."""
    order: dict[str, None] = {}
    try:
        _add(package, frozenset(), registry, order, ())
    except PackageProblem:
        return {}
    return order


def satisfied_by_standard_library(wanted: Requirement, registry: Registry) -> bool:
    """Whether a requirement names a module that every sandbox has."""
    name = normalised(wanted.name)
    if name in registry.names or name in ALIASES or wanted.specifier:
        return False
    return registry.has_module(wanted.name)


def find(
    wanted: Requirement, registry: Registry, *, wanted_by: str = "", advice: str = ""
) -> PackageMetadata:
    """The registry's package for a requirement. Raises `PackageProblem`."""
    name = registry.known_as(wanted.name)
    package = registry.get(name)
    if package is None:
        raise registry.missing(
            name if name != wanted.name.lower() else wanted.name,
            wanted_by=wanted_by,
            advice=advice,
        )
    if not wanted.specifier.contains(package.version, prereleases=True):
        by = f" for {wanted_by}" if wanted_by else ""
        raise PackageProblem(
            PackageFault.VERSION,
            package.key,
            f"{wanted.name}{wanted.specifier} is wanted{by}, but the image has {package.key} "
            f"{package.version}, and no other version of it",
        )
    return package


def _add(
    package: PackageMetadata,
    extras: frozenset[str],
    registry: Registry,
    order: dict[str, None],
    users: tuple[str, ...],
) -> None:
    """Add a package after its dependencies. Packages may depend on each other."""
    if package.key in users or (package.key in order and not extras):
        return
    for needed in package.needs(extras):
        if needed.name in PROVIDED and needed.name not in registry.names:
            continue
        found = find(needed, registry, wanted_by=package.key)
        _add(found, frozenset(needed.extras), registry, order, (*users, package.key))
    order.setdefault(package.key)
