"""A machine whose lock gives the guest turns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.limits.host_files.turns import Host


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    yield made
    made.machine.close()
