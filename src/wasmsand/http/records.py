"""What the store keeps of a sandbox and of a snapshot besides its state.

Rules: a record is JSON, decoded by its type, so a damaged one is refused as a whole (`StoreError`).
It contains no secret of a network and no token: the owner is the token's name. Environment
variables are in the state.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from wasmsand.http.messages import CommandEnd, OutputBatch, OutputPiece, SessionTag
from wasmsand.http.tokens import ANYBODY, Token
from wasmsand.sdk.errors import StoreError
from wasmsand.sdk.network import Network, network_from_plain, plain_network
from wasmsand.sdk.options import SETTINGS, SandboxOptions

_LIMITS: Final = tuple(option.name for option in SETTINGS if option.is_limit)
_SECRET_FIELDS: Final = ("secrets", "placeholders")


class StoredOptions(msgspec.Struct, kw_only=True):
    """The options of a sandbox, without variables and working directory."""

    limits: dict[str, int]
    timeout_ms: float | None
    packages: list[str]
    network: dict[str, Any] | None
    """The network's rules, without secrets."""
    secret_hosts: list[str]
    """The hosts that had secrets."""


class StoredCommand(msgspec.Struct, kw_only=True):
    """A started command: a session that a client drives, or one that has ended."""

    id: str
    pid: int
    session: SessionTag | None
    end: CommandEnd | None
    """How it ended; None for a session, whose program is in the state."""
    waiting: list[OutputPiece]
    """Output that the client has not asked for."""
    last: OutputBatch


class SandboxRecord(msgspec.Struct, kw_only=True):
    """A sandbox."""

    owner: str
    created: float
    ends: float
    """Wall-clock time, like the following."""
    used: float
    idle_seconds: float
    metadata: dict[str, str]
    options: StoredOptions
    cwd: str
    sessions: dict[str, str]
    """The ids of the sessions that the server drives, by their identity."""
    commands: list[StoredCommand]
    lost: list[str]
    """The ids of commands and sessions that are not in the state."""


class SnapshotRecord(msgspec.Struct, kw_only=True):
    """A snapshot."""

    owner: str
    sandbox: str
    name: str
    created: float
    kinds: list[str]
    size_bytes: int
    options: StoredOptions
    sessions: dict[str, str]
    tags: dict[str, SessionTag]


_Record = TypeVar("_Record", SandboxRecord, SnapshotRecord)


def encoded(record: SandboxRecord | SnapshotRecord) -> bytes:
    """A record as bytes."""
    return msgspec.json.encode(record)


def decoded(data: bytes, kind: type[_Record]) -> _Record:
    """The inverse of `encoded`. Raises `StoreError`."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise StoreError(f"damaged record: {error}") from None


def stored_owner(owner: Token) -> str:
    """The name of an owner in records. No token has the empty name."""
    return "" if owner is ANYBODY else owner.name


def stored_options(options: SandboxOptions, network: Network | None) -> StoredOptions:
    """Options for a record."""
    plain, hosts = None, []
    if network is not None:
        plain = plain_network(network)
        plain.pop("ceiling", None)
        for name in _SECRET_FIELDS:
            hosts += [*plain.pop(name, {})]
    return StoredOptions(
        limits={name: getattr(options, name) for name in _LIMITS},
        timeout_ms=options.timeout_ms,
        packages=list(options.packages),
        network=plain,
        secret_hosts=sorted(set(hosts)),
    )


def read_options(stored: StoredOptions) -> SandboxOptions:
    """The inverse of `stored_options`, without secrets. Raises `StoreError`."""
    try:
        network = None
        if stored.network is not None:
            network = network_from_plain("network", stored.network)
        limits = {name: stored.limits[name] for name in _LIMITS}
        return SandboxOptions(
            **limits,  # type: ignore[arg-type] # limits are numbers
            timeout_ms=stored.timeout_ms,
            packages=stored.packages,
            network=network,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"damaged record: {error}") from None
