"""The real pip: wheels, projects, an index; with the registry's packages as dependencies."""

from __future__ import annotations

import pytest

from userland.recipes.guest_with_pip import SITE, Guest

_BUILD = '[build-system]\nrequires = ["{}"]\nbuild-backend = "{}"\n'
_PROJECT = '[project]\nname = "mine"\nversion = "1.2"\ndependencies = ["tabulate"]\n'


def test_a_wheel_brings_packages_of_the_registry(guest: Guest) -> None:
    wheel = guest.write_wheel("mine", "1.0", ["requests>=2", "six"], commands=["mine = mine:go"])
    printed = guest.lines(f"pip install ./{wheel}")
    assert "Successfully installed mine-1.0" in printed
    assert printed[-1] == (
        "Successfully installed certifi-2026.10.18 charset-normalizer-3.5.2 idna-3.20 "
        "requests-2.34.2 six-1.17.0 urllib3-2.8.0"
    )
    assert guest.run("python3 -c 'import mine, requests, six; print(mine.version)'") == "1.0\n"
    assert "/usr/local/bin/mine" in guest.lines("ls /usr/local/bin/*")
    assert guest.run("pip check") == "No broken requirements found.\n"
    guest.run("pip uninstall -q -y mine six")
    assert "mine" not in guest.run(f"ls {SITE} /usr/local/bin")
    assert "requests" in guest.installed()


def test_without_a_network_an_index_is_asked_once(guest: Guest) -> None:
    guest.run("pip install --index-url https://index.test/simple nonesuch", exit_code=1)
    assert "Retrying" not in guest.errors
    assert "look-up of index.test refused: the sandbox has no network" in guest.errors


@pytest.mark.parametrize(
    "command", ["index versions six", "download six", "wheel six", "list --outdated"]
)
def test_without_a_network_no_command_waits_for_one(guest: Guest, command: str) -> None:
    guest.run("pip install -q six")
    result = guest.sandbox.commands.run(f"pip {command}")
    assert "Retrying" not in result.stderr
    assert "look-up" not in result.stderr, "nobody was asked"


def test_settings_are_shown_as_they_are(guest: Guest) -> None:
    assert guest.run("pip config list") == ""


def test_a_wheel_with_an_unknown_dependency_installs_nothing(guest: Guest) -> None:
    wheel = guest.write_wheel("mine", "1.0", ["six", "nonesuch"])
    guest.run(f"pip install ./{wheel}", exit_code=1)
    assert "No matching distribution found for nonesuch (from mine)" in guest.errors
    assert guest.installed() == []


def test_a_wheel_with_a_conflicting_dependency_installs_nothing(guest: Guest) -> None:
    wheel = guest.write_wheel("mine", "1.0", ["six<1"])
    guest.run(f"pip install ./{wheel}", exit_code=1)
    assert "ERROR: " in guest.errors
    assert guest.installed() == []


def test_a_wheel_can_replace_a_package_of_the_registry_and_back(guest: Guest) -> None:
    guest.run("pip install -q six toml")
    wheel = guest.write_wheel("six", "9.0", files={"six.py": "new = True"})
    printed = guest.run(f"pip install ./{wheel}")
    assert "Successfully uninstalled six-1.17.0" in printed
    assert guest.run("python3 -c 'import six; print(six.new)'") == "True\n"
    assert guest.run("python3 -c 'import toml; print(toml.__version__)'") == "0.10.2\n"
    printed = guest.run("pip install 'six<9'")
    assert "      Successfully uninstalled six-9.0\n" in printed
    assert printed.endswith("Successfully installed six-1.17.0\n")
    assert guest.run("python3 -c 'import six; print(six.__version__)'") == "1.17.0\n"
    assert guest.lines("pip freeze") == ["six==1.17.0", "toml==0.10.2"]


def test_a_newer_version_of_the_registry_replaces_an_older_wheel_on_request(guest: Guest) -> None:
    wheel = guest.write_wheel("six", "1.0", files={"six.py": "old = True"})
    guest.run(f"pip install -q ./{wheel}")
    assert "Requirement already satisfied: six" in guest.run("pip install six")
    assert "Successfully installed six-1.17.0" in guest.run("pip install -U six")


def test_uninstalling_the_last_own_module_leaves_the_links_alone(guest: Guest) -> None:
    """pip moves a directory as a whole if it knows all files in it."""
    guest.run("pip install -q requests")
    before = guest.run(f"ls {SITE}")
    wheel = guest.write_wheel("mine", "1.0", files={"mine.py": "x = 1"})
    guest.run(f"pip install -q ./{wheel} && pip uninstall -q -y mine")
    assert guest.run(f"ls {SITE}") == before
    guest.run("pip install -q six && python3 -c 'import requests'")


