"""A small real world for the builder: a repository, a Debian mirror on disk, a cache.

Recipes here are real (tarball, recipe.toml, script) and quick to build; nothing uses
the network.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from userland.builder.build import Workshop
from userland.builder.cache import Cache, Entry
from userland.builder.commands import Commands
from userland.builder.jobserver import JobServer
from userland.builder.keys import file_digest, recipe_keys
from userland.builder.progress import PlainProgress
from userland.builder.recipe import Recipe, load_recipes, with_dependencies
from userland.builder.schedule import build_recipes
from userland.builder.target_wasm import WasmTarget
from userland.builder.toolchain import Toolchain
from userland.builder.wasm_opt import InstalledWasmOpt

COPY_SCRIPT = '#!/bin/sh\nmkdir -p "$2" && cp "$1/content" "$2/content"\n'


def source_tarball(mirror: Path, name: str, version: str, files: Mapping[str, str]) -> Path:
    """Write the files as a package's source to the mirror's pool."""
    tarball = mirror / f"pool/main/{name[0]}/{name}/{name}_{version}.orig.tar.gz"
    tarball.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(tarball, "w:gz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"{name}-{version}/{file}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return tarball


def recipe_head(name: str, version: str, depends: str, tarball: Path) -> str:
    """A recipe.toml up to its source."""
    return f"""
name = "{name}"
version = "{version}"
summary = "a test"
licence = "MIT"
depends = {depends}

[source]
package = "{name}"
suites = ["trixie"]
file = "{tarball.name}"
sha256 = "{file_digest(tarball)}"
"""


def target_of(toolchain: str) -> WasmTarget:
    """The sandbox as the build target, for tests that compile nothing."""
    return WasmTarget(Toolchain(toolchain, "compiler 1"))


@dataclass
class World:
    """A repository with recipes, and everything needed to build them."""

    root: Path
    mirror: Path
    cache: Cache
    output: io.StringIO

    @property
    def console(self) -> Console:
        return Console(file=self.output)

    @property
    def recipes_folder(self) -> Path:
        return self.root / "userland/recipes"

    def add(
        self,
        name: str,
        content: str = "hello",
        script: str = COPY_SCRIPT,
        depends: str = "[]",
        version: str = "1.0",
    ) -> Path:
        """A recipe whose source is one file and whose build is a shell script."""
        files = {"content": content, "COPYING": "the terms\n"}
        tarball = source_tarball(self.mirror, name, version, files)
        folder = self.recipes_folder / name
        folder.mkdir(parents=True, exist_ok=True)
        program = self.root / f"{name}.sh"
        program.write_text(script)
        program.chmod(0o755)
        (folder / "recipe.toml").write_text(
            recipe_head(name, version, depends, tarball)
            + f"""
[build]
system = "script"
script = "{name}.sh"
inputs = ["{name}.sh"]
"""
        )
        return folder

    def recipes(self) -> dict[str, Recipe]:
        return load_recipes(self.recipes_folder, self.root)

    def keys(self, toolchain: str = "toolchain 1") -> dict[str, str]:
        return recipe_keys(self.recipes(), target_of(toolchain))

    def shop(self, commands: Commands | None = None) -> Workshop:
        return Workshop(
            cache=self.cache,
            commands=commands or Commands(),
            target=target_of("toolchain 1"),
            wasm_opt=InstalledWasmOpt(Path("/nonexistent"), Path("/nonexistent")),
            jobs=2,
            jobserver=JobServer(2),
            progress=PlainProgress(self.console),
        )

    def build(
        self, *names: str, rebuild: bool = False, commands: Commands | None = None
    ) -> dict[str, Entry]:
        chosen = with_dependencies(names, self.recipes())
        again = frozenset(names) if rebuild else frozenset()
        shop = self.shop(commands)
        try:
            return build_recipes(chosen, self.keys(), shop, again)
        finally:
            shop.jobserver.close()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    monkeypatch.setenv("WASMSAND_DEBIAN_MIRROR", mirror.as_uri())
    monkeypatch.setenv("WASMSAND_DEBIAN_ARCHIVE", "")
    cache = Cache(tmp_path / "cache")
    cache.prepare()
    root = tmp_path / "repository"
    (root / "userland/recipes").mkdir(parents=True)
    return World(root, mirror, cache, io.StringIO())


@pytest.fixture
def edit() -> Callable[[Path, str, str], None]:
    """Replace text in a file that must contain it."""

    def replace(file: Path, old: str, new: str) -> None:
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return replace
