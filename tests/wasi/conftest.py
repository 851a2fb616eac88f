"""A sandbox for WASI programs, and a function that installs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.wasi.zig import compiled
from wasmsand import Sandbox

WORK = "/home/user/work"


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(cwd=WORK, timeout_ms=60_000) as sandbox:
        yield sandbox


@pytest.fixture
def install(sandbox: Sandbox) -> Callable[..., None]:
    """Installs test programs as commands of the sandbox."""

    def put(*names: str) -> None:
        for name in names:
            sandbox.files.write(f"/usr/local/bin/{name}", compiled(name).read_bytes())
        paths = " ".join(f"/usr/local/bin/{name}" for name in names)
        assert sandbox.commands.run(f"chmod +x {paths}").exit_code == 0

    return put
