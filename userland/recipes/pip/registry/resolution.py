"""Which packages a list of requirements needs.

Owns `resolve`. Rules: the registry has one version of each package, so there is nothing to search:
for every requirement, the installed version fits, or the registry's does, or there is an error. An
installed version that does not fit is replaced. The caller prints and acts.
"""

from __future__ import annotations

from .distributions import Distribution, in_registry
from .names import registry_name
from .requirements import Requirement
from .versions import is_newer


class NotInRegistry(Exception):
    """The registry does not have the package."""

    def __init__(self, requirement: Requirement) -> None:
        super().__init__(requirement.text)
        self.requirement = requirement


class NoSuchVersion(Exception):
    """The registry has another version."""

    def __init__(self, requirement: Requirement, offered: Distribution) -> None:
        super().__init__(requirement.text)
        self.requirement = requirement
        self.offered = offered


class Plan:
    """What is to be done."""

    def __init__(self) -> None:
        self.satisfied: list[tuple[Requirement, Distribution]] = []
        """Requirements that installed packages meet."""
        self.collected: list[Requirement] = []
        """Requirements for which packages of the registry were taken."""
        self.install: dict[str, Distribution] = {}
        """Packages to install by name, a package after what it needs."""


class Wishes:
    """Options that decide what is taken."""

    def __init__(
        self,
        upgrade: bool = False,
        with_dependencies: bool = True,
        again: bool = False,
        constraints: tuple[Requirement, ...] = (),
    ) -> None:
        self.upgrade = upgrade
        self.with_dependencies = with_dependencies
        self.again = again
        """Take nothing that is installed into account."""
        self.constraints = constraints


def resolve(
    requirements: list[Requirement], installed: dict[str, Distribution], wishes: Wishes
) -> Plan:
    """Raises `NotInRegistry`, `NoSuchVersion`."""
    replaced: set[str] = set()
    while True:
        attempt = _Attempt(installed, wishes, replaced)
        for requirement in requirements:
            attempt.visit(requirement)
        if attempt.unfit <= replaced:
            return attempt.plan
        # An installed package was taken before somebody needed another version: begin again.
        replaced |= attempt.unfit


class _Attempt:
    def __init__(
        self, installed: dict[str, Distribution], wishes: Wishes, replaced: set[str]
    ) -> None:
        self.plan = Plan()
        self.unfit: set[str] = set()
        self._installed = installed
        self._wishes = wishes
        self._replaced = replaced
        self._seen: set[tuple[str, frozenset[str], str]] = set()

    def visit(self, requirement: Requirement) -> None:
        name = registry_name(requirement.name)
        key = (name, requirement.extras, requirement.specifier)
        if key in self._seen:
            return
        self._seen.add(key)
        chosen = self._satisfied(name, requirement)
        if chosen is not None:
            self.plan.satisfied.append((requirement, chosen))
        else:
            chosen = self._of_registry(name, requirement)
            self.plan.collected.append(requirement)
        if self._wishes.with_dependencies:
            for needed in chosen.requirements(requirement.extras):
                self.visit(needed)
        if name not in self._installed or chosen is not self._installed[name]:
            self.plan.install.setdefault(name, chosen)

    def _satisfied(self, name: str, requirement: Requirement) -> Distribution | None:
        """The installed package, if it fits and is wanted."""
        here = self._installed.get(name)
        if here is None or name in self._replaced or self._wishes.again:
            return None
        if not self._fits(name, requirement, here):
            self.unfit.add(name)
            return None
        if self._wishes.upgrade and requirement.origin is None:
            offered = in_registry(name)
            if offered is not None and is_newer(offered.version, here.version):
                self.unfit.add(name)
                return None
        return here

    def _of_registry(self, name: str, requirement: Requirement) -> Distribution:
        offered = self.plan.install.get(name) or in_registry(name)
        if offered is None:
            raise NotInRegistry(requirement)
        if not self._fits(name, requirement, offered):
            raise NoSuchVersion(requirement, offered)
        return offered

    def _fits(self, name: str, requirement: Requirement, one: Distribution) -> bool:
        return requirement.accepts(one.version) and all(
            other.accepts(one.version)
            for other in self._wishes.constraints
            if registry_name(other.name) == name and other.applies()
        )
