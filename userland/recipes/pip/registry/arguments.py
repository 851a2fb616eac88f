"""Reads the options of a command.

Owns `Arguments`. Rules: an option that is not in the command's table makes the command the real
pip's, which knows all of them; options that make no difference for packages of the registry are
accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Iterable

from .requirements_files import ForRealPip

_GENERAL_FLAGS = {
    "-q": "--quiet",
    "--quiet": "--quiet",
    "--disable-pip-version-check": "",
    "--isolated": "",
    "--no-cache-dir": "",
    "--no-color": "",
    "--no-input": "",
    "--no-python-version-warning": "",
    "--no-proxy-env": "",
}
_GENERAL_VALUES = {
    "--cache-dir": "",
    "--exists-action": "",
    "--retries": "",
    "--timeout": "",
    "--trusted-host": "",
    "--use-feature": "",
}


class UsageError(Exception):
    """An option lacks its value."""


class Arguments:
    """The options and words of one command. An option is known by one of its names."""

    def __init__(self, given: Iterable[str], flags: dict[str, str], values: dict[str, str]) -> None:
        """Raises `ForRealPip`, `UsageError`."""
        self.words: list[str] = []
        self._flags: list[str] = []
        self._values: dict[str, list[str]] = {}
        flags = _GENERAL_FLAGS | flags
        values = _GENERAL_VALUES | values
        rest = iter(given)
        for one in rest:
            if one == "--":
                self.words += rest
            elif not one.startswith("-") or one == "-":
                self.words.append(one)
            elif one in flags:
                self._flags.append(flags[one])
            elif one.startswith("--"):
                name, separator, value = one.partition("=")
                self._take(name, values, value if separator else None, rest)
            else:
                self._short(one, flags, values, rest)

    def _short(
        self, one: str, flags: dict[str, str], values: dict[str, str], rest: Iterable[str]
    ) -> None:
        """Letters of short options, the last of which may have its value at once: -qrFILE."""
        for position, letter in enumerate(one[1:], 1):
            name = f"-{letter}"
            if name in flags:
                self._flags.append(flags[name])
                continue
            self._take(name, values, one[position + 1 :] or None, rest)
            return

    def _take(
        self, name: str, values: dict[str, str], value: str | None, rest: Iterable[str]
    ) -> None:
        if name not in values:
            raise ForRealPip(name)
        if value is None:
            value = next(iter(rest), None)
        if value is None:
            raise UsageError(f"{name} option requires 1 argument")
        self._values.setdefault(values[name], []).append(value)

    def has(self, flag: str) -> bool:
        """Whether a flag was given."""
        return flag in self._flags

    def count(self, flag: str) -> int:
        """How often a flag was given."""
        return self._flags.count(flag)

    def all(self, option: str) -> list[str]:
        """All values of an option."""
        return self._values.get(option, [])

    def last(self, option: str) -> str | None:
        """The last value of an option; None if it is missing or empty."""
        return (self.all(option) or [""])[-1] or None
