"""Strict checks of the bytes of a request's head.

Owns `check_head`. Rules: it runs before any parser. What two parsers could read differently is
refused: line ends other than CR LF, folded lines, control characters, repeated or unusual framing
headers. Lengths and numbers are bounded.
"""

from __future__ import annotations

import re
from typing import Final

from wasmsand.machine.network.inspecting.refusals import Refusal

HEADERS_MAX: Final = 256
_REQUEST_LINE: Final = re.compile(
    rb"(?P<method>[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) (?P<target>[\x21-\x7e]+) "
    rb"HTTP/(?P<version>[0-9]\.[0-9])\Z"
)
_FIELD: Final = re.compile(
    rb"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[\t ]*(?P<value>[\t\x20-\x7e\x80-\xff]*)\Z"
)
_DIGITS: Final = re.compile(rb"[0-9]{1,18}\Z")
_ONCE: Final = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"upgrade", b"expect", b"authorization")
)


def check_head(head: bytes) -> None:
    """Raise `Refusal` unless `head`, which ends with an empty line, has one meaning only."""
    *lines, _, _ = head.split(b"\r\n")
    request_line = _REQUEST_LINE.match(lines[0])
    if request_line is None:
        raise Refusal(400, "the first line is not a request of HTTP/1.1")
    if request_line["version"] not in (b"1.0", b"1.1"):
        raise Refusal(505, "the bridge speaks HTTP/1.1 only")
    if len(lines) > HEADERS_MAX + 1:
        raise Refusal(431, f"the request has more than {HEADERS_MAX} headers")
    seen: dict[bytes, bytes] = {}
    for line in lines[1:]:
        field = _FIELD.match(line)
        if field is None:
            raise Refusal(400, _what_is_wrong(line))
        name = field["name"].lower()
        if name in _ONCE and name in seen:
            raise Refusal(400, f"the header {name.decode()} occurs twice")
        seen[name] = field["value"].strip(b"\t ")
    _check_framing(seen, request_line["version"])


def _what_is_wrong(line: bytes) -> str:
    if line[:1] in (b" ", b"\t"):
        return "a header is folded over several lines"
    if b"\n" in line or b"\r" in line:
        return "a line of the head does not end with CR LF"
    return "a header is malformed"


def _check_framing(seen: dict[bytes, bytes], version: bytes) -> None:
    length, encoding = seen.get(b"content-length"), seen.get(b"transfer-encoding")
    if length is not None and encoding is not None:
        raise Refusal(400, "the request has both content-length and transfer-encoding")
    if length is not None and not _DIGITS.match(length):
        raise Refusal(400, "content-length is not a number")
    if encoding is not None and (encoding.lower() != b"chunked" or version != b"1.1"):
        raise Refusal(400, "the only transfer-encoding is chunked, in HTTP/1.1")
    if seen.get(b"expect", b"100-continue").lower() != b"100-continue":
        raise Refusal(417, "the only expectation is 100-continue")
    for name in seen:
        # Some servers read these as the headers above.
        if name.replace(b"_", b"-") != name and name.replace(b"_", b"-") in _ONCE:
            raise Refusal(400, f"the header {name.decode()} is ambiguous")
