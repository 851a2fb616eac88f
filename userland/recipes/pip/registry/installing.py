"""`pip install` and `pip uninstall` of packages of the registry.

Rules: everything is decided before anything is changed; what the registry cannot do is raised as
`ForRealPip`; a change is made as a whole or not at all.
"""

from __future__ import annotations

import os
import sys

from . import environment as environments
from .arguments import Arguments
from .distributions import Distribution
from .environment import Environment, linked_directory
from .links import Change, InTheWay
from .names import is_standard, not_found, registry_name
from .outside import index_is_configured
from .printing import Printer
from .requirements import BadRequirement, Requirement
from .requirements_files import FileMissing, ForRealPip, RequirementsFiles
from .resolution import NoSuchVersion, NotInRegistry, Plan, Wishes, resolve

_INSTALL_FLAGS = {
    "-U": "--upgrade",
    "--upgrade": "--upgrade",
    "--no-deps": "--no-deps",
    "--no-dependencies": "--no-deps",
    "--dry-run": "--dry-run",
    "--force-reinstall": "--force",
    "-I": "--force",
    "--ignore-installed": "--force",
    "--user": "",
    "--no-user": "",
    "--pre": "",
    "--prefer-binary": "",
    "--break-system-packages": "",
    "--compile": "",
    "--no-compile": "",
    "--no-build-isolation": "",
    "--use-pep517": "",
    "--no-index": "--no-index",
    "--no-warn-conflicts": "",
    "--no-warn-script-location": "",
    "--ignore-requires-python": "",
}
_INSTALL_VALUES = {
    "-r": "--requirement",
    "--requirement": "--requirement",
    "-c": "--constraint",
    "--constraint": "--constraint",
    "-t": "--target",
    "--target": "--target",
    "--prefix": "--prefix",
    "-i": "--index",
    "--index-url": "--index",
    "--extra-index-url": "--index",
    "-f": "--index",
    "--find-links": "--index",
    "--only-binary": "",
    "--no-binary": "",
    "--progress-bar": "",
    "--root-user-action": "",
    "--upgrade-strategy": "",
    "--build-constraint": "",
}
_ARCHIVES = (".whl", ".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".zip")


def install(given: list[str]) -> int:
    """Run `pip install`; returns the exit status. Raises `ForRealPip`."""
    arguments = Arguments(given, _INSTALL_FLAGS, _INSTALL_VALUES)
    printer = Printer(arguments.count("--quiet"))
    files = RequirementsFiles()
    try:
        for path in arguments.all("--requirement"):
            files.read(path)
        for path in arguments.all("--constraint"):
            files.read(path, constraints=True)
    except FileMissing as error:
        printer.error(str(error))
        return 1
    words = arguments.words + files.requirements
    if not words and not arguments.all("--requirement"):
        printer.error('You must give at least one requirement to install (see "pip help install")')
        return 1
    requirements = _requirements(words, printer)
    if requirements is None:
        return 1
    constraints = [_constraint(line) for line in files.constraints]
    wishes = Wishes(
        arguments.has("--upgrade"),
        not arguments.has("--no-deps"),
        arguments.has("--force"),
        tuple(constraints),
    )
    where = _environment(arguments)
    installed = where.installed()
    outside = bool(arguments.all("--index")) or (
        index_is_configured() and not arguments.has("--no-index")
    )
    try:
        plan = resolve(requirements, installed, wishes)
    except NotInRegistry as error:
        if outside:
            raise ForRealPip(error.requirement.text) from None
        _print_unknown(error.requirement, printer)
        return 1
    except NoSuchVersion as error:
        if outside:
            raise ForRealPip(error.requirement.text) from None
        _print_no_such_version(error, printer)
        return 1
    return _carry_out(plan, where, installed, arguments.has("--dry-run"), printer)


def _environment(arguments: Arguments) -> Environment:
    target, prefix = arguments.last("--target"), arguments.last("--prefix")
    if target is not None:
        return environments.at_target(target)
    return environments.current() if prefix is None else environments.at_prefix(prefix)


def _requirements(words: list[str], printer: Printer) -> list[Requirement] | None:
    """The user's requirements; None after an error message. Raises `ForRealPip`."""
    found = []
    for word in words:
        if "://" in word or "/" in word.partition(";")[0] or word.endswith(_ARCHIVES):
            raise ForRealPip(word)
        if word in (".", "..") or "@" in word:
            raise ForRealPip(word)
        try:
            requirement = Requirement(word)
            applies = requirement.applies()
        except BadRequirement:
            printer.error(f"Invalid requirement: {word!r}")
            return None
        name = registry_name(requirement.name)
        if not applies:
            printer.info(
                f"Ignoring {requirement.raw_name}: markers {requirement.marker!r} "
                "don't match your environment"
            )
        elif is_standard(requirement.raw_name) and not os.path.isdir(f"/usr/lib/python/{name}"):
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            printer.info(
                f"Requirement already satisfied: {requirement.raw_name} is part of Python {version}"
            )
        else:
            found.append(requirement)
    return found


def _constraint(line: str) -> Requirement:
    try:
        return Requirement(line)
    except BadRequirement:
        raise ForRealPip(line) from None


def _print_unknown(requirement: Requirement, printer: Printer) -> None:
    shown = f"{requirement.text}{requirement.because}"
    if requirement.origin is not None:
        printer.error(
            f"Could not find a version that satisfies the requirement {shown} (from versions: none)"
        )
    printer.error(not_found(registry_name(requirement.name)))
    printer.error(f"No matching distribution found for {shown}")


def _print_no_such_version(error: NoSuchVersion, printer: Printer) -> None:
    shown = f"{error.requirement.text}{error.requirement.because}"
    printer.error(
        f"Could not find a version that satisfies the requirement {shown} "
        f"(from versions: {error.offered.version})"
    )
    printer.error(f"No matching distribution found for {shown}")


def _carry_out(
    plan: Plan,
    where: Environment,
    installed: dict[str, Distribution],
    dry_run: bool,
    printer: Printer,
) -> int:
    for requirement, one in plan.satisfied:
        printer.info(
            f"Requirement already satisfied: {requirement.text} in {one.folder}"
            f"{requirement.because} ({one.version})"
        )
    shown: set[str] = set()
    for requirement in plan.collected:
        if requirement.name not in shown:
            printer.info(f"Collecting {requirement.text}{requirement.because}")
            shown.add(requirement.name)
    taken = sorted(plan.install.values(), key=lambda one: one.name)
    summary = " ".join(f"{one.raw_name}-{one.version}" for one in taken)
    if dry_run:
        if taken:
            printer.info(f"Would install {summary}")
        return 0
    try:
        with Change(where) as change:
            broken = [
                one
                for _, one in plan.satisfied
                if one.folder == where.site and not change.is_complete(one)
            ]
            for one in broken:
                change.repair(one)
            _apply(plan, where, installed, change, printer)
    except InTheWay as error:
        printer.error(
            f"Could not install packages because {error} does not belong to an installed "
            "package. Move or remove it, then try again."
        )
        return 1
    except OSError as error:
        printer.error(f"Could not install packages due to an OSError: {error}")
        return 1
    if taken:
        printer.info(f"Successfully installed {summary}")
    return 0


def _apply(
    plan: Plan,
    where: Environment,
    installed: dict[str, Distribution],
    change: Change,
    printer: Printer,
) -> None:
    if not plan.install:
        return
    order = ", ".join(one.raw_name for one in plan.install.values())
    printer.info(f"Installing collected packages: {order}")
    for name, one in plan.install.items():
        before = installed.get(name)
        if before is not None and before.folder == where.site:
            printer.info(f"  Attempting uninstall: {before.raw_name}")
            printer.info(f"    Found existing installation: {before.raw_name} {before.version}")
            printer.info(f"    Uninstalling {before.raw_name}-{before.version}:")
            if linked_directory(before) is not None:
                change.uninstall(before)
            else:
                from .real_pip import remove_files

                change.later(*remove_files(before.name))
            printer.info(f"      Successfully uninstalled {before.raw_name}-{before.version}")
        change.install(one)
    change.choose_interpreter()


_UNINSTALL_FLAGS = {
    "-y": "--yes",
    "--yes": "--yes",
    "--break-system-packages": "",
}
_UNINSTALL_VALUES = {
    "-r": "--requirement",
    "--requirement": "--requirement",
    "--root-user-action": "",
}


def uninstall(given: list[str]) -> int:
    """Run `pip uninstall`; returns the exit status. Raises `ForRealPip`."""
    arguments = Arguments(given, _UNINSTALL_FLAGS, _UNINSTALL_VALUES)
    printer = Printer(arguments.count("--quiet"))
    files = RequirementsFiles()
    try:
        for path in arguments.all("--requirement"):
            files.read(path)
    except FileMissing as error:
        printer.error(str(error))
        return 1
    names = _names(arguments.words + files.requirements, printer)
    if names is None:
        return 1
    where = environments.current()
    installed = where.installed()
    if any(
        name in installed and linked_directory(installed[name]) is None for name in names.values()
    ):
        # The real pip knows how to uninstall what it installed, and links as well.
        raise ForRealPip
    try:
        for shown, name in names.items():
            one = installed.get(name)
            if one is None:
                printer.warning(f"Skipping {shown} as it is not installed.")
            else:
                _uninstall(one, where, arguments.has("--yes"), printer)
    except OSError as error:
        printer.error(f"Could not uninstall packages due to an OSError: {error}")
        return 1
    return 0


def _names(words: list[str], printer: Printer) -> dict[str, str] | None:
    """Normalised names by what the user calls them; None after an error message."""
    if not words:
        printer.error(
            'You must give at least one requirement to uninstall (see "pip help uninstall")'
        )
        return None
    names = {}
    for word in words:
        try:
            requirement = Requirement(word)
        except BadRequirement:
            printer.error(f"Invalid requirement: {word!r}")
            return None
        names[requirement.raw_name] = registry_name(requirement.name)
    return names


def _uninstall(one: Distribution, where: Environment, sure: bool, printer: Printer) -> None:
    shown = f"{one.raw_name}-{one.version}"
    printer.info(f"Found existing installation: {one.raw_name} {one.version}")
    printer.info(f"Uninstalling {shown}:")
    if not sure and not _asked(one):
        return
    with Change(where) as change:
        change.uninstall(one)
        change.choose_interpreter()
    printer.info(f"  Successfully uninstalled {shown}")


def _asked(one: Distribution) -> bool:
    """Whether the user agrees."""
    folder = linked_directory(one)
    assert folder is not None, "the real pip uninstalls the others"
    print("  Would remove:")
    for entry in sorted(os.listdir(folder)):
        print(f"    {one.folder}/{entry}")
    while True:
        try:
            answer = input("Proceed (Y/n)? ").strip().lower()
        except EOFError:
            print()
            return False
        if answer in ("", "y", "n"):
            return answer != "n"
        print(f"Your response ({answer!r}) was not one of the expected responses: y, n, (nothing)")
