"""Requirements: a name, extras, a specifier, a marker (PEP 508).

Owns `Requirement` and the evaluation of markers. Rules: the common forms are read here; a form that
is not common is left to the `packaging` that pip brings along; a requirement with an address is
none of the registry's, and is not read.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module

from .names import normalised
from .versions import satisfies

_REQUIREMENT = re.compile(
    r"""\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*      # name
        (?:\[([^\]]*)\])?\s*                                     # extras
        (?:\(([^()]*)\)|([^;@()]*?))\s*                          # specifier
        (?:;\s*(.+?))?\s*$                                       # marker""",
    re.VERBOSE,
)
_TOKEN = re.compile(r"""\s*(\(|\)|'[^']*'|"[^"]*"|not\s+in\b|[a-z_]+|[<>=!~]+)""")
_VERSIONS = ("python_version", "python_full_version", "implementation_version")


class BadRequirement(Exception):
    """A requirement that cannot be read."""


class Requirement:
    """One requirement; `origin` is the package that has it, or None if the user has."""

    __slots__ = ("extras", "marker", "name", "origin", "raw_name", "specifier", "text")

    def __init__(self, text: str, origin: str | None = None) -> None:
        """Raises `BadRequirement`."""
        match = _REQUIREMENT.match(text)
        if match is None:
            raise BadRequirement(text)
        name, extras, bracketed, specifier, marker = match.groups()
        self.text = text.partition(";")[0].strip()
        self.raw_name: str = name
        self.name = normalised(name)
        self.extras = frozenset(
            normalised(extra.strip()) for extra in (extras or "").split(",") if extra.strip()
        )
        self.specifier: str = bracketed if bracketed is not None else specifier
        self.marker: str | None = marker
        self.origin = origin
        self.accepts("0")

    def accepts(self, version: str) -> bool:
        """Whether a version of the package fits."""
        try:
            return not self.specifier or satisfies(version, self.specifier)
        except ValueError:
            raise BadRequirement(self.text) from None

    def applies(self, extras: frozenset[str] = frozenset()) -> bool:
        """Whether the marker is true in this sandbox, for a package with these extras."""
        if self.marker is None:
            return True
        return any(marker_holds(self.marker, extra) for extra in extras or {""})

    @property
    def because(self) -> str:
        """Where it comes from, for messages."""
        return f" (from {self.origin})" if self.origin else ""


def marker_holds(marker: str, extra: str) -> bool:
    """Whether a marker is true for one extra. Raises `BadRequirement`."""
    tokens = _tokens(marker)
    if tokens is not None:
        try:
            answer, rest = _either(tokens, extra)
            if not rest:
                return answer
        except (IndexError, KeyError, ValueError):
            pass
    packaging = import_module("pip._vendor.packaging.markers")
    try:
        return bool(packaging.Marker(marker).evaluate({"extra": extra}))
    except (packaging.InvalidMarker, packaging.UndefinedEnvironmentName, ValueError):
        raise BadRequirement(marker) from None


def _tokens(marker: str) -> list[str] | None:
    found = []
    position = 0
    while position < len(marker.rstrip()):
        match = _TOKEN.match(marker, position)
        if match is None:
            return None
        found.append(match[1])
        position = match.end()
    return found


def _either(tokens: list[str], extra: str) -> tuple[bool, list[str]]:
    answer, tokens = _both(tokens, extra)
    while tokens and tokens[0] == "or":
        other, tokens = _both(tokens[1:], extra)
        answer = answer or other
    return answer, tokens


def _both(tokens: list[str], extra: str) -> tuple[bool, list[str]]:
    answer, tokens = _one(tokens, extra)
    while tokens and tokens[0] == "and":
        other, tokens = _one(tokens[1:], extra)
        answer = answer and other
    return answer, tokens


def _one(tokens: list[str], extra: str) -> tuple[bool, list[str]]:
    if tokens[0] == "(":
        answer, tokens = _either(tokens[1:], extra)
        if tokens[0] != ")":
            raise ValueError
        return answer, tokens[1:]
    left, operator, right = tokens[:3]
    return _compare(left, operator, right, extra), tokens[3:]


def _compare(left: str, operator: str, right: str, extra: str) -> bool:
    one, other = _value(left, extra), _value(right, extra)
    if left in _VERSIONS and operator not in ("in", "not in"):
        return satisfies(one, operator + other)
    if left == "extra":
        other = normalised(other)
    if operator == "==":
        return one == other
    if operator == "!=":
        return one != other
    if operator == "in":
        return one in other
    if operator.startswith("not"):
        return one not in other
    raise ValueError(operator)


def _value(token: str, extra: str) -> str:
    if token[0] in "'\"":
        return token[1:-1]
    if token == "extra":
        return extra
    version = sys.version_info
    values = {
        "python_version": f"{version.major}.{version.minor}",
        "python_full_version": f"{version.major}.{version.minor}.{version.micro}",
        "implementation_version": f"{version.major}.{version.minor}.{version.micro}",
        "implementation_name": sys.implementation.name,
        "os_name": os.name,
        "platform_machine": os.uname().machine,
        "platform_python_implementation": "CPython",
        "platform_system": os.uname().sysname,
        "sys_platform": sys.platform,
    }
    return values[token]
