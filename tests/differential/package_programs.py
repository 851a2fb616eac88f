"""Runs programs that use packages on both sides, and compares what they leave.

Owns the programs in `cases/packages`. Each begins with attributes, as in `case_files`:

    #| packages: numpy pandas     what must be installed
    #| tolerance: 1e-6            relative tolerance for numbers that have a fraction (default 1e-9)
    #| pixels: 0.02               part of an image's pixels that may differ visibly (default 0)
    #| xfail: L090 what differs

Rules: the native side has the wheels of the same versions (`conformance.wheels`). Text must be the
same except for numbers with a fraction or an exponent, which must be equal within the tolerance;
whole numbers must be the same. Images are compared by their decoded pixels: a pixel differs
visibly if one of its channels differs by more than `VISIBLE`. Of other binary files only the names
are compared. If a program prints nothing on standard error natively, it must not do so here.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from conformance.wheels import NativePackages
from tests.differential.native_side import USER_ID
from wasmsand import Sandbox

PROGRAMS: Final = Path(__file__).resolve().parent / "cases/packages"
TIME_LIMIT: Final = 120.0
VISIBLE: Final = 16
IMAGES: Final = frozenset({".bmp", ".gif", ".jpg", ".png", ".tif", ".webp"})
TEXTS: Final = frozenset({".csv", ".html", ".json", ".md", ".txt", ".xml", ".yaml"})
_ATTRIBUTE: Final = re.compile(r"#\| (\w+): (.*)")
_NUMBER: Final = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)"
)
_COMPARE_IMAGES: Final = """
import sys
from PIL import Image, ImageChops, ImageSequence
visible = int(sys.argv[1])
for first, second in zip(sys.argv[2::2], sys.argv[3::2]):
    there, here = Image.open(first), Image.open(second)
    if (there.size, there.mode, there.format) != (here.size, here.mode, here.format):
        print(1, f"natively {there.size} {there.mode} {there.format},"
                 f" here {here.size} {here.mode} {here.format}")
        continue
    frames = [[f.convert("RGBA") for f in ImageSequence.Iterator(i)] for i in (there, here)]
    if len(frames[0]) != len(frames[1]):
        print(1, f"natively {len(frames[0])} frames, here {len(frames[1])}")
        continue
    worst = 0.0
    for a, b in zip(*frames):
        channels = ImageChops.difference(a, b).split()
        most = channels[0]
        for channel in channels[1:]:
            most = ImageChops.lighter(most, channel)
        differing = sum(most.histogram()[visible + 1:])
        worst = max(worst, differing / (a.width * a.height))
    print(worst, "of the pixels differ")
