"""Checks that the tests of compressors share: gzip, bzip2, xz, zstd and zip.

Owns: agreement with the host's own modules, and behaviour on a full disk.
"""

from __future__ import annotations

from typing import Protocol

from wasmsand import CommandResult, Sandbox

_TEXT = b"".join(b"line %d of some text\n" % i for i in range(100_000))


class Format(Protocol):
    """A module of Python for one format, as `gzip`, `bz2` and `lzma`."""

    def compress(self, data: bytes, /) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def check_agreement(sandbox: Sandbox, script: str, suffix: str, host: Format) -> None:
    """The host and the sandbox read what the other has compressed.

    `script` compresses the file "f" and expands "g", whose name ends with `suffix`.
    """
    sandbox.files.write("f", _TEXT)
    sandbox.files.write(f"g{suffix}", host.compress(_TEXT))
    result = sandbox.commands.run(f"{script} && cmp f g")
    assert (result.exit_code, result.stderr) == (0, "")
    assert host.decompress(sandbox.files.read(f"f{suffix}")) == _TEXT


def run_on_full_disk(script: str) -> CommandResult:
    """Run a script in a sandbox that has no room for a second file of the size of "f", 1 MB."""
    with Sandbox(fs_limit_bytes=1_500_000) as small:
        small.commands.run("head -c 1000000 /dev/urandom > f")
        return small.commands.run(script)
