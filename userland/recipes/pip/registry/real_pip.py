"""The real pip, which learns about the registry.

Owns the call of pip's own command, and the few places in which pip is told what it cannot know:
that packages of the registry count as installed when it looks for versions (they are linked as soon
as it has decided), that links are uninstalled as links, and where commands go. Rules: the places
are those of the pip in this image, so nothing here has to fit another version; without an index,
nobody waits for a network; all modules are imported before pip starts, because it forbids imports
while it installs; if pip fails, links that were made for it are undone.
"""

from __future__ import annotations

import logging
import os
import sys
import sysconfig
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from . import environment as environments
from .distributions import Distribution
from .environment import Environment, linked_directory
from .incomplete import remove_incomplete_wheels
from .links import Change, InTheWay
from .names import REGISTRY, available, native_available
from .outside import index_is_configured, network_exists

_INDEX_OPTIONS = ("-i", "--index-url", "--extra-index-url", "--pypi-url")
_SHOWS_SETTINGS = "config"
"""The command that shows what others would do."""
_SITE = "/site-packages/"


def run(given: list[str]) -> int:
    """Run pip's own command; returns the exit status."""
    if (name := _native_wheel(given)) is not None:
        _explain_native(name)
        return 1
    if _SHOWS_SETTINGS not in given:
        os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        if not index_is_configured() and not _has_option(given, _INDEX_OPTIONS):
            os.environ["PIP_NO_INDEX"] = "1"
        if not network_exists():  # asking again would only take time
            os.environ.setdefault("PIP_RETRIES", "0")
    pip_main: Any = import_module("pip._internal.cli.main")
    session = _Session(given)
    session.teach()
    status: int | str | None = 1
    try:
        status = pip_main.main(given)
    except SystemExit as end:
        status = end.code
    except InTheWay as error:
        print(f"ERROR: {error} does not belong to an installed package.", file=sys.stderr)
    finally:
        session.close(status in (0, None))
    return status if isinstance(status, int) else int(status is not None)


