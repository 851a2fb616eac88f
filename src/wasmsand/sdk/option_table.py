"""What an option of a sandbox is: a row of the table that every interface reads.

Owns `Option`, its kinds, and the interfaces that may set one. The rows are in `options`. Rules: a
row says all there is to say of an option; an interface knows kinds, never single options, so that
a new option of a known kind changes no interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from wasmsand.sdk import arguments


def json_name(name: str) -> str:
    """How JSON-RPC spells a name: `fsLimitBytes`."""
    first, *rest = name.split("_")
    return first + "".join([word.capitalize() for word in rest])


class SandboxInterface(Enum):
    """A way to make a sandbox, beside the constructor of `Sandbox`, which takes every option."""

    JSON_RPC = "JSON-RPC"
    HTTP = "HTTP"
    LINE = "line protocol"
    COMMAND_LINE = "command line"


class OptionKind(Enum):
    """What values an option has."""

    COUNT = "a whole number, at least 1"
    MILLISECONDS = "a positive number of milliseconds, or None"
    VARIABLES = "names and values"
    GUEST_DIRECTORY = "an absolute path in the sandbox"
    HOST_DIRECTORY = "a path of this machine, or None"
    ISOLATION = '"none" or "process"'

    @property
    def has_none(self) -> bool:
        """Whether None is a value of its own."""
        return self in (OptionKind.MILLISECONDS, OptionKind.HOST_DIRECTORY)


def _timeout(name: str, value: object) -> object:
    arguments.timeout_seconds(name, value)
    return value


def _host_directory(name: str, value: object) -> str | None:
    return None if value is None else arguments.host_path(name, value)


_CHECKS: Final[Mapping[OptionKind, Callable[[str, object], object]]] = {
    OptionKind.COUNT: arguments.positive_integer,
    OptionKind.MILLISECONDS: _timeout,
    OptionKind.VARIABLES: arguments.variables,
    OptionKind.GUEST_DIRECTORY: arguments.absolute_path,
    OptionKind.HOST_DIRECTORY: _host_directory,
}


@dataclass(frozen=True, slots=True)
class Option:
    """One row."""

    name: str
    kind: OptionKind
    default: Any
    help: str
    """A phrase for people, which every interface shows."""
    interfaces: frozenset[SandboxInterface] = frozenset()
    """Who may set it, beside the constructor."""
    flag: str = ""
    """How the command line spells it, if it can be set there."""
    is_limit: bool = False
    """Whether it is a field of `kernel.limits.Limits`."""
    is_below_seam: bool = False
    """Whether a backend needs it; the SDK itself does what the other options say."""

    @property
    def json_name(self) -> str:
        """The name in JSON-RPC: `fsLimitBytes`."""
        return json_name(self.name)

    def check(self, value: object) -> Any:
        """`value` as the sandbox uses it. Raises `TypeError` and `ValueError`."""
        return _CHECKS[self.kind](self.name, value)
