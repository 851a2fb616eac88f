"""`pip install` of packages of the registry."""

from __future__ import annotations

from userland.recipes.guest_with_pip import SITE, Guest

_REQUESTS = ["certifi", "charset-normalizer", "idna", "requests", "urllib3"]


def test_a_package_is_not_importable_before_it_is_installed(guest: Guest) -> None:
    guest.run("python3 -c 'import tabulate'", exit_code=1)
    assert guest.errors.splitlines()[-2:] == [
        "ModuleNotFoundError: No module named 'tabulate'",
        "It is available: pip install tabulate",
    ]
    assert guest.lines("pip install tabulate") == [
        "Collecting tabulate",
        "Installing collected packages: tabulate",
        "Successfully installed tabulate-0.10.0",
    ]
    assert guest.run("python3 -c 'import tabulate; print(tabulate.__version__)'") == "0.10.0\n"


def test_dependencies_come_along(guest: Guest) -> None:
    printed = guest.lines("pip install requests")
    assert printed[0] == "Collecting requests"
    assert "Collecting idna<4,>=2.5 (from requests)" in printed
    assert printed[-1] == (
        "Successfully installed certifi-2026.10.18 charset-normalizer-3.5.2 idna-3.20 "
        "requests-2.34.2 urllib3-2.8.0"
    )
    assert guest.installed() == _REQUESTS


def test_a_second_install_changes_nothing(guest: Guest) -> None:
    guest.run("pip install requests")
    before = guest.run(f"ls -l --time-style=full-iso {SITE}")
    printed = guest.lines("pip install requests")
    assert printed[0] == f"Requirement already satisfied: requests in {SITE} (2.34.2)"
    assert all(line.startswith("Requirement already satisfied: ") for line in printed)
    assert guest.run(f"ls -l --time-style=full-iso {SITE}") == before


def test_nothing_is_copied(guest: Guest) -> None:
    guest.run("pip install requests")
    found = guest.lines(f"readlink {SITE}/requests {SITE}/requests-2.34.2.dist-info")
    assert found == [
        "/usr/lib/python/requests/requests",
        "/usr/lib/python/requests/requests-2.34.2.dist-info",
    ]


def test_a_module_without_a_package_is_linked_with_its_compiled_file(guest: Guest) -> None:
    guest.run("pip install six")
    assert guest.run("python3 -c 'import six; print(six.__file__, six.__cached__)'") == (
        f"{SITE}/six.py {SITE}/__pycache__/six.cpython-314.pyc\n"
    )
    guest.run("pip uninstall -y six")
    assert guest.lines(f"ls {SITE}") == ["pip", "pip-26.3.dist-info"]


def test_names_are_normalised_and_names_of_modules_are_understood(guest: Guest) -> None:
    guest.run("pip install Python_DateUtil bs4 TOMLI.W")
    assert {"beautifulsoup4", "python-dateutil", "tomli_w"} <= set(guest.installed())


def test_modules_of_the_library_are_there_already(guest: Guest) -> None:
    assert guest.lines("pip install sqlite3 json") == [
        "Requirement already satisfied: sqlite3 is part of Python 3.14",
        "Requirement already satisfied: json is part of Python 3.14",
    ]


def test_extras_bring_their_dependencies(guest: Guest) -> None:
    guest.run("pip install 'flask[dotenv]'")
    assert {"Flask", "Jinja2", "MarkupSafe", "python-dotenv"} <= set(guest.installed())


def test_markers_are_evaluated(guest: Guest) -> None:
    printed = guest.lines("""pip install 'six; python_version < "3"' 'toml; os_name == "posix"'""")
    assert printed[0] == (
        "Ignoring six: markers 'python_version < \"3\"' don't match your environment"
    )
    assert guest.installed() == ["toml"]


def test_a_version_that_does_not_exist_is_an_error(guest: Guest) -> None:
    assert guest.run("pip install tabulate 'requests<2'", exit_code=1) == ""
    assert guest.errors.splitlines() == [
        "ERROR: Could not find a version that satisfies the requirement requests<2 "
        "(from versions: 2.34.2)",
        "ERROR: No matching distribution found for requests<2",
    ]
    assert guest.installed() == []


def test_specifiers_that_fit_are_accepted(guest: Guest) -> None:
    guest.run("pip install 'requests>=2,<3' 'six~=1.16' 'toml==0.10.*' 'idna!=3.19'")
    assert {"requests", "six", "toml"} <= set(guest.installed())
    assert "Requirement already satisfied" in guest.run("pip install 'requests==2.34.2'")


def test_an_unknown_package_is_an_error_that_names_the_closest_ones(guest: Guest) -> None:
    assert guest.run("pip install tabulate reqeusts", exit_code=1) == ""
    first, second = guest.errors.splitlines()
    assert first.startswith("ERROR: Package not found: reqeusts. Available: requests, ")
    assert ", tabulate, " in first
    assert second == "ERROR: No matching distribution found for reqeusts"
    assert guest.installed() == []


