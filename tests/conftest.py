"""What all tests share: which of them need the built user space.

A test in one of USERLAND_PLACES runs real programs in the sandbox and is marked
`userland`. `make check` deselects these; everywhere else they fail, and do not skip,
when the programs are not built: a missing build must never look like success.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
REPOSITORY = TESTS.parent
MANIFEST = REPOSITORY / "src" / "wasmsand" / "_image" / "manifest.json"

USERLAND_PLACES = frozenset(
    {
        "sdk",
        "cli",
        "rpc",
        "http",
        "fleet",
        "llm_tools",
        "mcp",
        "site",
        "line",
        "limits",
        "wheel",
        "first_hour",
        "machine",
        "programs",
        "conformance",
        "wasi",
        "v86",
        "differential",
    }
    | {"test_readme.py"}
)

# Without renewal, every start is like the first, and no preparation uses the CPU during a test.
# The tests of renewal itself remove the variable.
os.environ.setdefault("WASMSAND_RENEWAL", "off")

# Tests use the kernel's sources. A run with its compiled form sets the variable to `always`, and
# leaves out the tests that are marked `needs_sources`.
COMPILED = os.environ.setdefault("WASMSAND_COMPILED_KERNEL", "never") == "always"

# A test run in the background of a script ignores these signals. Programs that a test starts
# would inherit that, and could not be interrupted.
for _number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Tests beside the recipes have a conftest.py of their own.
    for item in items:
        if not item.path.is_relative_to(TESTS):
            continue
        place = item.path.relative_to(TESTS).parts[0]
        if place in USERLAND_PLACES and item.get_closest_marker("no_userland") is None:
            item.add_marker("userland")
        if COMPILED and item.get_closest_marker("needs_sources") is not None:
            item.add_marker(pytest.mark.skip(reason="needs the sources of the kernel"))


@pytest.fixture(autouse=True)
def _user_space_is_built(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("userland") is not None and not MANIFEST.is_file():
        pytest.fail("the user space is not built: run `make build` (`make check` does not need it)")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source checkout."""
    return REPOSITORY
