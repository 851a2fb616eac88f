"""What the tests of inspection share: one private authority."""

from __future__ import annotations

import pytest

from tests.machine.network.inspecting.private_authority import PrivateAuthority


@pytest.fixture(scope="session")
def private_authority(tmp_path_factory: pytest.TempPathFactory) -> PrivateAuthority:
    """Issues the certificates of the tests' servers."""
    return PrivateAuthority(tmp_path_factory.mktemp("authority"))
