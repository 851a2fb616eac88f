#!/usr/bin/env python3
"""Makes a package of a wheel of pure Python, or of a source distribution with optional C parts.

    package_wheel.py UNPACKED_DIR SYSROOT

The `script` of a recipe for such a package; the variable PACKAGE is its normalised name. Leaves
`stage/package` in the unpacked directory: a piece of site-packages with compiled files, and with
metadata as pip writes it. Rules: a compiled file never looks at its source's date or content, since
the image is read-only; tests, type stubs, programs for Windows, and what a wheel would install
outside site-packages are left out; RECORD lists exactly the files that are there.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

_LEFT_OUT = ("tests", "test", "__pycache__", "conftest.py")
_LEFT_OUT_SUFFIXES = (".a", ".c", ".exe", ".pxd", ".pyi", ".pyx")
_COMPILE = """
import py_compile, sys
from pathlib import Path
root, place = Path(sys.argv[1]), Path(sys.argv[2])
for source in sorted(root.rglob("*.py")):
    py_compile.compile(str(source), dfile=str(place / source.relative_to(root)), doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
"""


def main() -> int:
    tree, sysroot = (Path(argument).resolve() for argument in sys.argv[1:3])
    sysroot.mkdir(parents=True, exist_ok=True)
    make_package(tree, os.environ["PACKAGE"])
    return 0


def make_package(tree: Path, name: str) -> Path:
    """Make `stage/package` of the unpacked tree; returns its path."""
    package = tree / "stage/package"
    package.mkdir(parents=True)
    info = next(tree.glob("*.dist-info"), None)
    if info is not None:
        _take_wheel(tree, package)
    else:
        info = _take_source(tree, name, package)
    _leave_out(package)
    compile_files(package, f"/usr/lib/python/{name}")
    (package / info.name / "INSTALLER").write_text("wasmsand\n")
    _record(package, package / info.name)
    return package


def compile_files(folder: Path, place: str) -> None:
    """Compile all files below `folder`, which is at `place` in the image."""
    argv = [str(_build_python()), "-S", "-c", _COMPILE, str(folder), place]
    # The interpreter belongs to the cache and must not be changed.
    fixed = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    subprocess.run(argv, env={"PATH": os.environ["PATH"], **fixed}, check=True)


def _take_wheel(tree: Path, package: Path) -> None:
    for entry in sorted(tree.iterdir()):
        if entry.suffix == ".data":
            for part in ("purelib", "platlib"):
                if (entry / part).is_dir():
                    shutil.copytree(entry / part, package, dirs_exist_ok=True)
        elif entry.name != "stage":
            entry.rename(package / entry.name)


def _take_source(tree: Path, name: str, package: Path) -> Path:
    """The package's directory in `src`, and metadata of what the distribution says about itself."""
    folder = tree / "src" / name.replace("-", "_")
    folder.rename(package / folder.name)
    text = (tree / "PKG-INFO").read_text(encoding="utf-8")
    header = text.partition("\n\n")[0].splitlines()
    fields = dict(line.split(": ", 1) for line in header if ": " in line)
    info = package / f"{name.replace('-', '_')}-{fields['Version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(text, encoding="utf-8")
    (info / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: wasmsand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    return info


def _leave_out(package: Path) -> None:
    for path in sorted(package.rglob("*")):
        if path.name in _LEFT_OUT and path.is_dir():
            shutil.rmtree(path)
        elif (path.name in _LEFT_OUT or path.suffix in _LEFT_OUT_SUFFIXES) and path.is_file():
            path.unlink()


def _record(package: Path, info: Path) -> None:
    """RECORD as pip writes it: hashes of all files but itself and the compiled ones."""
    (info / "RECORD").touch()
    rows = []
    for file in sorted(path for path in package.rglob("*") if path.is_file()):
        path = file.relative_to(package).as_posix()
        if file.suffix == ".pyc" or file == info / "RECORD":
            rows.append(f"{path},,\n")
            continue
        content = file.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}\n")
    (info / "RECORD").write_text("".join(rows), encoding="utf-8")


def _build_python() -> Path:
    """The interpreter of the recipe `quick-python`."""
    for flag in os.environ["LDFLAGS"].split():
        found = Path(flag.removeprefix("-L")).parent / "bin/python3"
        if flag.startswith("-L") and found.is_file():
            return found
    sys.exit("the recipe does not depend on quick-python")


if __name__ == "__main__":
    sys.exit(main())
