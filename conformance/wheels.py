"""The native Python with the packages' own wheels: the reference for packages.

Owns `wheels.toml` and the directory that is made of it. Rules: the wheels are pinned by name and
hash and fetched like the sources of recipes; the interpreter is the reference build of the recipe
`python`, so both sides have the same one; an ordinary user can read the directory, even if the
builder's cache belongs to root.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import tempfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

from conformance.builds import reference_key, reference_program
from conformance.supplies import Supplies, Workplace
from userland.builder.errors import BuildError
from userland.builder.recipe import Source
from userland.builder.sources import fetch

FILE = Path(__file__).with_name("wheels.toml")
_SITE = "site"
_TAG = "x86_64"


@dataclass(frozen=True)
class Wheel:
    """A wheel of the native side."""

    name: str
    file: str
    sha256: str

    @property
    def version(self) -> str:
        """As in the name of the file."""
        return self.file.split("-")[1]

    @property
    def source(self) -> Source:
        """What the builder fetches."""
        return Source("", (), self.file, self.sha256, pypi=self.name)


@dataclass(frozen=True)
class NativePackages:
    """The native Python and its packages."""

    python: Path
    """The interpreter's program."""
    home: Path
    """PYTHONHOME of the interpreter."""
    site: Path
    """The directory of all wheels' files."""

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables with which the interpreter finds its library and the packages."""
        return {"PYTHONHOME": str(self.home), "PYTHONPATH": str(self.site)}


def load_wheels() -> list[Wheel]:
    """All wheels of the native side."""
    return [Wheel(**entry) for entry in tomllib.loads(FILE.read_text("utf-8"))["wheel"]]


def wheels_exist_here() -> bool:
    """Whether the wheels are for this kind of machine."""
    return platform.system() == "Linux" and platform.machine() == _TAG


def native_packages(supplies: Supplies) -> NativePackages:
    """The native Python with all wheels, made if necessary."""
    if not wheels_exist_here():
        raise BuildError(
            f"{FILE.name} has no wheels for {platform.system()} on {platform.machine()}",
            "Packages are compared on x86-64 Linux only.",
        )
    recipe = supplies.recipe("python")
    (program,) = recipe.programs
    python = reference_program(supplies, recipe, program)
    home = python.parents[1]
    wheels = load_wheels()
    site = supplies.made(
        "reference-wheels",
        [reference_key(supplies, recipe), *(wheel.sha256 for wheel in wheels)],
        lambda place: _unpack(supplies, wheels, python, place),
    )
    facts = f"{reference_key(supplies, recipe)} {site}"
    digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"wasmsand-wheels-{os.geteuid()}-{digest}"
    if not _is_ours(folder):
        _assemble(home, site / _SITE, folder)
    inner = folder / home.name
    return NativePackages(inner / python.relative_to(home), inner, folder / _SITE)


def _unpack(supplies: Supplies, wheels: list[Wheel], python: Path, place: Workplace) -> None:
    site = place.outputs / _SITE
    for wheel in wheels:
        archive = fetch(wheel.source, supplies.cache, supplies.commands)
        with zipfile.ZipFile(archive) as members:
            members.extractall(site)
    # As pip does. Errors are ignored: tests of some packages are no valid Python.
    home = {"PYTHONHOME": str(python.parents[1])}
    compile_all = "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=2)"
    place.run([python, "-W", "ignore", "-c", compile_all, site], place.folder, home)


def _is_ours(folder: Path) -> bool:
    """Whether the directory exists and is ours; other users may write to this place too."""
    return folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.geteuid()


def _assemble(home: Path, site: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="wasmsand-wheels-", dir=folder.parent) as made:
        root = Path(made) / "root"
        root.mkdir(mode=0o755)
        for part in (home, site):
            # Hard links where the file system allows them: the wheels have 600 MB.
            linked = subprocess.run(["cp", "-al", part, root], capture_output=True, check=False)
            if linked.returncode:
                subprocess.run(["cp", "-a", part, root], check=True)
        try:
            root.rename(folder)
        except OSError:  # another run made it first
            if not _is_ours(folder):
                raise
