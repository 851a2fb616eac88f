"""pip in virtual environments; the choice of the interpreter."""

from __future__ import annotations

import pytest

from userland.recipes.guest_with_pip import SITE, Guest


def test_a_virtual_environment_has_pip(guest: Guest) -> None:
    printed = guest.lines("python3 -m venv v && v/bin/pip --version && v/bin/pip install requests")
    place = "/home/user/v/lib/python3.14/site-packages"
    assert printed[0] == f"pip 26.3 from {place}/pip (python 3.14)"
    assert printed[-1].startswith("Successfully installed ")
    assert guest.run("v/bin/python -c 'import requests; print(requests.__file__)'") == (
        f"{place}/requests/__init__.py\n"
    )
    # Nothing outside of it has changed.
    assert guest.installed() == []


def test_an_active_environment_is_used(guest: Guest) -> None:
    printed = guest.lines(
        "python3 -m venv v && . v/bin/activate && pip install -q pygments toml && "
        "which pygmentize && python -c 'import sys, toml; print(sys.prefix)' && "
        "pip uninstall -q -y toml && pip freeze && head -1 v/bin/pygmentize"
    )
    assert printed == [
        "/home/user/v/bin/pygmentize",
        "/home/user/v",
        "Pygments==2.21.0",
        "#!/home/user/v/bin/python3",
    ]


def test_an_environment_without_pip_can_get_it(guest: Guest) -> None:
    guest.run("python3 -m venv --without-pip v && ! test -e v/bin/pip")
    guest.run("v/bin/python -m ensurepip && v/bin/pip install -q six")
    guest.run("v/bin/python -c 'import six'")


def test_pip_itself_can_be_removed_and_installed_again(guest: Guest) -> None:
    assert guest.lines("pip uninstall -y pip")[-1] == "  Successfully uninstalled pip-26.3"
    guest.run("python3 -m pip --version", exit_code=1)
    guest.run("python3 -m ensurepip && pip install -q six")
    assert guest.installed() == ["six"]


def _write_native_package(guest: Guest, name: str) -> None:
    """A package of the registry that wants the interpreter with native packages."""
    folder = f"/usr/lib/python/{name}"
    info = f"{folder}/{name}-1.0.dist-info"
    write = guest.sandbox.files.write
    write(f"{folder}/{name}/__init__.py", "")
    write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    write(f"{info}/native.txt", "required\n")


def test_a_native_package_chooses_the_interpreter_that_has_it(guest: Guest) -> None:
    _write_native_package(guest, "fast")
    _write_native_package(guest, "faster")
    if guest.sandbox.files.exists("/usr/libexec/python3-full"):
        pytest.skip("tested with real packages")
    guest.sandbox.files.write("/usr/libexec/python3-full", "")
    link = "readlink /etc/alternatives/python3"
    assert guest.run(f"pip install -q six && {link}") == "/usr/libexec/python3\n"
    assert guest.run(f"pip install -q fast faster && {link}") == "/usr/libexec/python3-full\n"
    # The interpreter is a stand-in here, so the small one runs pip.
    small = "/usr/libexec/python3 -m pip"
    assert guest.run(f"{small} uninstall -q -y fast && {link}") == "/usr/libexec/python3-full\n"
    assert guest.run(f"{small} uninstall -q -y faster && {link}") == "/usr/libexec/python3\n"
    assert guest.run("ls /etc/alternatives") == "python3\n"


def test_a_virtual_environment_has_an_interpreter_of_its_own(guest: Guest) -> None:
    _write_native_package(guest, "fast")
    if guest.sandbox.files.exists("/usr/libexec/python3-full"):
        pytest.skip("tested with real packages")
    guest.sandbox.files.write("/usr/libexec/python3-full", "")
    links = "readlink v/bin/python3 /etc/alternatives/python3"
    assert guest.lines(f"python3 -m venv v && v/bin/pip install -q fast && {links}") == [
        "/usr/libexec/python3-full",
        "/usr/libexec/python3",
    ]


def test_packages_can_share_a_directory(guest: Guest) -> None:
    write = guest.sandbox.files.write
    for name in ("one", "two"):
        folder = f"/usr/lib/python/shared-{name}"
        write(f"{folder}/shared/{name}.py", f"x = '{name}'")
        info = f"{folder}/shared_{name}-1.0.dist-info"
        write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: shared-{name}\nVersion: 1.0\n")
    program = "python3 -B -c 'import shared.one, shared.two; print(shared.one.x, shared.two.x)'"
    assert guest.run(f"pip install -q shared-one && pip install -q shared-two && {program}") == (
        "one two\n"
    )
    guest.run("pip uninstall -q -y shared-one && python3 -B -c 'import shared.two'")
    guest.run("pip uninstall -q -y shared-two")
    assert guest.lines(f"ls {SITE}") == ["pip", "pip-26.3.dist-info"]
