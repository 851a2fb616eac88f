"""pip when things go wrong: damaged files, a full disk, several pips at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from userland.recipes.guest_with_pip import SITE, Guest
from wasmsand import Sandbox


def test_a_link_that_was_deleted_is_made_again(guest: Guest) -> None:
    guest.run(f"pip install -q requests && rm {SITE}/idna")
    assert "Requirement already satisfied: idna" in guest.run("pip install requests")
    guest.run("python3 -c 'import idna, requests'")


def test_metadata_that_was_deleted_is_made_again(guest: Guest) -> None:
    guest.run(f"pip install -q six && rm {SITE}/six-1.17.0.dist-info")
    assert guest.installed() == []
    assert guest.run("pip install six").endswith("Successfully installed six-1.17.0\n")
    assert guest.installed() == ["six"]


def test_what_belongs_to_the_user_is_never_replaced(guest: Guest) -> None:
    guest.run(f"mkdir {SITE}/requests && touch {SITE}/requests/__init__.py")
    guest.run("pip install requests", exit_code=1)
    assert guest.errors == (
        f"ERROR: Could not install packages because {SITE}/requests does not belong to an "
        "installed package. Move or remove it, then try again.\n"
    )
    # Its dependencies were not installed either.
    assert guest.lines(f"ls {SITE}") == ["pip", "pip-26.3.dist-info", "requests"]
    assert guest.lines("ls /usr/local/bin") == []


def test_what_the_user_put_in_the_place_of_a_link_stays(guest: Guest) -> None:
    guest.run(f"pip install -q requests && rm {SITE}/idna && mkdir {SITE}/idna")
    guest.run("pip uninstall -y idna requests")
    assert guest.run(f"ls -d {SITE}/idna") == f"{SITE}/idna\n"
    assert "idna" not in guest.installed()


def test_metadata_of_a_version_that_is_gone_is_forgotten(guest: Guest) -> None:
    old = "/usr/lib/python/six/six-1.0.dist-info"
    guest.run(f"ln -s {old} {SITE}/six-1.0.dist-info && ln -s /nowhere {SITE}/six.py")
    assert guest.installed() == []
    guest.run("pip install -q six && python3 -c 'import six'")
    assert guest.lines("pip freeze") == ["six==1.17.0"]
    guest.run(f"test ! -L {SITE}/six-1.0.dist-info")


def test_damaged_metadata_of_other_packages_is_tolerated(guest: Guest) -> None:
    guest.run(
        f"mkdir {SITE}/a-1.dist-info {SITE}/nonsense.dist-info {SITE}/b-2.dist-info && "
        f"cd {SITE}/b-2.dist-info && "
        "printf 'Requires-Dist: ???\\nRequires-Dist: x @ http://y\\n' > METADATA"
    )
    guest.run("pip install -q six && pip list && pip check && pip show b")


@pytest.fixture
def full() -> Iterator[Guest]:
    """A sandbox with almost no inodes left."""
    with Sandbox(max_inodes=60) as sandbox:
        yield Guest(sandbox)


def test_a_full_disk_leaves_nothing_behind(full: Guest) -> None:
    before = full.run(f"ls {SITE} /usr/local/bin")
    full.run("for i in $(seq 100); do : > f$i || break; done 2>/dev/null; rm -f f1 f2 f3 f4; true")
    full.run("pip install requests", exit_code=1)
    assert full.errors.startswith(
        "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    )
    assert full.run(f"ls {SITE} /usr/local/bin") == before
    full.run("rm -f f* && pip install -q requests && python3 -c 'import requests'")


def test_a_wheel_that_does_not_fit_leaves_nothing_behind() -> None:
    with Sandbox(fs_limit_bytes=24 << 20) as sandbox:
        guest = Guest(sandbox)
        content = {"mine/__init__.py": "", "mine/a.py": "", "mine/data/x": "y" * 3_000_000}
        wheel = guest.write_wheel("mine", "1.0", files=content, commands=["mine = mine:main"])
        guest.run("mkdir -p /usr/local/bin")
        before = guest.run(f"find {SITE} /usr/local/bin -maxdepth 2")
        fill = "dd if=/dev/zero of=fill bs=1M count=40 2>/dev/null; truncate -s -2M fill"
        guest.run(fill)
        guest.run(f"pip install ./{wheel}", exit_code=1)
        assert "[Errno 28] No space left on device" in guest.errors
        assert guest.run(f"find {SITE} /usr/local/bin -maxdepth 2") == before
        guest.run(f"rm fill && pip install -q ./{wheel} && python3 -c 'import mine.a'")
        # An older version stays as it was.
        newer = guest.write_wheel("mine", "2.0", files=content)
        guest.run(f"rm {wheel}; {fill}")
        guest.run(f"pip install ./{newer}", exit_code=1)
        assert "mine-1.0-py3-none-any.whl" in guest.run("pip freeze")
        guest.run("python3 -c 'import mine.a'")


def test_several_pips_at_once_do_not_disturb_each_other(guest: Guest) -> None:
    names = "requests flask pytest rich httpx beautifulsoup4 openpyxl html5lib"
    guest.run(
        f"for name in {names}; do pip install -q $name || touch failed & done; wait; ! ls failed"
    )
    assert guest.run("pip check") == "No broken requirements found.\n"
    guest.run("python3 -c 'import requests, flask, pytest, rich, httpx, bs4, openpyxl, html5lib'")
    guest.run(f"for name in {names}; do pip uninstall -q -y $name & done; wait")
    assert not {"requests", "pytest", "rich", "html5lib"} & set(guest.installed())


def test_a_read_only_place_is_an_error(guest: Guest) -> None:
    guest.run(f"chmod a-w {SITE} && pip install six", exit_code=1)
    assert "Permission denied" in guest.errors
    guest.run(f"chmod u+w {SITE} && pip install -q six")
