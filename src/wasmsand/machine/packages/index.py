"""Asks the host's pip which wheels a list of requirements needs, and lets it download them.

Owns the calls of pip. Rules: pip runs with the host's own settings (index, proxy, certificates),
and takes only wheels without native code, so no code of a package runs on the host. Packages of the
registry are offered to pip at their versions, as wheels without content, so that a dependency on
them is satisfied. pip evaluates markers for the host's Python, so dependencies are checked again
for the sandbox's Python, and pip is asked again if one is missing.
"""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement

from wasmsand.machine.packages.metadata import (
    PYTHON_VERSION,
    BadMetadata,
    PackageMetadata,
    applies,
    normalised,
    parse_metadata,
)
from wasmsand.machine.packages.pip_process import PipFailed, run_pip
from wasmsand.machine.packages.problems import PackageFault, PackageProblem
from wasmsand.machine.packages.registry import PROVIDED, Registry

_ROUNDS_MAX: Final = 8
_TARGET: Final = (
    "--only-binary=:all:",
    "--platform=any",
    f"--python-version={PYTHON_VERSION}",
    "--implementation=py",
    "--abi=none",
)
"""Accept only wheels for any platform, for the sandbox's version of Python."""
_NATIVE_TARGET: Final = (
    "--only-binary=:all:",
    f"--python-version={PYTHON_VERSION}",
    "--implementation=cp",
    *(f"--abi={abi}" for abi in (f"cp{PYTHON_VERSION.replace('.', '')}", "abi3", "none")),
    *(
        f"--platform={platform}_x86_64"
        for platform in ("manylinux2014", *(f"manylinux_2_{n}" for n in (12, 17, 24, 27, 28, 34)))
    ),
)
"""The same version of Python on an ordinary computer, whose wheels have native code."""
_NO_MATCH: Final = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")
_WHEEL_TEXT: Final = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

Say = Callable[[str], object]
"""Receives what pip prints, line by line."""


@dataclass(frozen=True, slots=True)
class IndexWheel:
    """A wheel of the index that is to be installed."""

    metadata: PackageMetadata
    sha256: str
    """Empty if the index does not state it."""


@dataclass(frozen=True, slots=True)
class FromIndex:
    """What a list of requirements needs."""

    wheels: tuple[IndexWheel, ...]
    names: tuple[str, ...]
    """Packages of the registry on which the wheels depend."""


def find_wheels(
    wanted: Sequence[Requirement],
    registry: Registry,
    pinned: Mapping[str, str],
    *,
    deadline: float | None = None,
    say: Say | None = None,
) -> FromIndex:
    """What the requirements need of the index, and of the registry.
    `pinned` are versions to prefer, by name; `deadline` is of the monotonic clock. Raises
    `PackageProblem`."""
    with _workplace(registry) as place:
        try:
            return _settled(wanted, registry, pinned, place, deadline, say)
        except PipFailed as failed:
            if not pinned or failed.is_timeout:
                raise _problem(failed, wanted, registry, place, deadline) from None
        try:
            return _settled(wanted, registry, {}, place, deadline, say)
        except PipFailed as failed:
            raise _problem(failed, wanted, registry, place, deadline) from None


def _settled(
    wanted: Sequence[Requirement],
    registry: Registry,
    pinned: Mapping[str, str],
    place: Path,
    deadline: float | None,
    say: Say | None,
) -> FromIndex:
    """Ask pip until the dependencies are complete for the sandbox's Python."""
    asked = list(wanted)
    for _ in range(_ROUNDS_MAX):
        found = _report(asked, registry, pinned, place, deadline, say)
        needed, missing = _closure(wanted, found, registry)
        if not missing:
            wheels = tuple(wheel for name, wheel in found.items() if name in needed)
            return FromIndex(wheels, tuple(sorted(needed.intersection(registry.names))))
        asked += missing
    names = ", ".join(str(requirement) for requirement in missing)
    raise PackageProblem(
        PackageFault.INDEX, normalised(missing[0].name), f"pip does not find {names}"
    )


def _report(
    asked: Sequence[Requirement],
    registry: Registry,
    pinned: Mapping[str, str],
    place: Path,
    deadline: float | None,
    say: Say | None,
) -> dict[str, IndexWheel]:
    versions = {**pinned, **{package.key: package.version for package in registry.all()}}
    constraints = place / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
    report = place / "report.json"
    report.unlink(missing_ok=True)
    run_pip(
        [
            "install",
            "--dry-run",
            "--ignore-installed",
            f"--report={report}",
            f"--target={place / 'target'}",
            f"--constraint={constraints}",
            f"--find-links={place / 'registry'}",
            *_TARGET,
            "--",
            *[_without_marker(requirement) for requirement in asked],
        ],
        place,
        deadline,
        say,
    )
    try:
        items = json.loads(report.read_text("utf-8"))["install"]
        wheels = [_wheel(item) for item in items]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PackageProblem(
            PackageFault.INDEX, "", f"pip's report cannot be read: {error}"
        ) from None
    except BadMetadata as error:
        raise PackageProblem(PackageFault.INDEX, "", f"a package is invalid: {error}") from None
    return {
        wheel.metadata.key: wheel for wheel in wheels if wheel.metadata.key not in registry.names
    }


