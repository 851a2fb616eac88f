"""What the sandbox's root cannot do; docs/limitations.md has the same IDs."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


@pytest.mark.xfail(
    reason="L170: chroot is refused, also for root", raises=AssertionError, strict=True
)
def test_root_changes_its_root_directory() -> None:
    with Sandbox() as sandbox:
        assert sandbox.commands.run("chroot / true", user="root").exit_code == 0