def test_a_wheel_with_native_code_is_refused(guest: Guest) -> None:
    file = "fast-1.0-cp314-cp314-manylinux_2_17_x86_64.whl"
    guest.sandbox.files.write(f"/home/user/{file}", b"")
    guest.run(f"pip install ./{file}", exit_code=1)
    first, second, third = guest.errors.splitlines()
    assert first == f"ERROR: {file} is not a supported wheel on this platform."
    assert "native code for manylinux_2_17_x86_64" in second
    assert "WebAssembly (wasm32)" in second
    assert third.startswith("ERROR: Packages with native code that this sandbox has: ")


def test_a_broken_wheel_is_refused(guest: Guest) -> None:
    guest.sandbox.files.write("/home/user/mine-1.0-py3-none-any.whl", b"nonsense")
    guest.run("pip install ./mine-1.0-py3-none-any.whl", exit_code=1)
    assert "mine-1.0-py3-none-any.whl is invalid" in guest.errors
    assert guest.installed() == []


def test_a_project_is_built_with_setuptools_of_the_registry(guest: Guest) -> None:
    write = guest.sandbox.files.write
    build = _BUILD.format("setuptools>=61", "setuptools.build_meta")
    write("/home/user/mine/pyproject.toml", _PROJECT + build)
    write("/home/user/mine/mine.py", "x = 5")
    printed = guest.run("pip install ./mine")
    assert "Successfully built mine\n" in printed
    assert printed.endswith("Successfully installed tabulate-0.10.0\n")
    assert guest.run("python3 -c 'import mine, tabulate; print(mine.x)'") == "5\n"
    # The build tools were for the build only.
    assert guest.installed() == ["mine @ file:///home/user/mine", "tabulate"]


def test_a_project_can_be_edited_while_it_is_installed(guest: Guest) -> None:
    write = guest.sandbox.files.write
    write(
        "/home/user/mine/pyproject.toml", _PROJECT + _BUILD.format("hatchling", "hatchling.build")
    )
    write("/home/user/mine/mine/__init__.py", "x = 5")
    guest.run("pip install -q -e ./mine")
    write("/home/user/mine/mine/__init__.py", "x = 6")
    assert guest.run("cd / && python3 -c 'import mine; print(mine.x)'") == "6\n"
    assert "Editable project location" in guest.lines("pip list")[0]


def test_an_index_in_the_sandbox_is_used_with_the_registry(guest: Guest) -> None:
    wheel = guest.write_wheel("mine", "1.0", ["six", "other"])
    other = guest.write_wheel("other", "2.0")
    guest.run(f"mkdir -p www/simple/mine www/simple/other && mv {wheel} {other} www")
    for name, file in (("mine", wheel), ("other", other)):
        page = f'<a href="/{file}">{file}</a>'
        guest.sandbox.files.write(f"/home/user/www/simple/{name}/index.html", page)
    serve = "python3 -m http.server -d www -b 127.0.0.1 8000 2>/dev/null & sleep 1"
    index = "--index-url http://127.0.0.1:8000/simple"
    printed = guest.run(f"{serve}; pip install {index} mine; kill %1")
    assert "Successfully installed mine-1.0 other-2.0\n" in printed
    assert printed.endswith("Successfully installed six-1.17.0\n")


def test_wheels_in_a_directory_are_found(guest: Guest) -> None:
    guest.write_wheel("mine", "1.0", ["six"])
    guest.run("pip install -q --no-index --find-links . mine")
    assert guest.run("python3 -c 'import mine, six; print(mine.version)'") == "1.0\n"


def test_wheels_are_built(guest: Guest) -> None:
    write = guest.sandbox.files.write
    write(
        "/home/user/mine/pyproject.toml", _PROJECT + _BUILD.format("hatchling", "hatchling.build")
    )
    write("/home/user/mine/mine/__init__.py", "x = 5")
    guest.run("pip wheel -q --no-deps -w dist ./mine")
    assert guest.run("ls dist").startswith("mine-1.2-py")


def test_help_and_settings_are_those_of_pip(guest: Guest) -> None:
    assert "Install packages." in guest.run("pip help")
    assert "--find-links" in guest.run("pip install --help")
    assert guest.run("pip cache dir") == "/home/user/.cache/pip\n"
    guest.run("pip nonsense", exit_code=1)
    assert 'ERROR: unknown command "nonsense"' in guest.errors
