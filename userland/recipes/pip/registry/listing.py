"""`pip list`, `pip freeze`, `pip show` and `pip check`.

Rules: the output is that of pip. `pip list` in columns also has what the registry offers, below
what is installed; the other formats are for programs and have only what is installed.
"""

from __future__ import annotations

import json

from . import environment as environments
from .arguments import Arguments
from .distributions import Distribution, in_registry
from .names import available, registry_name
from .printing import Printer
from .requirements_files import ForRealPip

_NOT_FROZEN = ("pip",)


def list_packages(given: list[str]) -> int:
    """Run `pip list`."""
    arguments = Arguments(given, {}, {"--format": "--format"})
    installed = _sorted(environments.current().installed())
    kind = arguments.last("--format") or "columns"
    if kind == "json":
        rows = [{"name": one.raw_name, "version": one.version} for one in installed]
        print(json.dumps(rows))
    elif kind == "freeze":
        for one in installed:
            print(f"{one.raw_name}=={one.version}")
    elif kind == "columns" and not any(_is_editable(one) for one in installed):
        _print_columns(installed)
    else:
        raise ForRealPip(kind)
    return 0


def _is_editable(one: Distribution) -> bool:
    return '"editable": true' in one.read("direct_url.json")


def _print_columns(installed: list[Distribution]) -> None:
    here = {one.name for one in installed}
    offered = [one for name in available() if name not in here and (one := in_registry(name))]
    rows = [(one.raw_name, one.version) for one in installed]
    width = max(len(name) for name, _ in [("Package", ""), *rows])
    versions = max(len(version) for _, version in [("", "Version"), *rows])
    print(f"{'Package':{width}} Version")
    print(f"{'-' * width} {'-' * versions}")
    for name, version in rows:
        print(f"{name:{width}} {version}")
    if offered:
        width = max(len(one.info.partition("-")[0]) for one in offered)
        print("\nAvailable, not installed (pip install NAME):")
        for one in offered:
            print(f"  {one.name:{width}} {one.version} (not installed)")


def freeze(given: list[str]) -> int:
    """Run `pip freeze`. Raises `ForRealPip`."""
    arguments = Arguments(given, {"--all": "--all", "-l": "", "--local": ""}, {})
    installed = _sorted(environments.current().installed())
    if any(one.has("direct_url.json") for one in installed):
        raise ForRealPip
    for one in installed:
        if arguments.has("--all") or one.name not in _NOT_FROZEN:
            print(f"{one.raw_name}=={one.version}")
    return 0


def show(given: list[str]) -> int:
    """Run `pip show`."""
    arguments = Arguments(given, {"-f": "--files", "--files": "--files"}, {})
    printer = Printer(arguments.count("--quiet"))
    if not arguments.words:
        printer.warning("ERROR: Please provide a package name or names.")
        return 1
    installed = environments.current().installed()
    missing = [word for word in arguments.words if registry_name(word) not in installed]
    if missing:
        printer.warning(f"Package(s) not found: {', '.join(sorted(missing))}")
        for word in missing:
            if in_registry(registry_name(word)) is not None:
                printer.warning(f"{word} is not installed, but available: pip install {word}")
    found = [installed[registry_name(word)] for word in arguments.words if word not in missing]
    for index, one in enumerate(found):
        if index:
            print("---")
        _show(one, installed, arguments.has("--files"))
    return 0 if found else 1


def _show(one: Distribution, installed: dict[str, Distribution], files: bool) -> None:
    needs = sorted({needed.raw_name for needed in one.requirements()}, key=str.lower)
    needed_by = sorted(
        (
            other.raw_name
            for other in installed.values()
            if one.name in {needed.name for needed in other.requirements()}
        ),
        key=str.lower,
    )
    print(f"Name: {one.raw_name}")
    print(f"Version: {one.version}")
    print(f"Summary: {one.field('Summary')}")
    print(f"Home-page: {_home_page(one)}")
    print(f"Author: {one.field('Author')}")
    print(f"Author-email: {one.field('Author-email')}")
    if expression := one.field("License-Expression"):
        print(f"License-Expression: {expression}")
    else:
        print(f"License: {one.field('License')}")
    print(f"Location: {one.folder}")
    print(f"Requires: {', '.join(needs)}")
    print(f"Required-by: {', '.join(needed_by)}")
    if files:
        print("Files:")
        for file in sorted(line.rsplit(",", 2)[0] for line in one.read("RECORD").splitlines()):
            print(f"  {file}")


def _home_page(one: Distribution) -> str:
    if page := one.field("Home-page"):
        return page
    for address in one.fields("Project-URL"):
        label, _, page = address.partition(",")
        if "".join(filter(str.isalnum, label)).lower() == "homepage":
            return page.strip()
    return ""


def check(given: list[str]) -> int:
    """Run `pip check`."""
    Arguments(given, {}, {})
    installed = environments.current().installed()
    problems = []
    for one in _sorted(installed):
        for needed in one.requirements():
            other = installed.get(needed.name)
            if other is None:
                problems.append(
                    f"{one.name} {one.version} requires {needed.name}, which is not installed."
                )
            elif not needed.accepts(other.version):
                problems.append(
                    f"{one.name} {one.version} has requirement {needed.text}, "
                    f"but you have {other.name} {other.version}."
                )
    print("\n".join(problems) or "No broken requirements found.")
    return 1 if problems else 0


def _sorted(installed: dict[str, Distribution]) -> list[Distribution]:
    return [installed[name] for name in sorted(installed)]
