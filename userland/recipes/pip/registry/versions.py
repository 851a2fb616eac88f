"""Comparing versions with specifiers (PEP 440).

Owns the fast path: versions of numbers and dots. Rules: anything else is left to the `packaging`
that pip brings along, which takes longer to import than the fast path to run.
"""

from __future__ import annotations

from importlib import import_module
from itertools import zip_longest

_OPERATORS = ("===", "~=", "==", "!=", "<=", ">=", "<", ">")

Release = tuple[int, ...]


def release(version: str) -> Release | None:
    """The numbers of a version that has nothing else."""
    parts = version.split(".")
    if all(part.isdecimal() and part.isascii() for part in parts):
        return tuple(map(int, parts))
    return None


def is_newer(version: str, other: str) -> bool:
    """Whether `version` comes after `other`."""
    mine, theirs = release(version), release(other)
    if mine is not None and theirs is not None:
        return _compare(mine, theirs) > 0
    packaging = import_module("pip._vendor.packaging.version")
    try:
        return bool(packaging.Version(version) > packaging.Version(other))
    except packaging.InvalidVersion:
        return False


def satisfies(version: str, specifier: str) -> bool:
    """Whether a version fits a specifier such as `>=1.2,<2`. Raises `ValueError` if the specifier
    is not one."""
    mine = release(version)
    clauses = [clause.strip() for clause in specifier.split(",") if clause.strip()]
    answers = [_clause(mine, clause) for clause in clauses]
    known = [answer for answer in answers if answer is not None]
    if len(known) == len(answers):
        return all(known)
    packaging = import_module("pip._vendor.packaging.specifiers")
    try:
        return bool(packaging.SpecifierSet(specifier).contains(version, prereleases=True))
    except packaging.InvalidSpecifier as error:
        raise ValueError(str(error)) from None


def _clause(mine: Release | None, clause: str) -> bool | None:
    """None if only `packaging` can tell."""
    operator = next((sign for sign in _OPERATORS if clause.startswith(sign)), None)
    if mine is None or operator is None or operator == "===":
        return None
    text = clause[len(operator) :].strip()
    prefix = text.endswith(".*")
    theirs = release(text.removesuffix(".*"))
    if theirs is None or (prefix and operator not in ("==", "!=")):
        return None
    if operator == "~=":
        if len(theirs) < 2:
            return None
        return _compare(mine, theirs) >= 0 and _starts_with(mine, theirs[:-1])
    if prefix:
        return _starts_with(mine, theirs) is (operator == "==")
    order = _compare(mine, theirs)
    answers = {
        "==": order == 0,
        "!=": order != 0,
        "<=": order <= 0,
        ">=": order >= 0,
        "<": order < 0,
        ">": order > 0,
    }
    return answers[operator]


def _compare(mine: Release, theirs: Release) -> int:
    """Negative, zero or positive; 1.2 and 1.2.0 are equal."""
    for one, other in zip_longest(mine, theirs, fillvalue=0):
        if one != other:
            return one - other
    return 0


def _starts_with(mine: Release, theirs: Release) -> bool:
    padded = mine + (0,) * (len(theirs) - len(mine))
    return padded[: len(theirs)] == theirs
