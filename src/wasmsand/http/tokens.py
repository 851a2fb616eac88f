"""Tokens: authentication, and the quota of each token.

Owns `Token`, the reading of tokens, and their comparison. Rules: the server keeps only the
SHA-256 of a token and compares it in constant time with every known one, so neither a
memory dump nor timing reveals the token; messages and logs contain its name, never its text.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from wasmsand.sdk.network import Network, network_from_plain

ENVIRONMENT_VARIABLE = "WASMSAND_TOKENS"
SHORTEST_TOKEN = 16
LONGEST_TOKEN = 512

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class TokensRejected(Exception):
    """A given token cannot be used; the message says which, and why."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What one token may use."""

    max_sandboxes: int = 64
    max_memory_bytes: int = 128 * 1024**3
    """Sum of `memory_limit_bytes` and `fs_limit_bytes` of its sandboxes, reserved when a sandbox
    is created."""
    max_running_commands: int = 48
    requests_per_second: float = 1000
    max_stored_sandboxes: int = 1000
    """With a store: sandboxes, paused ones too; and as many snapshots."""
    max_stored_bytes: int = 16 * 1024**3
    """With a store: the size of the files of its sandboxes and snapshots there."""
    sandbox_seconds_per_day: float = 1e12
    """Seconds that its sandboxes may be in memory, in sum, per day. An unused part is kept for up
    to one day. Paused sandboxes do not count."""


@dataclass(frozen=True, slots=True)
class Token:
    """A client of the server, known by its token."""

    name: str
    digest: bytes = field(repr=False)
    quota: Quota = Quota()
    trusted: bool = False
    """Whether its sandboxes may run in the server's process."""
    all_metrics: bool = False
    """Whether `/metrics` shows it the metrics of the whole server, not only its own."""
    network: Network | None = field(default=None, repr=False)
    """What its sandboxes may reach at most; None means what the server allows all tokens."""

    @classmethod
    def of(
        cls,
        name: str,
        text: str,
        quota: Quota | None = None,
        *,
        trusted: bool = False,
        all_metrics: bool = False,
        network: Network | None = None,
    ) -> Token:
        """The token with this text. Raises `TokensRejected`."""
        if not _NAME.fullmatch(name):
            raise TokensRejected(
                f"token name {name!r} must be 1 to 64 letters, digits, dots, dashes or underscores"
            )
        if not SHORTEST_TOKEN <= len(text) <= LONGEST_TOKEN:
            raise TokensRejected(
                f"the token of {name} must have {SHORTEST_TOKEN} to {LONGEST_TOKEN} characters, "
                f"not {len(text)}; generate one: python -c 'import secrets; print("
                "secrets.token_urlsafe(32))'"
            )
        if not text.isascii() or not text.isprintable() or " " in text:
            raise TokensRejected(f"the token of {name} must be printable ASCII without spaces")
        digest = _digest(text.encode())
        return cls(name, digest, quota or Quota(), trusted, all_metrics, network)

    @classmethod
    def operator(cls, name: str, text: str) -> Token:
        """The token of whoever runs the server: only the server's own limits apply."""
        return cls.of(name, text, _NO_QUOTA, trusted=True, all_metrics=True)


_NO_QUOTA = Quota(2**31, 2**63, 2**31, 1e9, 2**31, 2**63)
ANYBODY = Token("anybody", b"", _NO_QUOTA, trusted=True, all_metrics=True)
"""Every client of a server without tokens: only the server's own limits apply."""
PUBLIC = Token("(public)", b"")
"""A client without a token on a public route. No configured token can have this name."""

SERVER = Token("(server)", b"", _NO_QUOTA, all_metrics=True)
"""The front process itself, when it asks a worker."""


class TokenTable:
    """All tokens of a server."""

    def __init__(self, tokens: Iterable[Token]) -> None:
        self._tokens = tuple(tokens)
        names = [token.name for token in self._tokens]
        if len(set(names)) != len(names):
            raise TokensRejected(f"token names must differ: {', '.join(names)}")

    def replace(self, tokens: Iterable[Token]) -> set[str]:
        """Use other tokens from now on. Returns the names of those that are no longer valid. A
        server with tokens stays one. Raises `TokensRejected`."""
        after = TokenTable(tokens)
        if not after._tokens:
            raise TokensRejected("no token is left; the old tokens stay")
        known = {token.name: token.digest for token in after._tokens}
        revoked = {t.name for t in self._tokens if known.get(t.name) != t.digest}
        self._tokens = after._tokens
        return revoked

    @property
    def is_open(self) -> bool:
        """Whether the server has no tokens, so that everybody may use it."""
        return not self._tokens

    def named(self, name: str) -> Token | None:
        """The token with this name."""
        return next((token for token in self._tokens if token.name == name), None)

    def authenticate(self, authorization: str | None) -> Token | None:
        """The token in an `Authorization` header; None if there is none or it is unknown."""
        if not self._tokens:
            return ANYBODY
        scheme, _, given = (authorization or "").partition(" ")
        digest = _digest(given.strip().encode("utf-8", "surrogateescape"))
        found = None
        for token in self._tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found if scheme.lower() == "bearer" else None


class _FileToken(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    token: str
    max_sandboxes: int | None = None
    max_memory_bytes: int | None = None
    max_running_commands: int | None = None
    requests_per_second: float | None = None
    max_stored_sandboxes: int | None = None
    max_stored_bytes: int | None = None
    sandbox_seconds_per_day: float | None = None
    trusted: bool = False
    all_metrics: bool = False
    network: list[str] | dict[str, Any] | None = None


class _TokenFile(msgspec.Struct, forbid_unknown_fields=True):
    token: list[_FileToken]


def read_token_file(path: Path) -> tuple[Token, ...]:
    """The tokens of a TOML file of `[[token]]` tables. Raises `TokensRejected`."""
    try:
        content = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _TokenFile)
    except OSError as error:
        raise TokensRejected(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise TokensRejected(f"{path}: {error}") from None
    try:
        return tuple(
            Token.of(
                item.name,
                item.token,
                _quota(item),
                trusted=item.trusted,
                all_metrics=item.all_metrics,
                network=_network(item),
            )
            for item in content.token
        )
    except TokensRejected as error:
        raise TokensRejected(f"{path}: {error}") from None


def read_token_variable(environ: Mapping[str, str]) -> tuple[Token, ...]:
    """The tokens of `WASMSAND_TOKENS`: `NAME:TOKEN` or `TOKEN`, separated by commas."""
    words = [word.strip() for word in environ.get(ENVIRONMENT_VARIABLE, "").split(",")]
    tokens = []
    for number, word in enumerate((word for word in words if word), 1):
        name, colon, text = word.partition(":")
        try:
            tokens.append(Token.of(name, text) if colon else Token.of(f"token{number}", word))
        except TokensRejected as error:
            raise TokensRejected(f"{ENVIRONMENT_VARIABLE}: {error}") from None
    return tuple(tokens)


def _quota(item: _FileToken) -> Quota:
    given = {
        name: value
        for name in Quota.__dataclass_fields__
        if (value := getattr(item, name)) is not None
    }
    for name, value in given.items():
        if value <= 0:
            raise TokensRejected(f"{name} of {item.name} must be positive, not {value}")
    return Quota(**given)


def _network(item: _FileToken) -> Network | None:
    """The network of a token: a list of rules, or a table with the fields of `Network`."""
    if item.network is None:
        return None
    try:
        return network_from_plain("network", item.network)
    except ValueError as error:
        raise TokensRejected(f"{item.name}: {error}") from None


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
