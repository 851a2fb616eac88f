"""Packages of a live sandbox: list, install, uninstall.

Owns the changes that a list of packages makes to a running machine. Rules: one change holds the
sandbox's lock once, and is made completely or not at all; wheels are attached as shared trees below
/usr/lib/python, beside the packages of the image, and are removed when they are uninstalled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.vfs import ROOT, Namespace
from wasmsand.machine import trees
from wasmsand.machine.host_access import HostAccess, find
from wasmsand.machine.packages.links import InstalledPackage, Links
from wasmsand.machine.packages.metadata import PackageMetadata
from wasmsand.machine.packages.problems import PackageFault, PackageProblem
from wasmsand.machine.packages.reading import REGISTRY, SITE_PACKAGES, read_package
from wasmsand.machine.packages.registry import Registry, directory_of
from wasmsand.machine.packages.wheel_cache import CachedWheel, load_fresh

if TYPE_CHECKING:
    from wasmsand.machine.machine import Machine

_OLD: Final = b".removed-"
"""Directories whose names begin like this are no packages: they are being removed."""


def installed_packages(machine: Machine) -> dict[str, InstalledPackage]:
    """The installed packages of a sandbox by normalised name."""
    with HostAccess(machine) as namespace:
        return Links(namespace, machine.identity.credentials()).installed()


def install_packages(
    machine: Machine, registry: Registry, names: Iterable[str], wheels: Sequence[CachedWheel]
) -> None:
    """Install packages of the registry, by normalised name, and wheels. Raises `PackageProblem`,
    and `KernelError` if the file system is full."""
    change = _Change(machine, registry)
    try:
        machine.change(lambda: change.install(names, wheels))
    finally:
        change.remove_old_trees()


def uninstall_packages(machine: Machine, registry: Registry, names: Iterable[str]) -> None:
    """Uninstall packages. Raises `PackageProblem`."""
    change = _Change(machine, registry)
    machine.change(lambda: change.uninstall(names))
    change.remove_old_trees()


class _Change:
    """One change of the packages of a sandbox."""

    def __init__(self, machine: Machine, registry: Registry) -> None:
        self._machine = machine
        self._registry = registry
        self._access = HostAccess(machine)
        self._old: list[bytes] = []

    def install(self, names: Iterable[str], wheels: Sequence[CachedWheel]) -> None:
        """Install, or change nothing."""
        with self._access as namespace:
            links = Links(namespace, self._machine.identity.credentials())
            moved: list[tuple[bytes, bytes]] = []
            attached: list[bytes] = []
            try:
                installed = links.installed()
                for name in names:
                    package = self._registry.get(name)
                    assert package is not None, "resolved packages are in the registry"
                    if self._is_new(installed.get(name), package):
                        links.install(directory_of(name), package)
                for wheel in wheels:
                    package, directory = wheel.metadata, directory_of(wheel.metadata.key)
                    if not self._is_new(installed.get(package.key), package):
                        continue
                    there = read_package(namespace, directory)
                    if there is None or there.version != package.version:
                        if there is not None:
                            links.uninstall(directory, there)
                            moved.append((directory, self._move_away(namespace, directory)))
                        self._attach(namespace, directory, wheel)
                        attached.append(directory)
                    links.install(directory, package)
                links.choose_interpreter()
            except BaseException:
                links.undo()
                self._old = [self._move_away(namespace, directory) for directory in attached]
                for directory, old in moved:
                    namespace.rename(ROOT, namespace.root, old, namespace.root, directory)
                raise
            self._old = [old for _, old in moved]

    def uninstall(self, names: Iterable[str]) -> None:
        """Uninstall all, or change nothing."""
        with self._access as namespace:
            links = Links(namespace, self._machine.identity.credentials())
            installed = links.installed()
            chosen = [self._installed(name, installed) for name in dict.fromkeys(names)]
            try:
                for package, directory in chosen:
                    links.uninstall(directory, package)
                links.choose_interpreter()
            except BaseException:
                links.undo()
                raise
            self._old = [
                self._move_away(namespace, directory)
                for package, directory in chosen
                if package.key not in self._registry.names
            ]

    def remove_old_trees(self) -> None:
        """Remove the trees of wheels that are no longer installed, in bounded steps."""
        for path in self._old:
            trees.remove(self._access, path)

    def _is_new(self, present: InstalledPackage | None, package: PackageMetadata) -> bool:
        """Whether a package has to be installed."""
        if present is None or present.directory is not None:
            return present is None or present.metadata.version != package.version
        if present.metadata.version == package.version:
            return False
        raise PackageProblem(
            PackageFault.CONFLICT,
            package.key,
            f"the sandbox's own pip has installed {package.key} {present.metadata.version}: run "
            f"`pip uninstall {package.key}` in the sandbox first",
        )

    def _installed(
        self, name: str, installed: dict[str, InstalledPackage]
    ) -> tuple[PackageMetadata, bytes]:
        present = installed.get(self._registry.known_as(name))
        if present is None:
            there = ", ".join(sorted(installed)) or "none"
            raise PackageProblem(
                PackageFault.NOT_FOUND,
                name,
                f"the package {name!r} is not installed. Installed packages: {there}.",
            )
        if present.directory is None:
            raise PackageProblem(
                PackageFault.CONFLICT,
                name,
                f"the sandbox's own pip has installed {name!r} in {SITE_PACKAGES.decode()}: run "
                f"`pip uninstall {name}` in the sandbox",
            )
        return present.metadata, present.directory

    def _attach(self, namespace: Namespace, directory: bytes, wheel: CachedWheel) -> None:
        if find(namespace, namespace.root, REGISTRY) is None:
            namespace.mkdir(ROOT, namespace.root, REGISTRY, 0o755)
        parent, name = namespace.resolve_parent(ROOT, namespace.root, directory)
        root = self._machine.kernel.root
        try:
            root.attach(parent.ino, name, wheel.tree)
        except KernelError as error:
            if error.errno is not Errno.EEXIST:
                raise
            # This sandbox had the same wheel before.
            root.attach(parent.ino, name, load_fresh(wheel.sha256).tree)

    def _move_away(self, namespace: Namespace, directory: bytes) -> bytes:
        old = REGISTRY + b"/" + _OLD + trees.temporary_name().lstrip(b".")
        namespace.rename(ROOT, namespace.root, directory, namespace.root, old)
        return old
