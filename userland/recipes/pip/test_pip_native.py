"""pip with packages that have native code, if the stage "packages" is built."""

from __future__ import annotations

import pytest

from userland.recipes.guest_with_pip import Guest

_LINK = "readlink /etc/alternatives/python3"


@pytest.fixture
def native(guest: Guest) -> Guest:
    if not guest.sandbox.files.exists("/usr/lib/python/pandas"):
        pytest.skip("the stage of packages is not built: run `make packages`")
    return guest


def test_pandas_can_be_imported_after_its_installation_and_not_after_its_removal(
    native: Guest,
) -> None:
    printed = native.lines("pip install pandas")
    assert printed[-1].startswith("Successfully installed numpy-2.5.4 pandas-3.1.1 ")
    assert native.run(_LINK) == "/usr/libexec/python3-full\n"
    program = "import pandas; print(pandas.DataFrame({'a': [1, 2]}).a.sum())"
    assert native.run(f'python3 -c "{program}"') == "3\n"
    native.run("pip uninstall -q -y pandas && python3 -c 'import numpy'")
    native.run("python3 -c 'import pandas'", exit_code=1)
    assert native.errors.endswith("It is available: pip install pandas\n")
    native.run("pip uninstall -q -y numpy")
    assert native.run(_LINK) == "/usr/libexec/python3\n"


def test_a_virtual_environment_keeps_its_native_packages(native: Guest) -> None:
    native.run("python3 -m venv v && v/bin/pip install -q numpy && pip install -q numpy")
    native.run("pip uninstall -q -y numpy")
    assert native.run("v/bin/python -c 'import numpy; print(numpy.arange(3))'") == "[0 1 2]\n"


def test_another_version_is_not_there(native: Guest) -> None:
    native.run("pip install 'numpy<2' pandas", exit_code=1)
    assert "(from versions: 2.5.4)" in native.errors
    assert native.installed() == []


def test_a_wheel_can_depend_on_a_native_package(native: Guest) -> None:
    wheel = native.write_wheel("mine", "1.0", ["numpy"])
    native.run(f"pip install -q ./{wheel} && python3 -c 'import mine, numpy'")
    assert native.run(_LINK) == "/usr/libexec/python3-full\n"
