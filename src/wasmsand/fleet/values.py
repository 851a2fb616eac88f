"""Plain values of a fleet: its address, and what hosts say of themselves.

Owns the form of `fleet:` addresses and the names of actors. Rules: the values are small, immutable
and pickled by Ray; clients and hosts have the same version of wasmsand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

SCHEME: Final = "fleet:"
DEFAULT_NAME: Final = "default"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CLUSTER: Final = re.compile(r"(?:auto|[A-Za-z0-9_.:\[\]-]{1,255}:[0-9]{1,5})?")
_HOST: Final = re.compile(r"host-([0-9]{1,6})")
MOST_HOSTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class FleetAddress:
    """A fleet: the Ray cluster, and the fleet's name in it."""

    cluster: str | None
    """`HOST:PORT` of the cluster. None: the one that this process has joined, or that runs on
    this machine."""
    name: str = DEFAULT_NAME

    @property
    def namespace(self) -> str:
        """The Ray namespace of the fleet's actors."""
        return f"wasmsand.fleet.{self.name}"

    def __str__(self) -> str:
        suffix = "" if self.name == DEFAULT_NAME else f"/{self.name}"
        return f"{SCHEME}{self.cluster or ''}{suffix}"


def parse_address(text: str) -> FleetAddress:
    """`fleet:[CLUSTER][/NAME]`. Raises `ValueError`."""
    cluster, slash, name = text.removeprefix(SCHEME).removeprefix("//").partition("/")
    if not text.startswith(SCHEME) or not _CLUSTER.fullmatch(cluster):
        raise ValueError(f"the address of a fleet must be like fleet:10.0.0.1:6379, not {text!r}")
    return FleetAddress(
        None if cluster in ("", "auto") else cluster,
        checked_name(name) if slash and name else DEFAULT_NAME,
    )


def checked_name(name: str) -> str:
    """The name of a fleet. Raises `ValueError`."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the name of a fleet has 1 to 64 letters, digits, dashes or underscores, not {name!r}"
        )
    return name


def host_name(number: int) -> str:
    """The name of a host's actor."""
    return f"host-{number}"


def host_number(name: str) -> int | None:
    """The number of the host whose actor has this name; None if it is not a host's."""
    found = _HOST.fullmatch(name)
    return None if found is None else int(found[1])


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What a host is started with, the same after each move."""

    name: str
    token: str
    """Accepted by the server, for all sandboxes."""
    store: str | None
    """The directory of this host in the shared store."""
    serve_options: tuple[str, ...] = ()

    def __repr__(self) -> str:  # Ray writes arguments to its logs; the token stays out of them
        return f"HostPlan({self.name!r}, store={self.store!r}, {self.serve_options!r})"


@dataclass(frozen=True, slots=True)
class HostPlace:
    """Where a host is now."""

    url: str
    token: str
    node: str
    """Ray's id of the node."""
    generation: str
    """Changes each time when the host starts."""
    has_store: bool

    def __repr__(self) -> str:
        return f"HostPlace({self.url!r}, node={self.node[:8]!r}, {self.generation!r})"


@dataclass(frozen=True, slots=True)
class HostLoad:
    """How much a host has to do."""

    sandboxes: int
    """In memory."""
    memory: float
    """The part of the node's memory that is in use, from 0 to 1."""
    load: float
    """The node's load average per core."""

    @property
    def rank(self) -> tuple[int, int]:
        """Less is better for a new sandbox. Small differences of load do not count: it changes all
        the time."""
        return (round(max(self.memory, self.load) * 2), self.sandboxes)


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A host, as `wasmsand fleet status` shows it."""

    name: str
    state: str
    """`"serving"`, or `"not answering"`: it starts, moves, or its node is lost."""
    node: str = ""
    url: str = ""
    load: HostLoad | None = None
