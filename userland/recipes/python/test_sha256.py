"""SHA-256 and SHA-224 with our block function (`sha256_simd128.h`), compared with the host's."""

from __future__ import annotations

import hashlib

from wasmsand import Sandbox

_PROGRAM = """
import hashlib, hmac

digest = hashlib.sha256()
data = bytes(i * i * 31 >> 3 & 255 for i in range(70_000))
for size in [*range(260), 1023, 4096, 65_537]:
    for start in (0, 1, 5):
        part = data[start : start + size]
        digest.update(hashlib.sha256(part).digest() + hashlib.sha224(part).digest())
        pieces = hashlib.sha256(part[: size // 3])
        copy = pieces.copy()
        pieces.update(part[size // 3 :])
        copy.update(memoryview(part)[size // 3 :])
        assert pieces.digest() == copy.digest() == hashlib.sha256(part).digest()
digest.update(hmac.digest(data[:100], data, "sha256"))
print(digest.hexdigest())
"""


def test_digests_of_all_lengths_are_those_of_the_host() -> None:
    printed: list[str] = []
    exec(_PROGRAM, {"print": printed.append})
    with Sandbox() as sandbox:
        result = sandbox.commands.run(["python3", "-c", _PROGRAM])
    assert (result.stdout, result.stderr) == (f"{printed[0]}\n", "")


def test_digest_of_the_standards_example() -> None:
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert hashlib.sha256(b"abc").hexdigest() == expected
    with Sandbox() as sandbox:
        code = "import hashlib; print(hashlib.sha256(b'abc').hexdigest())"
        assert sandbox.commands.run(["python3", "-c", code]).stdout == f"{expected}\n"
