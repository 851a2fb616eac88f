"""Header values that the guest never sees.

Owns `Secrets`: the headers that a host gets, and the placeholders that stand for values. Rules: no
repr, exception or log contains a value. A header of the guest with the same name is dropped. A
placeholder is replaced only in header values, once, and also inside the base64 of `Basic`
credentials. A response header that contains a value is masked, because servers repeat some headers
of requests (`Origin`, `X-Request-Id`).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Final

from wasmsand.machine.network.tables import PLACEHOLDER_MIN

HEADS_MAX: Final = 64 * 1024
"""Longest head of a request, also after placeholders are replaced."""
_TOKEN: Final = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+\Z")
_VALUE: Final = re.compile(
    rb"[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?\Z"
)
_SECRET_MAX: Final = 64 * 1024
_MASKED_FROM: Final = 8
"""Shorter values occur in responses by chance."""
_PUBLIC: Final = re.compile(rb"(?i)(?:accept(?:-.*)?|content-.*|cache-control|if-.*|user-agent)\Z")
"""Headers that a user may set beside the secrets. Their values are in many responses."""
_NOT_FOR_SECRETS: Final = frozenset(
    (
        "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer",
        "expect", "keep-alive",
    )
)  # fmt: skip
Headers = Sequence[tuple[bytes, bytes]]


class SecretProblem(ValueError):
    """A secret cannot be sent in a header. The message does not contain the value."""


class Secrets:
    """The secrets of one host."""

    __slots__ = ("_headers", "_masked", "_placeholders", "_tokens")

    def __init__(
        self,
        headers: Mapping[str, str] | None = None,
        placeholders: Mapping[str, str] | None = None,
    ) -> None:
        """`headers` maps names to values; `placeholders` maps what the guest sends to what the
        host gets instead."""
        self._headers = [_header(name, value) for name, value in (headers or {}).items()]
        self._placeholders = dict(
            _placeholder(token, value) for token, value in (placeholders or {}).items()
        )
        # The longest first: one placeholder may begin with another.
        tokens = sorted(self._placeholders, key=len, reverse=True)
        self._tokens = re.compile(b"|".join(map(re.escape, tokens))) if tokens else None
        values = {value for name, value in self._headers if not _PUBLIC.match(name)}
        values |= set(self._placeholders.values())
        values |= {value.partition(b" ")[2] for value in values}  # without `Bearer`
        masked = sorted((v for v in values if len(v) >= _MASKED_FROM), key=len, reverse=True)
        self._masked = re.compile(b"|".join(map(re.escape, masked))) if masked else None

    def __bool__(self) -> bool:
        return bool(self._headers or self._placeholders)

    def __repr__(self) -> str:
        names = [name.decode("ascii") for name, _ in self._headers]
        return f"<Secrets: headers {names}, {len(self._placeholders)} placeholders>"

    def applied(self, headers: Headers) -> list[tuple[bytes, bytes]] | None:
        """The headers that the host gets instead of the guest's; None if they are too long."""
        own = {_key(name) for name, _ in self._headers}
        result: list[tuple[bytes, bytes]] = []
        room = HEADS_MAX
        for name, value in headers:
            key = _key(name)
            if key in own:
                continue
            replaced: bytes | None = value
            if self._tokens is not None and key.decode("ascii") not in _NOT_FOR_SECRETS:
                replaced = self._replaced(value, room)
            if replaced is None:
                return None
            room -= len(name) + len(replaced) + 4
            if room < 0:
                return None
            result.append((name, replaced))
        return result + self._headers

    def _replaced(self, value: bytes, room: int) -> bytes | None:
        scheme, _, rest = value.partition(b" ")
        if scheme.lower() == b"basic":
            try:
                decoded = base64.b64decode(rest.strip(), validate=True)
            except binascii.Error:
                return self._filled(value, room)
            filled = self._filled(decoded, room)
            if filled is None or filled == decoded:
                return None if filled is None else value
            return scheme + b" " + base64.b64encode(filled)
        return self._filled(value, room)

    def _filled(self, text: bytes, room: int) -> bytes | None:
        assert self._tokens is not None
        found = self._tokens.findall(text)
        if sum(len(self._placeholders[token]) for token in found) > room:
            return None
        return self._tokens.sub(lambda match: self._placeholders[match[0]], text)

    def masked(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        """A response's headers without the values."""
        if self._masked is None:
            return list(headers)
        return [(name, self._masked.sub(_stars, value)) for name, value in headers]


def _stars(match: re.Match[bytes]) -> bytes:
    return b"*" * len(match[0])


def _key(name: bytes) -> bytes:
    """Many servers do not distinguish `X_Key` and `X-Key`."""
    return name.lower().replace(b"_", b"-")


def _header(name: str, value: str) -> tuple[bytes, bytes]:
    if not _TOKEN.match(name) or name.lower() in _NOT_FOR_SECRETS:
        raise SecretProblem(f"{name!r} cannot be a header with a secret")
    return name.encode("ascii"), _checked(value, f"the secret for the header {name}")


def _placeholder(token: str, value: str) -> tuple[bytes, bytes]:
    if len(token) < PLACEHOLDER_MIN:
        raise SecretProblem(f"the placeholder {token!r} has less than {PLACEHOLDER_MIN} letters")
    what = f"the placeholder {token[:80]!r}"
    return _checked(token, what), _checked(value, f"the secret for {what}")


def _checked(value: str, what: str) -> bytes:
    try:
        encoded = value.encode("latin-1")
    except UnicodeEncodeError:
        raise SecretProblem(f"{what} has characters that a header cannot have") from None
    if len(encoded) > _SECRET_MAX:
        raise SecretProblem(f"{what} is longer than {_SECRET_MAX} bytes")
    if not _VALUE.match(encoded):
        raise SecretProblem(
            f"{what} is empty, or has line breaks, control characters, or blanks at its ends"
        )
    return encoded