def remove_files(name: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Uninstall a package that pip has installed; returns what completes it and what undoes it."""
    removal: Any = import_module("pip._internal.req.req_uninstall")
    metadata: Any = import_module("pip._internal.metadata")
    _keep_links(removal)
    paths = removal.UninstallPathSet.from_dist(
        metadata.get_default_environment().get_distribution(name)
    )
    paths.remove(auto_confirm=True)
    return paths.commit, paths.rollback


class _Session:
    """One call of pip: what it has used of the registry."""

    def __init__(self, given: list[str]) -> None:
        self._installs = "install" in given and "--dry-run" not in given
        self._quiet = _has_option(given, ("-q", "--quiet", "-qq", "-qqq"))
        self._where = _environment(given)
        self._change: Change | None = None
        self._linked: list[Distribution] = []

    def teach(self) -> None:
        """Change pip's classes, for this process."""
        removal: Any = import_module("pip._internal.req.req_uninstall")
        _keep_links(removal)
        self._uninstall_links(removal.UninstallPathSet)
        if self._installs:
            self._offer_registry()
            remove_incomplete_wheels()
        if sys.prefix == sys.base_prefix:
            # /usr/bin is not for the user.
            schemes: Any = vars(sysconfig)["_INSTALL_SCHEMES"]
            schemes["posix_prefix"]["scripts"] = self._where.scripts

    def change(self) -> Change:
        """The change of the environment that is in progress."""
        if self._change is None:
            self._change = Change(self._where)
            self._change.__enter__()
        return self._change

    def close(self, success: bool) -> None:
        """Complete or undo the change."""
        if self._change is None:
            return
        if success:
            self._change.choose_interpreter()
            self._change.__exit__(None, None, None)
            if self._linked and not self._quiet:
                taken = sorted(self._linked, key=lambda one: one.name)
                print(
                    "Successfully installed "
                    + " ".join(f"{one.raw_name}-{one.version}" for one in taken)
                )
        else:
            self._change.undo()
            self._change.__exit__(None, None, None)

    def _offer_registry(self) -> None:
        metadata: Any = import_module("pip._internal.metadata")
        factory: Any = import_module("pip._internal.resolution.resolvelib.factory").Factory
        resolver: Any = import_module("pip._internal.resolution.resolvelib.resolver").Resolver
        offered = {
            one.canonical_name: one
            for one in metadata.get_environment(
                [f"{REGISTRY}/{name}" for name in available()]
            ).iter_installed_distributions(local_only=False)
        }
        begin, find = factory.__init__, factory._iter_found_candidates
        to_uninstall, resolve = factory.get_dist_to_uninstall, resolver.resolve

        @wraps(begin)
        def with_registry(self: Any, *args: Any, **options: Any) -> None:
            begin(self, *args, **options)
            self._installed_dists = offered | self._installed_dists

        @wraps(find)
        def found(self: Any, ireqs: Any, *args: Any, **options: Any) -> Any:
            # With --force-reinstall, a package of the registry is as good as one of an index.
            name = ireqs[0].req.name if ireqs else ""
            forced = self._force_reinstall
            if _is_offered(self._installed_dists, offered, name):
                self._force_reinstall = False
            try:
                return find(self, ireqs, *args, **options)
            finally:
                self._force_reinstall = forced

        @wraps(to_uninstall)
        def installed_before(self: Any, candidate: Any) -> Any:
            dist = to_uninstall(self, candidate)
            return None if dist is offered.get(candidate.project_name) else dist

        @wraps(resolve)
        def resolved(resolver: Any, *args: Any, **options: Any) -> Any:
            result = resolve(resolver, *args, **options)
            for name, candidate in resolver._result.mapping.items():
                if getattr(candidate, "dist", None) is offered.get(name, resolver):
                    self._link(candidate.dist)
            return result

        factory.__init__ = with_registry
        factory._iter_found_candidates = found
        factory.get_dist_to_uninstall = installed_before
        resolver.resolve = resolved

    def _link(self, dist: Any) -> None:
        folder, info = os.path.split(dist.info_location)
        one = Distribution(folder, info)
        self.change().install(one)
        self._linked.append(one)

    def _uninstall_links(self, path_set: Any) -> None:
        usual = path_set.from_dist
        session = self

        def from_dist(cls: Any, dist: Any) -> Any:
            if dist.info_location is not None:
                one = Distribution(*os.path.split(dist.info_location))
                if linked_directory(one) is not None:
                    return _Links(session, one, path_set(dist))
            return usual(dist)

        path_set.from_dist = classmethod(from_dist)


class _Links:
    """What pip calls an UninstallPathSet, for a package that is linked."""

    def __init__(self, session: _Session, one: Distribution, usual: Any) -> None:
        self._session = session
        self._one = one
        self._usual = usual
        self._mark = 0

    @property
    def can_rollback(self) -> bool:
        """Whether links were removed."""
        return self._session.change().mark() > self._mark

    def remove(self, auto_confirm: bool = False, verbose: bool = False) -> None:
        """Remove the links, if the user agrees."""
        shown = f"{self._one.raw_name}-{self._one.version}"
        logger = logging.getLogger("pip._internal.req.req_uninstall")
        logger.info("Uninstalling %s:", shown)
        self._usual.add(f"{self._one.folder}/{self._one.info}")
        change = self._session.change()
        self._mark = change.mark()
        if auto_confirm or self._usual._allowed_to_proceed(verbose):
            change.uninstall(self._one)
            logger.info("  Successfully uninstalled %s", shown)

    def rollback(self) -> None:
        """Restore the links."""
        self._session.change().undo(self._mark)

    def commit(self) -> None:
        """The links are removed already."""


def _keep_links(removal: Any) -> None:
    """pip moves a directory as a whole if it knows all files in it, and links to directories are
    no files for it. Never let it move site-packages."""
    usual = removal.compress_for_rename

    def compress(paths: Any) -> Any:
        paths = set(paths)
        compressed = set(usual(paths))
        return paths if any(path.endswith(_SITE) for path in compressed) else compressed

    removal.compress_for_rename = compress


def _is_offered(installed: dict[str, Any], offered: dict[str, Any], name: str) -> bool:
    utilities: Any = import_module("pip._vendor.packaging.utils")
    name = utilities.canonicalize_name(name)
    return name in offered and installed.get(name) is offered[name]


def _has_option(given: list[str], options: tuple[str, ...]) -> bool:
    return any(one.partition("=")[0] in options for one in given)


def _value(given: list[str], *options: str) -> str | None:
    for position, one in enumerate(given):
        name, separator, value = one.partition("=")
        if name in options:
            return value if separator else next(iter(given[position + 1 :]), None)
    return None


def _environment(given: list[str]) -> Environment:
    """Where links go."""
    if target := _value(given, "-t", "--target"):
        return environments.at_target(target)
    if prefix := _value(given, "--prefix"):
        return environments.at_prefix(prefix)
    return environments.current()


def _native_wheel(given: list[str]) -> str | None:
    """The name of a wheel with native code that somebody wants to install."""
    if "install" in given:
        for one in given:
            name = os.path.basename(one.partition("#")[0])
            parts = name.removesuffix(".whl").split("-")
            if name.endswith(".whl") and len(parts) >= 5 and parts[-1] != "any":
                return name
    return None


def _explain_native(name: str) -> None:
    platform = name.removesuffix(".whl").split("-")[-1]
    native = ", ".join(native_available()) or "none"
    print(
        f"ERROR: {name} is not a supported wheel on this platform.\n"
        f"ERROR: It has native code for {platform}. This sandbox runs WebAssembly (wasm32) and "
        "cannot load it.\n"
        f"ERROR: Packages with native code that this sandbox has: {native}",
        file=sys.stderr,
    )
