"""The library, as zstd uses it for gzip's format."""

from __future__ import annotations

import gzip

from wasmsand import Sandbox


def test_both_directions_agree_with_another_deflate(sandbox: Sandbox) -> None:
    text = b"".join(b"line %d of some text\n" % i for i in range(100_000))
    sandbox.files.write("f", text)
    sandbox.files.write("g.gz", gzip.compress(text))
    result = sandbox.commands.run("zstd -q --format=gzip f && zstd -q -d g.gz && cmp f g")
    assert (result.exit_code, result.stderr) == (0, "")
    assert gzip.decompress(sandbox.files.read("f.gz")) == text
