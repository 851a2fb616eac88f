"""The files of a Python package as they go into the image, and what builds of packages share.

Owns `stage/package`: Python files with their compiled form, and metadata as pip writes it. Rules: a
compiled file never looks at its source's date or content, since the image is read-only and its
files have no dates; no path of the building machine gets into it; tests of the package are left
out; only programs of recipes run, never a Python that happens to be installed.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from userland.builder.errors import BuildError

ROOT = Path(__file__).resolve().parents[2]
_LEFT_OUT = ("tests", "test", "__pycache__", "conftest.py")
_FOR_BUILDS_ONLY = (".a", ".pxd", ".pxi", ".pyi", ".pyx")
REQUIRED, OPTIONAL = "required", "optional"
"""What the metadata says about the interpreter that has the modules of packages: the package does
not work without it, or is only slower. A package without such modules says nothing."""
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
        return self.needed("bin/python3", "build-python or quick-python")

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


def finish_package(around: Surroundings, site: Path, need: str | None = None) -> None:
    """Make `stage/package` of what was installed; `need` is REQUIRED, OPTIONAL or None."""
    for path in [path for path in site.rglob("*") if path.name in _LEFT_OUT]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for path in [path for path in site.rglob("*") if path.suffix in _FOR_BUILDS_ONLY]:
        path.unlink()
    _forget_paths(around, site)
    info = write_metadata(around.tree, site, need)
    place = f"/usr/lib/python/{Path(os.environ['RECIPE']).name}"
    run([str(around.python), "-S", "-c", _COMPILE, str(site), place], around)
    _write_record(info)
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


def write_metadata(tree: Path, site: Path, need: str | None) -> Path:
    """The directory by which pip and importlib.metadata know an installed package: of a wheel, or
    made of what a source distribution says about itself."""
    info = next(site.glob("*.dist-info"), None)
    if info is None:
        text = (tree / "PKG-INFO").read_text(encoding="utf-8")
        fields = [line.split(": ", 1) for line in text.partition("\n\n")[0].splitlines()]
        values = {field[0]: field[1] for field in fields if len(field) == 2}
        name = values["Name"].replace("-", "_").replace(".", "_").lower()
        info = site / f"{name}-{values['Version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(text, encoding="utf-8")
        for field in fields:
            if field[0] == "License-File":
                place = info / "licenses" / field[1]
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(tree / field[1], place)
        pure, tag = ("false", "cp314-cp314-linux_wasm32") if need else ("true", "py3-none-any")
        (info / "WHEEL").write_text(
            f"Wheel-Version: 1.0\nGenerator: wasmsand\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"
        )
        if entry_points := _entry_points(tree):
            (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    (info / "INSTALLER").write_text("wasmsand\n")
    if need:
        (info / "native.txt").write_text(f"{need}\n")
    return info


def _entry_points(tree: Path) -> str:
    """Those of the project's table, or those that setuptools has written into the source."""
    if (tree / "pyproject.toml").is_file():
        table = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
        project = table.get("project", {})
        groups = {
            "console_scripts": project.get("scripts", {}),
            "gui_scripts": project.get("gui-scripts", {}),
            **project.get("entry-points", {}),
        }
        sections = [
            "".join([f"[{group}]\n", *(f"{name} = {value}\n" for name, value in entries.items())])
            for group, entries in groups.items()
            if entries
        ]
        if sections:
            return "\n".join(sections)
    written = next(iter(sorted(tree.rglob("*.egg-info/entry_points.txt"))), None)
    return written.read_text(encoding="utf-8") if written else ""


def _write_record(info: Path) -> None:
    """The list of all files with their hashes; compiled files have none, as pip writes it."""
    record = info / "RECORD"
    record.unlink(missing_ok=True)
    site = info.parent
    lines = [f"{record.relative_to(site).as_posix()},,\n"]
    for file in (path for path in site.rglob("*") if path.is_file()):
        content = file.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        proof = "," if file.suffix == ".pyc" else f"sha256={digest},{len(content)}"
        lines.append(f"{file.relative_to(site).as_posix()},{proof}\n")
    record.write_text("".join(sorted(lines)), encoding="utf-8")
