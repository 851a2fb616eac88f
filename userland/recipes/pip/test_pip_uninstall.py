"""`pip uninstall`."""

from __future__ import annotations

from userland.recipes.guest_with_pip import SITE, Guest


def test_a_package_is_removed_and_its_dependencies_stay(guest: Guest) -> None:
    guest.run("pip install -q requests")
    assert guest.lines("pip uninstall -y requests") == [
        "Found existing installation: requests 2.34.2",
        "Uninstalling requests-2.34.2:",
        "  Successfully uninstalled requests-2.34.2",
    ]
    assert "idna" in guest.installed()
    guest.run("python3 -c 'import requests'", exit_code=1)


def test_what_is_not_installed_is_skipped(guest: Guest) -> None:
    assert guest.run("pip uninstall -y six nonesuch") == ""
    assert guest.errors == (
        "WARNING: Skipping six as it is not installed.\n"
        "WARNING: Skipping nonesuch as it is not installed.\n"
    )


def test_the_user_is_asked(guest: Guest) -> None:
    guest.run("pip install -q six")
    printed = guest.run("echo n | pip uninstall six")
    assert f"  Would remove:\n    {SITE}/__pycache__\n" in printed
    assert printed.endswith("Proceed (Y/n)? ")
    assert guest.installed() == ["six"]
    assert "Successfully uninstalled" not in guest.run("pip uninstall six < /dev/null")
    assert guest.installed() == ["six"]
    assert "Successfully uninstalled six-1.17.0" in guest.run("echo | pip uninstall six")
    assert guest.installed() == []


def test_uninstall_without_names_is_an_error(guest: Guest) -> None:
    guest.run("pip uninstall -y", exit_code=1)
    assert "You must give at least one requirement to uninstall" in guest.errors


def test_installed_again_it_works_again(guest: Guest) -> None:
    for _ in range(3):
        guest.run("pip install -q python-dateutil && python3 -c 'import dateutil.parser'")
        guest.run("pip uninstall -q -y python-dateutil")
        guest.run("python3 -c 'import dateutil'", exit_code=1)
