"""Reads packages.toml, and fetches the files that it pins.

Rules: a file is used only if its hash is the pinned one; Debian's files are kept in the cache of
sources, those of npm in the cache of tools.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from userland.builder.cache import Cache, disk_errors
from userland.builder.commands import Commands
from userland.builder.debian import DebianArchive
from userland.builder.errors import HashMismatch, MissingTool
from userland.builder.keys import file_digest
from userland.builder.recipe import Source
from userland.builder.sources import fetch, is_stored
from userland.builder.wasm_opt import ensure_npm, npm_pack

TABLE = Path(__file__).with_name("packages.toml")
_SUITES = ("bookworm",)
Use = Literal["kernel", "bios", "initrd", "root"]


@dataclass(frozen=True)
class DebianPackage:
    """One binary package of Debian for i386."""

    name: str
    version: str
    licence: str
    use: Use
    source: Source


@dataclass(frozen=True)
class NpmPackage:
    """One package of npm."""

    name: str
    version: str
    licence: str
    sha512: str
    machine: str | None
    """The kind of machine that it is for; None for all."""


@dataclass(frozen=True)
class Pinned:
    """The whole table."""

    debian: tuple[DebianPackage, ...]
    npm: tuple[NpmPackage, ...]

    def of_use(self, use: Use) -> list[DebianPackage]:
        """The Debian packages for one purpose."""
        return [package for package in self.debian if package.use == use]

    @property
    def node(self) -> NpmPackage:
        """Node for this kind of machine."""
        for package in self.npm:
            if package.machine == platform.machine():
                return package
        known = ", ".join(package.machine for package in self.npm if package.machine)
        raise MissingTool(
            f"the v86 machine needs Node, and none is pinned for {platform.machine()}",
            f"Build it on one of: {known}.",
        )

    @property
    def v86(self) -> NpmPackage:
        """The emulator."""
        return next(package for package in self.npm if package.name == "v86")


def read_table() -> Pinned:
    """What the machine is made of."""
    with TABLE.open("rb") as stream:
        table = tomllib.load(stream)
    debian = tuple(
        DebianPackage(
            row["name"],
            row["version"],
            row["licence"],
            row["use"],
            Source(row["source"], _SUITES, row["file"], row["sha256"]),
        )
        for row in table["debian"]
    )
    npm = tuple(
        NpmPackage(row["name"], row["version"], row["licence"], row["sha512"], row.get("machine"))
        for row in table["npm"]
    )
    return Pinned(debian, npm)


def fetch_debian(
    packages: tuple[DebianPackage, ...], cache: Cache, commands: Commands
) -> dict[str, Path]:
    """The file of each package, by name."""
    wanted = [package.source for package in packages if not is_stored(package.source, cache)]
    if len(wanted) > 1:
        _fetch_together(wanted, cache, commands)
    return {package.name: fetch(package.source, cache, commands) for package in packages}


def _fetch_together(wanted: list[Source], cache: Cache, commands: Commands) -> None:
    """Fetch files with one command, which is much faster than one by one. `fetch` gets those that
    are not there afterwards, or explains why it cannot."""
    if shutil.which("apt-get") is None:
        return
    with (
        cache.lock("apt", commands.stopped),
        disk_errors(cache.root),
        cache.scratch("v86-packages") as scratch,
    ):
        places = [(source, scratch / source.file) for source in wanted]
        DebianArchive(cache.apt, commands).fetch_together(places)
        for source, file in places:
            if file.is_file() and not file.is_symlink() and file_digest(file) == source.sha256:
                (cache.sources / source.sha256).mkdir(parents=True, exist_ok=True)
                file.replace(cache.sources / source.sha256 / source.file)


def fetch_npm(
    package: NpmPackage, cache: Cache, commands: Commands, say: Callable[[str], None]
) -> Path:
    """The package's directory."""
    folder = cache.tools / f"npm-{package.name}-{package.version}"
    if folder.is_dir():
        return folder
    client = ensure_npm(cache, commands, say)
    with cache.lock("tools", commands.stopped), disk_errors(cache.root):
        if folder.is_dir():
            return folder
        with cache.scratch(f"npm-{package.name}") as scratch:
            tarball = npm_pack(client, package.name, package.version, scratch, commands)
            actual = base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
            if actual != package.sha512:
                raise HashMismatch(f"{tarball.name} (npm)", package.sha512, actual)
            status, printed = commands.capture(
                ["tar", "--extract", f"--file={tarball}", f"--directory={scratch}"]
            )
            if status != 0:
                raise HashMismatch(f"{tarball.name} (npm)", "an archive", printed)
            (scratch / "package").rename(folder)
    return folder
