"""The registry as a whole."""

from __future__ import annotations

from userland.builder.cli import RECIPES, ROOT
from userland.builder.recipe import load_recipes
from userland.recipes.guest_with_pip import Guest
from wasmsand import PackageNotBuiltError, Sandbox
from wasmsand.machine.packages.offered import registry

_NATIVE = {"lxml", "matplotlib", "numpy", "pandas", "pillow"}
_NEED_MORE = {"blackd", "soupsieve"}
"""Modules that import what their metadata do not name: aiohttp, and beautifulsoup4."""


def _table() -> dict[str, str]:
    """The versions of all pure packages, by their names in the registry."""
    return {
        recipe.files[0].path.rpartition("/")[2]: recipe.version
        for recipe in load_recipes(RECIPES, ROOT).values()
        if recipe.row is not None
    }


def test_every_package_of_the_table_is_in_the_registry(guest: Guest) -> None:
    listed = {
        (folder, info.removesuffix(".dist-info").partition("-")[2])
        for folder, info in (
            line.split("/") for line in guest.lines("cd /usr/lib/python && ls -d */*.dist-info")
        )
    }
    table = _table()
    assert len(table) > 80
    assert set(table.items()) <= listed


def test_all_packages_fit_together(guest: Guest) -> None:
    """Their dependencies are packages of the registry, in versions that fit."""
    guest.run(f"pip install -q --no-deps {' '.join(_table())}")
    problems = guest.sandbox.commands.run("pip check").stdout.splitlines()
    others = [
        line
        for line in problems
        if not any(f"requires {name}, which is not installed." in line for name in _NATIVE)
    ]
    assert others in ([], ["No broken requirements found."])


def test_no_two_packages_have_the_same_entry(guest: Guest) -> None:
    printed = guest.lines(
        "cd /usr/lib/python && ls -d */* */__pycache__/* | cut -d/ -f2- | "
        "grep -v '^__pycache__$' | sort | uniq -d"
    )
    assert printed == []


def test_records_list_exactly_the_files_that_are_there(guest: Guest) -> None:
    program = """
import os
for name in sorted(os.listdir("/usr/lib/python")):
    root = f"/usr/lib/python/{name}"
    info = next(e for e in os.listdir(root) if e.endswith(".dist-info"))
    if open(f"{root}/{info}/WHEEL").read().find("Root-Is-Purelib: true") < 0:
        continue
    rows = open(f"{root}/{info}/RECORD").read().splitlines()
    listed = {row.rsplit(",", 2)[0].strip('"') for row in rows}
    there = {
        os.path.relpath(f"{folder}/{file}", root)
        for folder, _, files in os.walk(root)
        for file in files
    }
    if listed != there:
        print(name, sorted(listed ^ there)[:3])
"""
    assert guest.python(program) == ""


def test_packages_have_no_tests_inside(guest: Guest) -> None:
    """Of their own, to keep the image small. `sympy.testing` and the like are no tests."""
    assert guest.lines("find /usr/lib/python -type d -name tests -o -type d -name test") == []


def test_pip_sees_the_dependencies_that_the_metadata_name(guest: Guest) -> None:
    """The light commands read the metadata of every package as the standard library does."""
    program = """
import os, sys
from importlib.metadata import PathDistribution
from pathlib import Path
from pip._registry.distributions import in_registry
checked = 0
for name in sorted(os.listdir("/usr/lib/python")):
    light = in_registry(name)
    full = PathDistribution(Path(light.folder) / light.info)
    expected = list(full.requires or [])
    if light.fields("Requires-Dist") != expected or light.field("Version") != full.version:
        print(name, light.fields("Requires-Dist"), expected)
    checked += 1
print(checked > 80)
"""
    assert guest.python(program) == "True\n"


def test_every_package_can_be_imported_with_what_comes_with_it() -> None:
    packages = [package.key for package in registry().all()]
    assert len(packages) > 80
    has_second_stage = "numpy" in packages
    # pyyaml's `_yaml` says that it does not exist if there is no libyaml.
    left_out = _NEED_MORE | (set() if has_second_stage else {"_yaml"})
    program = f"""
import importlib, os, sys
root = f"/usr/lib/python/{{sys.argv[1]}}"
for entry in sorted(os.listdir(root)):
    name, suffix = os.path.splitext(entry)
    is_module = suffix == ".py" or (not suffix and os.path.isdir(f"{{root}}/{{entry}}"))
    if is_module and name.isidentifier() and name not in {{"__pycache__", *{left_out}}}:
        importlib.import_module(name)
"""
    failures = {}
    for package in packages:
        try:
            sandbox = Sandbox(packages=[package])
        except PackageNotBuiltError as error:
            if has_second_stage:
                failures[package] = str(error)
            continue
        with sandbox:
            sandbox.files.write("/tmp/program.py", program)
            result = sandbox.commands.run(["python3", "/tmp/program.py", package])
            if result.exit_code:
                failures[package] = result.stderr.splitlines()[-1]
    assert failures == {}
