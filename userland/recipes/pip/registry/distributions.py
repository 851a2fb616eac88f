"""What packages say about themselves: the files of a dist-info directory.

Owns `Distribution`. Rules: the guest may have changed or damaged any of these files, so whatever is
missing is empty; a file is read once, and only when something asks for it.
"""

from __future__ import annotations

import os

from .names import REGISTRY, normalised
from .requirements import BadRequirement, Requirement

SUFFIX = ".dist-info"


class Distribution:
    """One package, of the registry or installed."""

    def __init__(self, folder: str, info: str) -> None:
        """`info` is the name of the dist-info directory in `folder`."""
        self.folder = folder
        self.info = info
        name, _, self.version = info.removesuffix(SUFFIX).partition("-")
        self.name = normalised(name)
        self._fields: dict[str, list[str]] | None = None

    def read(self, file: str) -> str:
        """A file of the dist-info directory; empty if there is none."""
        try:
            path = f"{self.folder}/{self.info}/{file}"
            with open(path, encoding="utf-8", errors="replace") as stream:
                return stream.read()
        except OSError:
            return ""

    def has(self, file: str) -> bool:
        """Whether the dist-info directory has this file."""
        return os.path.exists(f"{self.folder}/{self.info}/{file}")

    def field(self, field: str) -> str:
        """A field of the metadata; empty if it is missing."""
        return next(iter(self.fields(field)), "")

    def fields(self, field: str) -> list[str]:
        """All values of a field of the metadata."""
        if self._fields is None:
            self._fields = _header(self.read("METADATA"))
        return self._fields.get(field.lower(), [])

    @property
    def raw_name(self) -> str:
        """The name as the project writes it."""
        return self.field("Name") or self.name

    @property
    def native(self) -> bool:
        """Whether it wants the interpreter that has native packages inside."""
        return self.has("native.txt")

    def requirements(self, extras: frozenset[str] = frozenset()) -> list[Requirement]:
        """What it needs in this sandbox, with these extras."""
        found = []
        for text in self.fields("Requires-Dist"):
            try:
                requirement = Requirement(text, self.raw_name)
                if requirement.applies(extras):
                    found.append(requirement)
            except BadRequirement:
                # An address, or damaged metadata: the registry cannot help.
                continue
        return found

    def console_scripts(self) -> list[tuple[str, str, str]]:
        """Name, module and function of each command."""
        scripts = []
        section = ""
        for line in self.read("entry_points.txt").splitlines():
            line = line.partition("#")[0].strip()
            if line.startswith("["):
                section = line
            elif section == "[console_scripts]" and "=" in line:
                name, _, target = line.partition("=")
                module, _, function = target.partition("[")[0].strip().partition(":")
                if "/" not in name and function:
                    scripts.append((name.strip(), module.strip(), function.strip()))
        return scripts


def _header(text: str) -> dict[str, list[str]]:
    """The fields before the first empty line, by their names in lower case."""
    fields: dict[str, list[str]] = {}
    last: list[str] = []
    for line in text.splitlines():
        if not line:
            break
        if line[0] in " \t":  # blanks alone continue a field too
            if last:
                last[-1] += "\n" + line.strip()
            continue
        name, separator, value = line.partition(":")
        if separator:
            last = fields.setdefault(name.lower(), [])
            last.append(value.strip())
    return fields


def in_registry(name: str) -> Distribution | None:
    """The registry's package of this normalised name."""
    folder = f"{REGISTRY}/{name}"
    try:
        entries = os.listdir(folder)
    except OSError:
        return None
    info = next((entry for entry in entries if entry.endswith(SUFFIX)), None)
    return None if info is None else Distribution(folder, info)