def test_an_invalid_requirement_is_an_error(guest: Guest) -> None:
    guest.run("pip install 'six=>1'", exit_code=1)
    assert guest.errors == "ERROR: Invalid requirement: 'six=>1'\n"
    guest.run("pip install", exit_code=1)
    assert guest.errors.startswith("ERROR: You must give at least one requirement to install")


def test_quiet_prints_nothing(guest: Guest) -> None:
    assert guest.run("pip install -q six && pip -q install six && pip uninstall -q -y six") == ""
    assert guest.errors == ""


def test_a_dry_run_installs_nothing(guest: Guest) -> None:
    assert guest.lines("pip install --dry-run html5lib")[-1] == (
        "Would install html5lib-1.1 six-1.17.0 webencodings-0.6.1"
    )
    assert guest.installed() == []


def test_dependencies_can_be_left_out(guest: Guest) -> None:
    guest.run("pip install --no-deps requests")
    assert guest.installed() == ["requests"]
    assert guest.lines("pip check", exit_code=1)[0] == (
        "requests 2.34.2 requires charset-normalizer, which is not installed."
    )


def test_usual_options_are_accepted(guest: Guest) -> None:
    options = "--user --upgrade --no-cache-dir --disable-pip-version-check --no-input"
    more = "--break-system-packages --root-user-action=ignore --progress-bar off --prefer-binary"
    guest.run(f"pip install {options} {more} six")
    assert guest.installed() == ["six"]


def test_a_directory_of_the_user_can_be_the_target(guest: Guest) -> None:
    guest.run("pip install -q -t lib six && PYTHONPATH=lib python3 -c 'import six'")
    guest.run("pip install -q --prefix=other six")
    assert guest.lines("ls other/lib/python3.14/site-packages") == [
        "__pycache__",
        "six-1.17.0.dist-info",
        "six.py",
    ]
    assert guest.installed() == []


def test_commands_are_installed_and_removed(guest: Guest) -> None:
    guest.run("pip install pygments")
    assert guest.run("cat /usr/local/bin/pygmentize") == (
        "#!/usr/bin/python3\nimport sys\n\nfrom pygments.cmdline import main\n\n"
        'if __name__ == "__main__":\n    sys.exit(main())\n'
    )
    assert guest.run("echo 'x = 1' | pygmentize -l python -f raw | head -1") == (
        "Token.Name\t'x'\n"
    )
    guest.run("pip uninstall -y pygments")
    guest.run("which pygmentize", exit_code=1)


def test_requirements_files_are_read(guest: Guest) -> None:
    write = guest.sandbox.files.write
    write(
        "/home/user/requirements.txt",
        "# what we need\n"
        "six>=1.10 \\\n  ,<2   # continued\n"
        "-r more/nested.txt\n"
        "-c constraints.txt\n"
        "toml==0.10.2 --hash=sha256:0000\n"
        "${WANTED}\n"
        'colorama; sys_platform == "win32"\n',
    )
    write("/home/user/more/nested.txt", "\ufefftabulate\n-r third.txt\n")
    write("/home/user/more/third.txt", "xmltodict\n")
    write("/home/user/constraints.txt", "tabulate<1\nunused==9\n")
    guest.run("WANTED=humanize pip install -r requirements.txt")
    assert guest.installed() == ["humanize", "six", "tabulate", "toml", "xmltodict"]
    guest.run("pip uninstall -q -y -r more/nested.txt")
    assert guest.installed() == ["humanize", "six", "toml"]


def test_a_constraint_that_excludes_the_version_is_an_error(guest: Guest) -> None:
    guest.sandbox.files.write("/home/user/constraints.txt", "idna<3\n")
    guest.run("pip install -c constraints.txt requests", exit_code=1)
    assert "No matching distribution found for idna<4,>=2.5 (from requests)" in guest.errors
    assert guest.installed() == []


def test_a_requirements_file_that_is_missing_is_an_error(guest: Guest) -> None:
    guest.run("pip install -r nothing.txt", exit_code=1)
    assert guest.errors == (
        "ERROR: Could not open requirements file: "
        "[Errno 2] No such file or directory: 'nothing.txt'\n"
    )


def test_all_names_of_the_command_are_the_same(guest: Guest) -> None:
    expected = f"pip 26.3 from {SITE}/pip (python 3.14)\n"
    for command in ("pip --version", "pip3 --version", "python3 -m pip -V"):
        assert guest.run(command) == expected
    guest.run("python3 -m pip install -q six && python -c 'import six'")


def test_metadata_of_installed_packages_is_found(guest: Guest) -> None:
    guest.run("pip install -q requests pygments")
    printed = guest.python(
        """
from importlib.metadata import distributions, entry_points, files, requires, version
print(version("requests"), sorted(d.name for d in distributions())[1:3])
print([e.name for e in entry_points(group="console_scripts") if "pygments" in e.value])
listed = files("requests")
print(len(listed) > 30, all(file.locate().exists() for file in listed))
print(requires("requests")[1])
"""
    )
    assert printed.splitlines() == [
        "2.34.2 ['certifi', 'charset-normalizer']",
        "['pygmentize']",
        "True True",
        "idna<4,>=2.5",
    ]
