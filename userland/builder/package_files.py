"""The files of a Python package as they go into the image, and what builds of packages share.

Owns `stage/package`: Python files with their compiled form, and metadata as pip writes it. Rules: a
compiled file never looks at its source's date or content, since the image is read-only and its
files have no dates; no path of the building machine gets into it; tests of the package are left
out; only programs of recipes run, never a Python that happens to be installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from userland.builder.errors import BuildError

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = ("tests", "test", "__pycache__", "conftest.py")
_FOR_BUILDS_ONLY = (".a", ".pxd", ".pyi")
_TEXTS = (".py", ".txt", ".json", ".toml", ".ini", ".pc", ".h")


@dataclass(frozen=True)
class Surroundings:
    """Where the build finds what other recipes have made."""

    tree: Path
    sysroot: Path
    roots: tuple[Path, ...]

    def holding(self, path: str) -> Path | None:
        """The first directory of a recipe that has this path."""
        return next((root for root in self.roots if (root / path).exists()), None)

    def needed(self, path: str, recipe: str) -> Path:
        root = self.holding(path)
        if root is None:
            raise BuildError(f"the recipe does not depend on {recipe}, which has {path}")
        return root / path

    @property
    def python(self) -> Path:
        return self.needed("bin/python3", "build-python")

    @property
    def tools(self) -> list[Path]:
        return [root / "lib/tools" for root in self.roots if (root / "lib/tools").is_dir()]

    def tool(self, name: str, recipe: str) -> Path:
        for folder in self.tools:
            if (folder / name).exists():
                return folder / name
        raise BuildError(f"the recipe does not depend on {recipe}")

    @property
    def work(self) -> Path:
        return self.tree / "wasmsand-build"

    @property
    def environment(self) -> dict[str, str]:
        """For everything that runs: no Python of the machine is found by its name."""
        return {
            **{name: os.environ[name] for name in ("HOME", "LC_ALL", "TZ", "SOURCE_DATE_EPOCH")},
            "PATH": f"{self.work / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(map(str, [self.work / "lib", *self.tools])),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONNOUSERSITE": "1",
        }


def surroundings() -> Surroundings:
    """Those of the script that was called with SOURCE_DIR and SYSROOT."""
    tree, sysroot = (Path(argument).resolve() for argument in sys.argv[1:3])
    links = [flag[2:] for flag in os.environ["LDFLAGS"].split() if flag.startswith("-L")]
    return Surroundings(tree, sysroot, tuple(Path(link).parent for link in links))


def run(argv: list[str], around: Surroundings) -> None:
    sys.stdout.flush()
    subprocess.run(argv, cwd=around.tree, env=around.environment, check=True)


def finish_package(around: Surroundings, site: Path) -> None:
    """Make `stage/package` of what was installed."""
    for path in [path for path in site.rglob("*") if path.name in _LEFT_OUT]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in [path for path in site.rglob("*") if path.suffix in _FOR_BUILDS_ONLY]:
        path.unlink()
    _forget_paths(around, site)
    write_metadata(around.tree, site)
    place = f"/usr/lib/python/{Path(os.environ['RECIPE']).name}"
    run([str(around.python), "-S", "-c", _COMPILE, str(site), place], around)
    target = around.tree / "stage/package"
    target.parent.mkdir(exist_ok=True)
    site.rename(target)


_COMPILE = """
import py_compile, sys
from pathlib import Path
root, place = Path(sys.argv[1]), Path(sys.argv[2])
for source in sorted(root.rglob("*.py")):
    py_compile.compile(str(source), dfile=str(place / source.relative_to(root)), doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""


def _forget_paths(around: Surroundings, site: Path) -> None:
    """Some packages note how they were built. Keep that, without the paths of this machine."""
    secrets = {
        str(around.work): "/usr/src/build",
        str(around.tree): "/usr/src",
        **{str(root): "/usr" for root in around.roots},
        str(Path(os.environ["CC"]).parent.parent): "/usr",
        str(ROOT): "/usr/src/wasmsand",
    }
    for file in _text_files(site):
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        if any(path in text for path in secrets):
            for path, name in secrets.items():
                text = text.replace(path, name)
            file.write_text(text, encoding="utf-8", errors="surrogateescape")


def _text_files(site: Path) -> Iterator[Path]:
    for file in site.rglob("*"):
        if file.suffix in _TEXTS and file.is_file():
            yield file


def write_metadata(tree: Path, site: Path) -> None:
    """The directory by which pip and importlib.metadata know an installed package: of a wheel, or
    made of what a source distribution says about itself."""
    info = next(site.glob("*.dist-info"), None)
    if info is None:
        text = (tree / "PKG-INFO").read_text(encoding="utf-8")
        header = text.partition("\n\n")[0].splitlines()
        fields = dict(line.split(": ", 1) for line in header if ": " in line)
        name = fields["Name"].replace("-", "_").replace(".", "_").lower()
        info = site / f"{name}-{fields['Version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(text, encoding="utf-8")
        (info / "WHEEL").write_text(
            "Wheel-Version: 1.0\nGenerator: wasmsand\nRoot-Is-Purelib: false\n"
            "Tag: cp314-cp314-any\n"
        )
    (info / "INSTALLER").write_text("wasmsand\n")
    record = info / "RECORD"
    record.touch()
    files = sorted(path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    record.write_text("".join(f"{file},,\n" for file in files))
