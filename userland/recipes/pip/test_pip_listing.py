"""`pip list`, `freeze`, `show` and `check`."""

from __future__ import annotations

import json

from userland.recipes.guest_with_pip import SITE, Guest


def test_list_has_what_is_installed_and_what_is_available(guest: Guest) -> None:
    guest.run("pip install -q six tabulate")
    printed = guest.lines("pip list")
    assert printed[:7] == [
        "Package  Version",
        "-------- -------",
        "pip      26.3",
        "six      1.17.0",
        "tabulate 0.10.0",
        "",
        "Available, not installed (pip install NAME):",
    ]
    offered = dict(line.split()[:2] for line in printed[7:])
    assert offered["requests"] == "2.34.2"
    assert "six" not in offered
    assert all(line.endswith(" (not installed)") for line in printed[7:])


def test_formats_for_programs_have_only_what_is_installed(guest: Guest) -> None:
    guest.run("pip install -q six")
    assert json.loads(guest.run("pip list --format=json")) == [
        {"name": "pip", "version": "26.3"},
        {"name": "six", "version": "1.17.0"},
    ]
    assert guest.lines("pip list --format freeze") == ["pip==26.3", "six==1.17.0"]
    assert guest.lines("pip freeze") == ["six==1.17.0"]
    assert guest.lines("pip freeze --all") == ["pip==26.3", "six==1.17.0"]


def test_what_freeze_prints_can_be_installed(guest: Guest) -> None:
    guest.run("pip install -q html5lib && pip freeze > requirements.txt")
    before = guest.installed()
    guest.run("pip uninstall -q -y -r requirements.txt && pip install -q -r requirements.txt")
    assert guest.installed() == before


def test_show_describes_a_package(guest: Guest) -> None:
    guest.run("pip install -q html5lib")
    assert guest.lines("pip show six") == [
        "Name: six",
        "Version: 1.17.0",
        "Summary: Python 2 and 3 compatibility utilities",
        "Home-page: https://github.com/benjaminp/six",
        "Author: Benjamin Peterson",
        "Author-email: benjamin@python.org",
        "License: MIT",
        f"Location: {SITE}",
        "Requires: ",
        "Required-by: html5lib",
    ]
    assert "Requires: six, webencodings" in guest.lines("pip show html5lib")


def test_show_lists_files(guest: Guest) -> None:
    guest.run("pip install -q six")
    printed = guest.lines("pip show -f six")
    assert printed[printed.index("Files:") + 1 :] == [
        "  __pycache__/six.cpython-314.pyc",
        "  six-1.17.0.dist-info/INSTALLER",
        "  six-1.17.0.dist-info/LICENSE",
        "  six-1.17.0.dist-info/METADATA",
        "  six-1.17.0.dist-info/RECORD",
        "  six-1.17.0.dist-info/WHEEL",
        "  six-1.17.0.dist-info/top_level.txt",
        "  six.py",
    ]


def test_show_of_what_is_not_installed_fails(guest: Guest) -> None:
    guest.run("pip show six nonesuch", exit_code=1)
    assert guest.errors == (
        "WARNING: Package(s) not found: nonesuch, six\n"
        "WARNING: six is not installed, but available: pip install six\n"
    )


def test_check_finds_what_is_missing_and_what_does_not_fit(guest: Guest) -> None:
    guest.run("pip install -q requests")
    assert guest.run("pip check") == "No broken requirements found.\n"
    wheel = guest.write_wheel("idna", "9.0")
    guest.run(f"pip install -q ./{wheel} && pip uninstall -q -y certifi")
    assert guest.lines("pip check", exit_code=1) == [
        "requests 2.34.2 has requirement idna<4,>=2.5, but you have idna 9.0.",
        "requests 2.34.2 requires certifi, which is not installed.",
    ]


def test_the_light_commands_and_the_real_pip_agree(guest: Guest) -> None:
    """The real pip does the same with an option that the light part leaves to it."""
    guest.run("pip install -q requests pytest flask")
    pairs = [
        ("pip list --format=json", "pip list --format=json --exclude nothing"),
        ("pip freeze", "pip freeze --exclude nothing"),
        ("pip show requests", "pip --no-cache-dir show requests"),
        ("pip show -f flask pytest", "pip --no-cache-dir show -f flask pytest"),
    ]
    for ours, theirs in pairs:
        printed = guest.run(ours)
        assert guest.run(theirs) == printed
