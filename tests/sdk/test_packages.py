"""`Sandbox(packages=...)`: packages of the image, through every interface."""

from __future__ import annotations

import json
import time

import pytest

from tests.sdk.backends import MakeSandbox
from wasmsand import (
    PackageError,
    PackageNotFoundError,
    PackageVersionError,
    Sandbox,
    SandboxOptions,
)
from wasmsand.machine.packages.offered import registry
from wasmsand.machine.packages.resolution import resolve

SITE_PACKAGES = "/usr/lib/python3.14/site-packages"
NATIVE_CODE = {
    "numpy": ("import numpy; print(numpy.arange(10).sum())", "45\n"),
    "regex": ("import regex; print(regex.sub('a', 'b', 'aa'))", "bb\n"),
}


@pytest.fixture
def package() -> str:
    """A package of the image that needs no other one, if there is one."""
    for found in registry().all():
        if not found.native and not list(found.needs()) and found.key != "pip":
            return found.key
    for found in registry().all():
        if not list(found.needs()):
            return found.key
    pytest.skip("the image has no packages")


def linked(sandbox: Sandbox) -> list[str]:
    if not sandbox.files.exists(SITE_PACKAGES):
        return []
    return sorted(entry.name for entry in sandbox.files.list(SITE_PACKAGES))


def distributions(sandbox: Sandbox) -> list[str]:
    code = (
        "import json, importlib.metadata as m; "
        "print(json.dumps(sorted({d.metadata['Name'].lower() for d in m.distributions()})))"
    )
    result = sandbox.commands.run(["python3", "-c", code])
    assert result.exit_code == 0, result.stderr
    return [str(name) for name in json.loads(result.stdout)]


def test_a_package_is_installed_from_the_start(make_sandbox: MakeSandbox, package: str) -> None:
    assert package in distributions(make_sandbox(packages=[package]))


def test_a_native_package_works_at_once_and_only_if_it_is_installed(
    make_sandbox: MakeSandbox,
) -> None:
    native = {package.key for package in registry().all() if package.is_native}
    name = next((name for name in NATIVE_CODE if name in native), None)
    if name is None:
        pytest.skip("the stage of packages is not built: run `make packages`")
    code, printed = NATIVE_CODE[name]
    sandbox = make_sandbox(packages=[f"{name}>=2"])
    assert sandbox.commands.run(["python3", "-c", code]).stdout == printed
    sandbox.packages.uninstall(name)
    missing = sandbox.commands.run(["python3", "-c", code])
    assert f"ModuleNotFoundError: No module named '{name}'" in missing.stderr
    sandbox.packages.install(name)
    assert sandbox.commands.run(["python3", "-c", code]).stdout == printed


def test_without_packages_nothing_is_installed(make_sandbox: MakeSandbox) -> None:
    assert {package.name for package in make_sandbox().packages.list()} <= {"pip"}


def test_all_packages_can_be_installed(make_sandbox: MakeSandbox) -> None:
    names = registry().names
    if not names:
        pytest.skip("the image has no packages")
    sandbox = make_sandbox(packages="all")
    found = {package.name for package in sandbox.packages.list()}
    assert found | {"pip"} == set(resolve(["all"], registry())) | {"pip"}
    assert len(found) > len(names) / 2


def test_modules_of_the_standard_library_need_no_package(make_sandbox: MakeSandbox) -> None:
    sandbox = make_sandbox(packages=["sqlite3", "json", "sys"])
    assert sandbox.commands.run("python3 -c 'import sqlite3, json, sys'").exit_code == 0


def test_an_unknown_package_is_named_in_the_error(make_sandbox: MakeSandbox) -> None:
    with pytest.raises(PackageNotFoundError) as caught:
        make_sandbox(packages=["no-such-package"])
    assert caught.value.package == "no-such-package"
    message = str(caught.value)
    assert message.startswith("there is no package 'no-such-package' in the image")
    assert "sandbox.packages.install" in message


def test_a_version_that_the_image_has_not_is_an_error(
    make_sandbox: MakeSandbox, package: str
) -> None:
    with pytest.raises(PackageVersionError) as caught:
        make_sandbox(packages=[f"{package}==0.0.1"])
    assert caught.value.package == package


def test_a_forked_disk_keeps_its_packages(package: str) -> None:
    """The links are ordinary files of the sandbox: a user can remove them."""
    with Sandbox(packages=[package]) as sandbox, Sandbox(packages=[package]) as other:
        before = linked(sandbox)
        for name in before:
            sandbox.files.rm(f"{SITE_PACKAGES}/{name}", recursive=True)
        assert linked(sandbox) == []
        assert linked(other) == before


def test_the_host_and_the_pip_of_the_guest_agree(package: str) -> None:
    with Sandbox() as sandbox:
        if sandbox.commands.run("pip --version").exit_code:
            pytest.skip("the image has no pip")
        assert sandbox.commands.run(f"pip install {package}").exit_code == 0
        assert package in [found.name for found in sandbox.packages.list()]
        assert sandbox.packages.install(package) == []
        sandbox.packages.uninstall(package)
        assert package not in sandbox.commands.run("pip freeze").stdout
        assert [found.name for found in sandbox.packages.install(package)] == [package]
        assert f"{package}==" in sandbox.commands.run("pip freeze").stdout
        assert sandbox.commands.run(f"pip uninstall -y {package}").exit_code == 0
        with pytest.raises(PackageNotFoundError):
            sandbox.packages.uninstall(package)


@pytest.mark.parametrize("wrong", ["numpy", 7, b"numpy", {"numpy": 1}, [7], [""], ["a\0b"]])
def test_a_wrong_argument_is_refused(wrong: object) -> None:
    with pytest.raises((TypeError, ValueError), match="packages"):
        SandboxOptions(packages=wrong)  # type: ignore[arg-type]


def test_text_that_is_no_requirement_is_refused(make_sandbox: MakeSandbox) -> None:
    with pytest.raises(ValueError, match="is not a package's name"):
        make_sandbox(packages=["../escape"])


def test_too_many_requirements_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 1000"):
        SandboxOptions(packages=["six"] * 1001)


def test_package_errors_are_errors_of_the_sandbox() -> None:
    assert issubclass(PackageNotFoundError, PackageError)


def test_packages_do_not_make_creation_slower(package: str) -> None:
    def microseconds(**options: object) -> float:
        best = float("inf")
        for _ in range(20):
            started = time.perf_counter()
            for _ in range(20):
                Sandbox(**options).kill()  # type: ignore[arg-type]
            best = min(best, (time.perf_counter() - started) / 20)
        return best * 1e6

    Sandbox(packages=[package]).kill()
    assert microseconds(packages=[package]) < 2 * microseconds() + 50
