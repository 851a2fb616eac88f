"""The registry of packages: names, versions, dependencies, and what is said when they are wrong."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.machine.packages.small_image import small_image
from wasmsand.machine.packages.metadata import BadMetadata, parse_metadata
from wasmsand.machine.packages.problems import PackageFault, PackageProblem
from wasmsand.machine.packages.registry import ALIASES, NATIVE, Registry
from wasmsand.machine.packages.resolution import InvalidPackageName, resolve

pytestmark = pytest.mark.no_userland
RECIPES = Path(__file__).resolve().parents[3] / "userland" / "recipes"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(small_image())


def problem_of(requirement: str, registry: Registry) -> PackageProblem:
    with pytest.raises(PackageProblem) as caught:
        resolve([requirement], registry)
    return caught.value


def test_the_registry_reads_what_a_package_says(registry: Registry) -> None:
    package = registry.get("pandas")
    assert package is not None
    assert (package.name, package.version, package.summary) == ("pandas", "3.1.1", "pandas!")
    assert package.native == "required"
    assert registry.get("unknown") is None


@pytest.mark.parametrize(
    ("requirement", "needed"),
    [
        ("six", ["six"]),
        ("SIX", ["six"]),
        ("pandas", ["numpy", "pandas", "python-dateutil", "six"]),
        ("pandas[excel]", ["numpy", "openpyxl", "pandas", "python-dateutil", "six"]),
        ("Python_Dateutil", ["python-dateutil", "six"]),
        ("python.dateutil", ["python-dateutil", "six"]),
        ("dateutil", ["python-dateutil", "six"]),
        ("zoo", ["zoo-one"]),
        ("numpy>=2", ["numpy"]),
        ("numpy==2.5.*", ["numpy"]),
        ("ring-a", ["ring-a", "ring-b"]),
        ("sqlite3", []),
        ("json", []),
        ("sys", []),
        ('six; python_version < "3"', []),
    ],
)
def test_a_requirement_brings_its_dependencies(
    requirement: str, needed: list[str], registry: Registry
) -> None:
    assert sorted(resolve([requirement], registry)) == needed


def test_a_field_may_have_lines_of_blanks() -> None:
    text = b"Name: a\nVersion: 1\nLicense: one\n    \n    two\nRequires-Dist: b\n\nText: c\n"
    assert [needed.name for needed in parse_metadata(text).requires] == ["b"]


def test_dependencies_come_first(registry: Registry) -> None:
    order = resolve(["pandas"], registry)
    assert order.index("six") < order.index("python-dateutil") < order.index("pandas")


def test_all_is_every_package_whose_dependencies_are_there(registry: Registry) -> None:
    assert sorted(resolve(["all"], registry)) == sorted(set(registry.names) - {"broken"})


def test_a_misspelt_name_is_answered_with_the_closest_ones(registry: Registry) -> None:
    problem = problem_of("numpi", registry)
    assert problem.kind is PackageFault.NOT_FOUND
    assert problem.package == "numpi"
    assert str(problem) == (
        "there is no package 'numpi' in the image; did you mean 'numpy'? Available packages: "
        "broken, numpy, openpyxl, pandas, python-dateutil, ring-a, ring-b, six, zoo-one, zoo-two."
    )


def test_a_name_like_no_other_is_answered_with_what_there_is(registry: Registry) -> None:
    assert str(problem_of("qqqqqq", registry)).startswith(
        "there is no package 'qqqqqq' in the image. Available packages: broken, numpy, "
    )


def test_a_native_package_that_is_not_built_names_the_command_that_installs_it(
    registry: Registry,
) -> None:
    for name in ("PIL", "pillow", "Pillow"):
        problem = problem_of(name, registry)
        assert problem.kind is PackageFault.NOT_BUILT
        assert problem.package == "pillow"
        assert "`pip install wasmsand-packages`" in str(problem)
        assert "`make packages`" in str(problem)


def test_another_version_than_the_one_in_the_image_is_an_error(registry: Registry) -> None:
    problem = problem_of("numpy<2", registry)
    assert problem.kind is PackageFault.VERSION
    assert str(problem) == (
        "numpy<2 is wanted, but the image has numpy 2.5.4, and no other version of it"
    )


def test_a_dependency_that_is_missing_is_named_with_its_user(registry: Registry) -> None:
    assert str(problem_of("broken", registry)).startswith(
        "there is no package 'not-there', which broken needs, in the image"
    )


@pytest.mark.parametrize(
    "text", ["", " ", "a b", "../x", "/x", "x.whl", "-r", "x @ https://example.org/x.whl", "x>>1"]
)
def test_text_that_is_not_a_requirement_is_refused(text: str, registry: Registry) -> None:
    with pytest.raises((InvalidPackageName, PackageProblem)):
        resolve([text], registry)


def test_private_modules_of_the_standard_library_are_not_packages(registry: Registry) -> None:
    with pytest.raises(InvalidPackageName):
        resolve(["_private"], registry)


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"Name: x\n",
        b"Name: x\nVersion: one\n",
        b"Name: -\nVersion: 1\n",
        b"Name: x\nVersion: 1\nRequires-Dist: a b c\n",
        b"Name: x\nVersion: 1\n" + b"Requires-Dist: y\n" * 3000,
        b"x" * (1 << 21),
    ],
)
def test_invalid_metadata_is_refused(metadata: bytes) -> None:
    with pytest.raises(BadMetadata):
        parse_metadata(metadata)


@pytest.mark.parametrize(
    "line", ["x = os; import evil:main", "../x = m:f", "x = m:f()", ". = m:f", "x=m:"]
)
def test_an_entry_point_that_is_not_a_name_and_a_function_is_refused(line: str) -> None:
    with pytest.raises(BadMetadata):
        parse_metadata(b"Name: x\nVersion: 1\n", f"[console_scripts]\n{line}\n".encode())


def test_the_native_packages_are_those_of_the_recipes() -> None:
    found = set()
    for file in RECIPES.glob("*/recipe.toml"):
        recipe = tomllib.loads(file.read_text("utf-8"))
        paths = [entry["path"] for entry in recipe.get("files", ())]
        is_package = any(path.startswith("/usr/lib/python/") for path in paths)
        if is_package and recipe.get("stage") == "packages":
            found.add(recipe["name"])
    pure = {"python-dateutil"}
    assert found - pure <= NATIVE


def test_aliases_are_normalised() -> None:
    assert all(alias == alias.lower() and "_" not in alias for alias in ALIASES)
