"""How servers may read a path.

Owns `readings` and `canonical`. Rules: a server may decode percent signs once or more often, before
or after it resolves `..`; it may merge slashes, take a backslash for a slash, or leave out
parameters of a segment (`;x`). A request is allowed only if each reading of its path is. A path
that has no meaning in one of them is refused. Readings and the paths of rules have one form:
unreserved characters as they are, everything else percent-encoded, with upper-case digits.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

DECODINGS_MAX: Final = 3
_SAFE: Final = "/!$&'()*+,;=:@"
_UNRESERVED: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)
_VISIBLE: Final = re.compile(rb"/[\x21-\x7e]*\Z")
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
_PARAMETERS: Final = re.compile(rb";[^/]*")
_PLAIN: Final = re.compile(rb"(?:/[-_~0-9A-Za-z!$&'()*+,=:@][-._~0-9A-Za-z!$&'()*+,=:@]*)*/?\Z")


class AmbiguousPath(ValueError):
    """Servers would read the path differently, or not at all. The message says why."""


def canonical(path: bytes) -> str:
    """A path in the form of readings. Nothing is resolved; `%2F` stays different from `/`."""

    def escape(match: re.Match[bytes]) -> bytes:
        value = int(match[1], 16)
        return bytes((value,)) if value in _UNRESERVED else match[0].upper()

    return quote_from_bytes(_ESCAPE.sub(escape, path), safe=_SAFE + "%")


def readings(path: bytes) -> tuple[str, ...]:
    """Every path for which a server may take `path`, without a query; the first is the literal
    one."""
    if path and _PLAIN.match(path):
        return (path.decode("ascii"),)
    if not _VISIBLE.match(path) or b"#" in path or b"?" in path:
        raise AmbiguousPath("the path does not begin with / or has invalid characters")
    if _BAD_ESCAPE.search(path):
        raise AmbiguousPath("a % in the path is not followed by two hexadecimal digits")
    literal = canonical(path)
    with_slashes = canonical(path.replace(b"\\", b"/")).encode("ascii")
    found = [literal, *_resolved_forms(with_slashes, is_decoded=False)]
    current = path
    for _ in range(DECODINGS_MAX):
        decoded = unquote_to_bytes(current)
        if decoded == current:
            return tuple(dict.fromkeys(found))
        if _CONTROL.search(decoded):
            raise AmbiguousPath("the path has percent-encoded control characters")
        try:
            decoded.decode("utf-8")
        except UnicodeDecodeError:
            raise AmbiguousPath("the path is not UTF-8 after percent-decoding") from None
        found += _resolved_forms(decoded, is_decoded=True)
        current = decoded
    if unquote_to_bytes(current) != current:
        raise AmbiguousPath("the path is percent-encoded several times")
    return tuple(dict.fromkeys(found))


def _resolved_forms(path: bytes, *, is_decoded: bool) -> list[str]:
    """The path as servers resolve it that keep parameters, and as others do."""
    safe = _SAFE if is_decoded else _SAFE + "%"
    texts = (path, _PARAMETERS.sub(b"", path)) if b";" in path else (path,)
    return [quote_from_bytes(_resolved(text), safe=safe) for text in texts]


def _resolved(path: bytes) -> bytes:
    kept: list[bytes] = []
    parts = path.replace(b"\\", b"/").split(b"/")
    for part in parts:
        if part == b"..":
            del kept[-1:]
        elif part not in (b"", b"."):
            kept.append(part)
    tail = b"/" if kept and parts[-1] in (b"", b".", b"..") else b""
    return b"/" + b"/".join(kept) + tail