def _wheel(item: dict[str, Any]) -> IndexWheel:
    facts = item["metadata"]
    lines = [f"Name: {facts['name']}", f"Version: {facts['version']}"]
    lines += [f"Requires-Dist: {needed}" for needed in facts.get("requires_dist", ())]
    archive = item["download_info"].get("archive_info", {})
    return IndexWheel(
        parse_metadata("\n".join(lines).encode()), str(archive.get("hashes", {}).get("sha256", ""))
    )


def _closure(
    wanted: Iterable[Requirement], found: Mapping[str, IndexWheel], registry: Registry
) -> tuple[set[str], list[Requirement]]:
    """The packages that the requirements need in the sandbox, and requirements that nothing
    satisfies."""
    needed: set[tuple[str, frozenset[str]]] = set()
    missing: list[Requirement] = []
    waiting = list(wanted)
    while waiting:
        requirement = waiting.pop()
        name = normalised(requirement.name)
        seen = (name, frozenset(requirement.extras))
        if seen in needed:
            continue
        needed.add(seen)
        wheel = found.get(name)
        package = registry.get(name) if wheel is None else wheel.metadata
        if package is not None:
            waiting += package.needs(frozenset(requirement.extras))
        elif name not in PROVIDED:
            missing.append(requirement)
    return {name for name, _ in needed}, missing


def download(
    wheels: Sequence[IndexWheel],
    target: Path,
    deadline: float | None = None,
    say: Say | None = None,
) -> list[Path]:
    """Download wheels into a directory; pip checks their hashes. Raises `PackageProblem`."""
    has_hashes = all(wheel.sha256 for wheel in wheels)
    lines = [f"{wheel.metadata.name}=={wheel.metadata.version}" for wheel in wheels]
    if has_hashes:
        lines = [
            f"{line} --hash=sha256:{wheel.sha256}"
            for line, wheel in zip(lines, wheels, strict=True)
        ]
    target.mkdir(exist_ok=True)
    requirements = target / "requirements.txt"
    requirements.write_text("".join(f"{line}\n" for line in lines))
    options = ["--require-hashes"] if has_hashes else []
    try:
        run_pip(
            [
                "download",
                "--no-deps",
                f"--dest={target}",
                f"--requirement={requirements}",
                *options,
                *_TARGET,
            ],
            target,
            deadline,
            say,
        )
    except PipFailed as failed:
        name = wheels[0].metadata.key
        raise PackageProblem(PackageFault.INDEX, name, f"pip failed: {failed}") from None
    return sorted(target.glob("*.whl"))


@contextmanager
def _workplace(registry: Registry) -> Any:
    """A temporary directory with the registry's packages as wheels without content."""
    with tempfile.TemporaryDirectory(prefix="wasmsand-pip-") as name:
        place = Path(name)
        (place / "registry").mkdir()
        for package in registry.all():
            _write_stand_in(place / "registry", package)
        yield place


def _write_stand_in(directory: Path, package: PackageMetadata) -> None:
    name = package.key.replace("-", "_")
    info = f"{name}-{package.version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {package.key}", f"Version: {package.version}"]
    for needed in package.requires:
        if applies(needed.marker):
            if normalised(needed.name) not in PROVIDED:
                lines.append(f"Requires-Dist: {_without_marker(needed)}")
        elif "extra" in str(needed.marker):
            lines.append(f"Requires-Dist: {needed}")
    with zipfile.ZipFile(directory / f"{name}-{package.version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(f"{info}/WHEEL", _WHEEL_TEXT)
        archive.writestr(f"{info}/RECORD", "")


def _without_marker(requirement: Requirement) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{requirement.name}{extras}{requirement.specifier}"


def _is_in_index(name: str, place: Path, deadline: float | None) -> bool:
    """Whether the index has any version of a package, also with native code."""
    for options in ((), _NATIVE_TARGET):
        try:
            run_pip(["index", "versions", "--pre", *options, name], place, deadline, None)
        except PipFailed:
            continue
        return True
    return False


def _problem(
    failed: PipFailed,
    wanted: Sequence[Requirement],
    registry: Registry,
    place: Path,
    deadline: float | None,
) -> PackageProblem:
    """Why pip failed: a package with native code, an unknown one, or anything else."""
    match = _NO_MATCH.search(failed.output)
    if match is None or failed.is_timeout:
        name = normalised(wanted[0].name)
        return PackageProblem(PackageFault.INDEX, name, f"pip failed: {failed}")
    name = normalised(match[1])
    if not _is_in_index(name, place, deadline):
        if "WARNING" in failed.output:  # pip could not read the index
            return PackageProblem(PackageFault.INDEX, name, f"pip failed: {failed}")
        problem = registry.missing(name)
        text = str(problem).replace("in the image", "in the image or in the package index")
        return PackageProblem(problem.kind, name, f"{text} pip says: {failed}")
    native = ", ".join(package.key for package in registry.all() if package.is_native) or "none"
    return PackageProblem(
        PackageFault.NATIVE,
        name,
        f"{name} has no matching wheel without native code in the package index, and only such "
        f"wheels can be installed. Packages with native code in the image: {native}. pip says: "
        f"{failed}",
    )
