"""wasmsand as a new user has it: its wheels in a fresh virtual environment.

Owns building and installing, once per test run. Rules: pip installs from the built wheels alone,
without an index. The dependencies are those of this environment, as links, so that nothing is
downloaded; wasmsand itself is not among them. Commands run with an empty home directory, and may
not compile anything.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
_EXTRAS = ("mcp", "serve", "network")


@dataclass(frozen=True)
class Installation:
    """A virtual environment with wasmsand."""

    python: Path
    wheels: Path
    """The directory of the wheels."""

    @property
    def commands(self) -> Path:
        """The directory of its commands."""
        return self.python.parent

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        (found,) = self.commands.parent.glob("lib/python*/site-packages")
        return found

    def environment(self, home: Path, **more: str) -> dict[str, str]:
        """Variables of a user with this home directory. Nothing may be compiled."""
        path = f"{self.commands}:/usr/bin:/bin"
        return {"HOME": str(home), "PATH": path, "WASMSAND_COMPILE": "never"} | more

    def run(
        self,
        *words: str | Path,
        home: Path,
        stdin: str = "",
        cwd: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run its Python with these arguments."""
        return subprocess.run(
            [self.python, "-I", *words],
            cwd=cwd or "/",
            env=self.environment(home, **(variables or {})),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
        )

    def wasmsand(
        self, *words: str, home: Path, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run `wasmsand WORDS...`."""
        return self.run("-m", "wasmsand", *words, home=home, stdin=stdin)

    def install(self, *requirements: str) -> None:
        """Install from the wheels."""
        install = ("-m", "pip", "install", "--quiet", "--no-index", "--find-links", self.wheels)
        subprocess.run([self.python, *install, *requirements], check=True)


def build_wheels(directory: Path, *names: str) -> None:
    """Build distributions as `make wheel` does, unless they are there."""
    with _only_one(directory):
        missing = [
            name
            for name in names
            if not list(directory.glob(f"{name.replace('-', '_')}-[0-9]*.whl"))
        ]
        if missing:
            script = str(ROOT / "scripts/make_wheels.py")
            command = [sys.executable, script, "--outdir", str(directory), *missing]
            subprocess.run(command, check=True, capture_output=True)


@contextmanager
def _only_one(directory: Path) -> Iterator[None]:
    """Wait for other processes of this test run."""
    import fcntl

    with (directory / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def shared_directory(factory: pytest.TempPathFactory, name: str) -> Path:
    """A directory that all processes of this test run share."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    directory = base / name
    directory.mkdir(exist_ok=True)
    return directory


def new_installation(directory: Path, wheels: Path) -> Installation:
    """A new virtual environment with nothing but the dependencies."""
    subprocess.run([sys.executable, "-m", "venv", directory / "venv"], check=True)
    installation = Installation(directory / "venv/bin/python", wheels)
    links = directory / "dependencies"
    links.mkdir()
    for found in _dependencies():
        for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (links / name).exists():
                (links / name).symlink_to(Path(str(found.locate_file(name))))
    (installation.packages / "dependencies.pth").write_text(f"{links}\n")
    return installation


def _dependencies() -> list[Distribution]:
    """What wasmsand and its extras need, as far as it is installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in _EXTRAS:
        wanted += project["optional-dependencies"][extra]
    found: dict[str, Distribution] = {}
    while wanted:
        requirement = Requirement(wanted.pop())
        name = canonicalize_name(requirement.name)
        extras = requirement.extras or {""}
        applies = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in extras
        )
        if not applies or name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        wanted += found[name].requires or ()
    return list(found.values())


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheels of wasmsand and of its compiled programs."""
    directory = shared_directory(tmp_path_factory, "wheels")
    build_wheels(directory, "wasmsand", "wasmsand-native")
    return directory


@pytest.fixture(scope="session")
def installed(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """wasmsand, installed by its name."""
    installation = new_installation(tmp_path_factory.mktemp("installed"), wheels)
    installation.install("wasmsand")
    return installation
