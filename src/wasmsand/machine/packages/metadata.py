"""What a package says about itself: METADATA and entry_points.txt of its dist-info directory.

Owns `PackageMetadata`. Rules: wheels of an index are not trusted, so every size is bounded, and
anything that cannot be parsed raises `BadMetadata`; markers are evaluated for the sandbox's Python,
never for the host's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

PYTHON_VERSION: Final = "3.14"
PYTHON_FULL_VERSION: Final = "3.14.7"
METADATA_BYTES_MAX: Final = 1 << 20
_REQUIREMENTS_MAX: Final = 2000
_SCRIPTS_MAX: Final = 500
_ENVIRONMENT: Final = {
    "implementation_name": "cpython",
    "implementation_version": PYTHON_FULL_VERSION,
    "os_name": "posix",
    "platform_machine": "wasm32",
    "platform_python_implementation": "CPython",
    "platform_release": "6.1.0-wasmsand",
    "platform_system": "Linux",
    "platform_version": "#1 wasmsand",
    "python_full_version": PYTHON_FULL_VERSION,
    "python_version": PYTHON_VERSION,
    "sys_platform": "linux",
}
"""The values of markers in the sandbox."""
_SCRIPT_NAME: Final = re.compile(r"[\w.+-]+", re.ASCII)
_DOTTED_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


class BadMetadata(Exception):
    """The metadata of a package is invalid."""


@dataclass(frozen=True, slots=True)
class ConsoleScript:
    """A console entry point: a command that calls a function."""

    name: str
    module: str
    function: str

    def text(self) -> bytes:
        """The script for /usr/local/bin."""
        first = self.function.partition(".")[0]
        return (
            f"#!/usr/bin/python3\nimport sys\n\nfrom {self.module} import {first}\n\n"
            f'if __name__ == "__main__":\n    sys.exit({self.function}())\n'
        ).encode()


@dataclass(frozen=True, slots=True)
class PackageMetadata:
    """The facts of one package."""

    name: str
    """As the package spells it; `key` is the normalised form."""
    version: str
    summary: str
    requires: tuple[Requirement, ...]
    scripts: tuple[ConsoleScript, ...] = ()
    native: str = ""
    """`required` if the package needs the full interpreter, `optional` if it is faster with it,
    empty if it is pure Python."""

    @property
    def key(self) -> str:
        """The name as PEP 503 normalises it."""
        return str(canonicalize_name(self.name))

    @property
    def is_native(self) -> bool:
        """Whether the package works only in the full interpreter."""
        return self.native == "required"

    def needs(self, extras: frozenset[str] = frozenset()) -> Iterator[Requirement]:
        """The requirements that apply in the sandbox, with these extras."""
        for requirement in self.requires:
            if applies(requirement.marker, extras):
                yield requirement


def applies(marker: Marker | None, extras: frozenset[str] = frozenset()) -> bool:
    """Whether a marker is true in the sandbox for one of the extras, or without any."""
    if marker is None:
        return True
    return any(marker.evaluate({**_ENVIRONMENT, "extra": extra}) for extra in ("", *extras))


def normalised(name: str) -> str:
    """A package's name as PEP 503 normalises it."""
    return str(canonicalize_name(name))


def parse_metadata(
    metadata: bytes, entry_points: bytes = b"", native: bytes = b""
) -> PackageMetadata:
    """Parse METADATA, entry_points.txt and native.txt. Raises `BadMetadata`."""
    if max(len(metadata), len(entry_points)) > METADATA_BYTES_MAX:
        raise BadMetadata(f"its metadata has more than {METADATA_BYTES_MAX} bytes")
    fields = list(_fields(metadata))
    single = dict(reversed(fields))
    name, version = single.get("name", ""), single.get("version", "")
    try:
        canonicalize_name(name, validate=True)
        Version(version)
    except (ValueError, InvalidVersion):
        raise BadMetadata(f"its metadata names {name[:80]!r} {version[:80]!r}") from None
    wanted = [value for field, value in fields if field == "requires-dist"]
    if len(wanted) > _REQUIREMENTS_MAX:
        raise BadMetadata(f"it has more than {_REQUIREMENTS_MAX} requirements")
    try:
        requires = tuple([Requirement(value) for value in wanted])
    except InvalidRequirement as error:
        raise BadMetadata(f"a requirement is invalid: {str(error)[:200]}") from None
    return PackageMetadata(
        name,
        version,
        single.get("summary", "")[:500],
        requires,
        tuple(_scripts(entry_points)),
        native.decode("ascii", "replace").strip()[:20],
    )


def _fields(metadata: bytes) -> Iterator[tuple[str, str]]:
    """The header's fields, with names in lower case; the description after it is left out."""
    field, value = "", ""
    for line in metadata.decode("utf-8", "replace").splitlines():
        if not line:
            break
        if line[0] in " \t":  # blanks alone continue a field too
            value = f"{value} {line.strip()}"
            continue
        if field:
            yield field, value.strip()
        field, _, value = line.partition(":")
        field = field.strip().lower()
    if field:
        yield field, value.strip()


def _scripts(entry_points: bytes) -> Iterator[ConsoleScript]:
    section, count = "", 0
    for line in entry_points.decode("utf-8", "replace").splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
            continue
        if section != "console_scripts" or "=" not in line or line.startswith(("#", ";")):
            continue
        name, _, reference = line.partition("=")
        module, _, function = reference.partition("[")[0].partition(":")
        script = ConsoleScript(name.strip(), module.strip(), function.strip())
        if not (
            _SCRIPT_NAME.fullmatch(script.name)
            and script.name not in (".", "..")
            and _DOTTED_NAME.fullmatch(script.module)
            and _DOTTED_NAME.fullmatch(script.function)
        ):
            raise BadMetadata(f"an entry point is invalid: {line[:200]!r}")
        count += 1
        if count > _SCRIPTS_MAX:
            raise BadMetadata(f"it has more than {_SCRIPTS_MAX} scripts")
        yield script