"""


@dataclass(frozen=True)
class PackageProgram:
    """One program and how it is compared."""

    path: Path
    packages: tuple[str, ...] = ()
    tolerance: float = 1e-9
    pixels: float = 0.0
    xfail: str | None = None

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass(frozen=True)
class Ending:
    """What a program leaves."""

    exit_code: int
    stdout: str
    stderr: str
    files: dict[str, bytes]


def load_programs() -> list[PackageProgram]:
    """All programs, by name."""
    return [_read(path) for path in sorted(PROGRAMS.glob("*.py"))]


def _read(path: Path) -> PackageProgram:
    program = PackageProgram(path)
    for line in path.read_text("utf-8").splitlines():
        if not (found := _ATTRIBUTE.fullmatch(line)):
            break
        match found.groups():
            case "packages", names:
                program = replace(program, packages=tuple(names.split()))
            case "tolerance", number:
                program = replace(program, tolerance=float(number))
            case "pixels", part:
                program = replace(program, pixels=float(part))
            case "xfail", reason:
                program = replace(program, xfail=reason)
            case key, _:
                raise ValueError(f"{path.name}: unknown attribute {key!r}")
    if not program.packages:
        raise ValueError(f"{path.name}: names no packages")
    return program


def run_natively(program: PackageProgram, native: NativePackages, folder: Path) -> Ending:
    """Run a program with the native wheels, in an empty directory of the ordinary user."""
    user: dict[str, Any] = {"user": USER_ID, "group": USER_ID} if os.geteuid() == 0 else {}
    done = subprocess.run(
        [native.python, "-c", program.path.read_text("utf-8")],
        cwd=folder,
        env={**native.variables, **_variables(), "PATH": os.defpath, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIME_LIMIT,
        check=False,
        **user,
    )
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not _is_hidden(path.relative_to(folder))
    }
    return Ending(done.returncode, done.stdout.decode(), done.stderr.decode(), files)


def run_sandboxed(program: PackageProgram) -> Ending:
    """Run a program in a new sandbox."""
    with Sandbox(packages=program.packages, timeout_ms=TIME_LIMIT * 1000) as sandbox:
        sandbox.files.mkdir("/tmp/work")
        done = sandbox.commands.run(
            ["python3", "-c", program.path.read_text("utf-8")], cwd="/tmp/work", env=_variables()
        )
        files = {
            entry.path.removeprefix("/tmp/work/"): sandbox.files.read(entry.path)
            for entry in sandbox.files.list("/tmp/work", recursive=True)
            if entry.type == "file"
        }
    return Ending(done.exit_code, done.stdout, done.stderr, files)


def _variables() -> dict[str, str]:
    # One thread natively: sums depend on how work is divided.
    return {"TZ": "UTC", "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def differences(
    program: PackageProgram, there: Ending, here: Ending, native: NativePackages, folder: Path
) -> list[str]:
    """One text per difference; `folder` is for files of this comparison."""
    found = []
    if there.exit_code != here.exit_code:
        found.append(f"exit code: natively {there.exit_code}, here {here.exit_code}")
    found += text_differences("stdout", there.stdout, here.stdout, program.tolerance)
    if here.stderr and (here.exit_code or not there.stderr):
        found.append(f"stderr here: {here.stderr}\nnatively: {there.stderr}")
    if there.files.keys() != here.files.keys():
        found.append(f"files: natively {sorted(there.files)}, here {sorted(here.files)}")
    both = sorted(there.files.keys() & here.files.keys())
    for name in both:
        if Path(name).suffix in TEXTS:
            one, other = (ending.files[name].decode("utf-8") for ending in (there, here))
            found += text_differences(name, one, other, program.tolerance)
    images = [name for name in both if Path(name).suffix in IMAGES]
    return found + _image_differences(images, there, here, program.pixels, native, folder)


def text_differences(name: str, there: str, here: str, tolerance: float) -> list[str]:
    """Lines that differ by more than the tolerance of their numbers."""
    native, sandboxed = there.splitlines(), here.splitlines()
    if len(native) != len(sandboxed):
        return [f"{name}: natively {len(native)} lines, here {len(sandboxed)}\n{there}---\n{here}"]
    return [
        f"{name}, line {number}:\n  natively {one}\n  here     {other}"
        for number, (one, other) in enumerate(zip(native, sandboxed, strict=True), 1)
        if one != other and not _close(one, other, tolerance)
    ]


def _close(one: str, other: str, tolerance: float) -> bool:
    # A number that is longer changes the spaces around it.
    texts = [" ".join(_NUMBER.sub("#", line).split()).replace(" #", "#") for line in (one, other)]
    numbers = [[float(number) for number in _NUMBER.findall(line)] for line in (one, other)]
    return (
        texts[0] == texts[1]
        and len(numbers[0]) == len(numbers[1])
        and all(
            math.isclose(first, second, rel_tol=tolerance, abs_tol=tolerance)
            for first, second in zip(*numbers, strict=True)
        )
    )


def _image_differences(
    names: list[str],
    there: Ending,
    here: Ending,
    pixels: float,
    native: NativePackages,
    folder: Path,
) -> list[str]:
    if not names:
        return []
    pairs = []
    for number, name in enumerate(names):
        for side, ending in (("there", there), ("here", here)):
            file = folder / f"{number}-{side}{Path(name).suffix}"
            file.write_bytes(ending.files[name])
            pairs.append(str(file))
    compared = subprocess.run(
        [native.python, "-c", _COMPARE_IMAGES, str(VISIBLE), *pairs],
        env=native.variables,
        capture_output=True,
        text=True,
        check=True,
    )
    found = []
    for name, line in zip(names, compared.stdout.splitlines(), strict=True):
        part, _, words = line.partition(" ")
        if float(part) > pixels:
            found.append(f"{name}: {line if words.startswith('of') else words}")
    return found
