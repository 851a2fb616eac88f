"""Turns requirements into packages that can be installed at once.

Owns `prepare`, which uses the registry where it can and the package index where it must. Rules: it
changes no sandbox; the index is asked only if the caller allows it; everything that it returns is
on this host.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from wasmsand.machine.packages.compiling import compile_in_sandbox
from wasmsand.machine.packages.index import IndexWheel, Say, download, find_wheels
from wasmsand.machine.packages.metadata import applies
from wasmsand.machine.packages.problems import PackageFault, PackageProblem
from wasmsand.machine.packages.registry import NATIVE, Registry
from wasmsand.machine.packages.resolution import (
    ALL,
    parse,
    resolve,
    satisfied_by_standard_library,
)
from wasmsand.machine.packages.wheel_cache import BadWheel, add_wheel, is_cached

log = logging.getLogger("wasmsand.packages")


@dataclass(frozen=True, slots=True)
class PreparedPackages:
    """Packages that can be installed without waiting."""

    names: tuple[str, ...]
    """Packages of the registry, by normalised name."""
    wheels: tuple[str, ...]
    """Wheels of the cache, by their hash."""


def prepare(
    requirements: Sequence[str],
    registry: Registry,
    installed: Mapping[str, str],
    *,
    from_index: bool,
    deadline: float | None = None,
    say: Say | None = None,
) -> PreparedPackages:
    """Find, download and unpack what the requirements need. `installed` has the versions of the
    packages that the sandbox has. Raises `PackageProblem`, `InvalidPackageName`."""
    of_registry: list[str] = []
    of_index: list[Requirement] = []
    for text in requirements:
        if text == ALL:
            of_registry.append(text)
            continue
        wanted = parse(text)
        if not applies(wanted.marker) or satisfied_by_standard_library(wanted, registry):
            continue
        name = registry.known_as(wanted.name)
        if name in registry.names:
            of_registry.append(text)
        elif name in NATIVE:
            raise registry.missing(name)
        elif not _is_satisfied(wanted, installed.get(name)):
            wanted.name, wanted.marker = name, None
            of_index.append(wanted)
    names = resolve(of_registry, registry)
    if not of_index:
        return PreparedPackages(names, ())
    if not from_index:
        unknown = of_index[0].name
        message = f"{registry.missing(unknown)} Installs from the package index are not allowed."
        raise PackageProblem(PackageFault.NOT_ALLOWED, unknown, message)
    pinned = {name: version for name, version in installed.items() if name not in registry.names}
    wanted_names = {requirement.name for requirement in of_index}
    pinned = {name: version for name, version in pinned.items() if name not in wanted_names}
    found = find_wheels(of_index, registry, pinned, deadline=deadline, say=say)
    wheels = _on_this_host(found.wheels, deadline, say)
    needed = resolve(found.names, registry)
    return PreparedPackages(tuple(dict.fromkeys((*names, *needed))), wheels)


def _is_satisfied(wanted: Requirement, version: str | None) -> bool:
    return (
        version is not None
        and not wanted.extras
        and wanted.specifier.contains(version, prereleases=True)
    )


def _on_this_host(
    wheels: Sequence[IndexWheel], deadline: float | None, say: Say | None
) -> tuple[str, ...]:
    """The hashes of wheels, after those that the cache has not were downloaded and unpacked."""
    hashes = [wheel.sha256 for wheel in wheels if wheel.sha256 and is_cached(wheel.sha256)]
    missing = [wheel for wheel in wheels if not (wheel.sha256 and is_cached(wheel.sha256))]
    if not missing:
        return tuple(hashes)
    with tempfile.TemporaryDirectory(prefix="wasmsand-wheels-") as place:
        for file in download(missing, Path(place) / "wheels", deadline, say):
            if say is not None:
                say(f"Unpacking {file.name}")
            log.info("unpacking %s", file.name)
            name = file.name.partition("-")[0]
            try:
                hashes.append(add_wheel(file, compile_in_sandbox))
            except BadWheel as bad:
                raise PackageProblem(
                    PackageFault.INDEX, name, f"{file.name} is not installed: {bad}"
                ) from None
            except OSError as error:
                raise PackageProblem(
                    PackageFault.INDEX, name, f"{file.name} cannot be unpacked: {error}"
                ) from None
    if len(hashes) != len(wheels):
        raise PackageProblem(PackageFault.INDEX, "", "pip has not downloaded every wheel")
    return tuple(hashes)
