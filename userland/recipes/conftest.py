"""Tests beside recipes run the built programs in a sandbox.

All of them need the built user space: they are marked `userland`, and fail when it is
not there. Those of the stage "packages" use `full_python`, and are skipped when that stage is not
built.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wasmsand import Sandbox
from wasmsand.machine import Machine, image_programs

HERE = Path(__file__).resolve().parent
MANIFEST = HERE.parents[1] / "src/wasmsand/_image/manifest.json"

# Failed checks in these show both sides, as in a test.
pytest.register_assert_rewrite(
    "userland.recipes.script_tables",
    "userland.recipes.compressors",
    "userland.recipes.guest_with_pip",
    "userland.recipes.guest_server",
)

from userland.recipes.guest_server import start_web_server  # noqa: E402  # after the lines above
from userland.recipes.guest_with_pip import Guest  # noqa: E402

# One start is then like the next: see wasmsand.machine.renewal.
os.environ.setdefault("WASMSAND_RENEWAL", "off")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("userland")


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    if not MANIFEST.is_file():
        pytest.fail("the user space is not built: run `make build`")
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def guest(sandbox: Sandbox) -> Guest:
    """For packages and pip."""
    return Guest(sandbox)


@pytest.fixture
def full_python(sandbox: Sandbox) -> Callable[[str], str]:
    """Runs a program in the interpreter that has all packages; returns what it printed."""
    if not any(program.name == "python-full" for program in image_programs()):
        pytest.skip("the stage of packages is not built: run `make packages`")
    # As `pip install` does, for every package.
    site = "/usr/lib/python3.14/site-packages"
    sandbox.commands.run(f"cd {site} && ln -s $(ls -d /usr/lib/python/*/* | grep -v __pycache__) .")

    def run(program: str) -> str:
        sandbox.files.write("/tmp/program.py", program)
        result = sandbox.commands.run("/usr/libexec/python3-full /tmp/program.py")
        assert result.exit_code == 0, result.stderr
        return result.stdout

    return run


@pytest.fixture
def machine() -> Iterator[Machine]:
    """For programs that need a terminal (see `screen.py`)."""
    if not MANIFEST.is_file():
        pytest.fail("the user space is not built: run `make build`")
    machine = Machine()
    try:
        yield machine
    finally:
        machine.close()


@pytest.fixture
def served(sandbox: Sandbox) -> Sandbox:
    """A sandbox with a web server in it."""
    start_web_server(sandbox)
    return sandbox
