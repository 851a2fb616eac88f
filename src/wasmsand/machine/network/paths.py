"""Paths of HTTP requests in one form.

Owns the normal form of paths that rules and requests are compared in. Rules: servers read unusual
paths in different ways (`/a/../b`, `//b`, `%2e`, `\\`, double encoding), so such a path has no
normal form and no rule with a path allows it. `denied_form` is for rules that deny: it is the same
for all spellings that a lenient server could take for the same path.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from wasmsand.machine.network.host_names import shown

_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN: Final = frozenset("!$&'()*+,;=:@/%") | _UNRESERVED
_AMBIGUOUS_ESCAPES: Final = frozenset({0x25, 0x2F, 0x5C})
"""%, / and backslash: servers differ in when they decode these."""


class PathProblem(ValueError):
    """A path has no normal form; the message says why, as the end of a sentence."""


def canonical_path(target: str) -> str:
    """The normal form of the target of a request (in origin form, without its query): escapes of
    unreserved characters decoded, other escapes in upper case."""
    path = target.partition("?")[0]
    if not path.startswith("/"):
        raise PathProblem(f"{shown(path)} is not a path; a path starts with '/'")
    if not set(path) <= _PLAIN:
        raise PathProblem("a path has only ASCII letters; write others as %XX")
    if path.count("%") != len(_ESCAPE.findall(path)):
        raise PathProblem("a path with '%' that no two hexadecimal digits follow")

    def decoded(found: re.Match[str]) -> str:
        code = int(found[1], 16)
        if code in _AMBIGUOUS_ESCAPES or code < 0x20 or code == 0x7F:
            raise PathProblem(f"a path with {found[0]} means different things to different servers")
        return chr(code) if chr(code) in _UNRESERVED else found[0].upper()

    path = _ESCAPE.sub(decoded, path)
    try:
        unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise PathProblem("a path whose escapes are not UTF-8") from None
    segments = path.split("/")[1:]
    names = [segment.partition(";")[0] for segment in segments]
    if "." in names or ".." in names or "" in names[:-1]:
        raise PathProblem("a path with '//', '/./' or '/../' means different things to servers")
    return path


def denied_form(path: str) -> str:
    """A canonical path as the most lenient server would read it: without case, parameters
    (`;...`) and a slash at the end."""
    segments = [segment.partition(";")[0] for segment in path.split("/")]
    return "/".join(segments).rstrip("/").lower()
