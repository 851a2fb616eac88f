"""The type of a row in the table of options, which every interface reads.

Owns `Option`, its kinds, and the interfaces. The rows are in `options`. Rules: a row describes an
option completely; an interface handles kinds, never single options, so that a new option of a
known kind changes no interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from wasmsand.sdk import arguments


def json_name(name: str) -> str:
    """A name as in JSON-RPC: `fsLimitBytes`."""
    first, *rest = name.split("_")
    return first + "".join([word.capitalize() for word in rest])


class SandboxInterface(Enum):
    """An interface that can create a sandbox. The constructor of `Sandbox` is not listed: it takes
    every option."""

    JSON_RPC = "JSON-RPC"
    HTTP = "HTTP"
    LINE = "line protocol"
    COMMAND_LINE = "command line"


class OptionKind(Enum):
    """The values that an option can have."""

    COUNT = "a whole number, at least 1"
    MILLISECONDS = "a positive number of milliseconds, or None"
    VARIABLES = "names and values"
    GUEST_DIRECTORY = "an absolute path in the sandbox"
    HOST_DIRECTORY = "a path of this machine, or None"
    PACKAGES = 'a list of packages, or "all"'
    NETWORK = "a `Network`, a list of rules to allow, or None"
    MOUNTS = "paths in the sandbox, each with a `Mount` or a directory of this machine"
    ISOLATION = '"none" or "process"'
    MODE = '"simple" or "v86"'

    @property
    def has_none(self) -> bool:
        """Whether None is a valid value."""
        return self in (OptionKind.MILLISECONDS, OptionKind.HOST_DIRECTORY, OptionKind.NETWORK)


def _timeout(name: str, value: object) -> object:
    arguments.timeout_seconds(name, value)
    return value


def _host_directory(name: str, value: object) -> str | None:
    return None if value is None else arguments.host_path(name, value)


def _network(name: str, value: object) -> object:
    if value is None:
        return None
    # Imported here, because most sandboxes have no network.
    from wasmsand.sdk.network import network_option

    return network_option(name, value)


def _mounts(name: str, value: object) -> object:
    if not value and (value is None or isinstance(value, Mapping)):
        return {}
    from wasmsand.sdk.mounts import mounts_option

    return mounts_option(name, value)


_CHECKS: Final[Mapping[OptionKind, Callable[[str, object], object]]] = {
    OptionKind.COUNT: arguments.positive_integer,
    OptionKind.MILLISECONDS: _timeout,
    OptionKind.VARIABLES: arguments.variables,
    OptionKind.GUEST_DIRECTORY: arguments.absolute_path,
    OptionKind.HOST_DIRECTORY: _host_directory,
    OptionKind.PACKAGES: arguments.packages,
    OptionKind.NETWORK: _network,
    OptionKind.MOUNTS: _mounts,
}


@dataclass(frozen=True, slots=True)
class Option:
    """One row."""

    name: str
    kind: OptionKind
    default: Any
    help: str
    """A phrase for users, which every interface shows."""
    interfaces: frozenset[SandboxInterface] = frozenset()
    """The interfaces that may set it, besides the constructor."""
    flag: str = ""
    """Its flag on the command line, if it can be set there."""
    short_flag: str = ""
    """A flag of one letter with the same meaning, if there is one."""
    is_limit: bool = False
    """Whether it is a field of `kernel.limits.Limits`."""
    is_below_seam: bool = False
    """Whether a backend implements it; the SDK implements the other options."""

    @property
    def json_name(self) -> str:
        """The name in JSON-RPC: `fsLimitBytes`."""
        return json_name(self.name)

    def check(self, value: object) -> Any:
        """Validate `value` and return it as the sandbox uses it. Raises `TypeError`,
        `ValueError`."""
        return _CHECKS[self.kind](self.name, value)
