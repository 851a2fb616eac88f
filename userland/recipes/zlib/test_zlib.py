"""The library, as zstd uses it for gzip's format."""

from __future__ import annotations

import gzip

from userland.recipes.compressors import check_agreement
from wasmsand import Sandbox


def test_both_directions_agree_with_another_deflate(sandbox: Sandbox) -> None:
    check_agreement(sandbox, "zstd -q --format=gzip f && zstd -q -d g.gz", ".gz", gzip)
