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
        "llm_tools",
        "mcp",
        "site",
        "line",
        "limits",
        "wheel",
        "machine",
        "programs",
        "conformance",
        "wasi",
        "differential",
    }
    | {"test_readme.py"}
)

# One start is then like the next, and no test shares the processor with a preparation. Tests of
# the renewal itself take it out.
os.environ.setdefault("WASMSAND_RENEWAL", "off")

# Programs that a test starts inherit what is ignored, as it is in a job that a script has
# put into the background, and could not be interrupted.
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


@pytest.fixture(autouse=True)
def _user_space_is_built(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("userland") is not None and not MANIFEST.is_file():
        pytest.fail("the user space is not built: run `make build` (or `make check` to do without)")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source checkout."""
    return REPOSITORY
