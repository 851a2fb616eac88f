"""Host names in one form.

Owns the normal form of host names: ASCII, lower case, no trailing dot. Rules: what a guest sends is
ASCII already (`guest_name`); only users may write other letters (`user_name`), which are converted
by IDNA 2008 with the package `idna`. A name that could be read as an address in numbers is not a
name.
"""

from __future__ import annotations

import re
from typing import Final

from wasmsand.kernel.limits import HOST_LABEL_MAX, HOST_NAME_MAX
from wasmsand.machine.network.addresses import is_numeric, legacy_address, parse_address

_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\Z")
_SHOWN_MAX: Final = 80


class NameProblem(ValueError):
    """The text is not a host name; the message says why, as the end of a sentence."""


def shown(text: str) -> str:
    """Text of a guest or user for a message: quoted, without control characters, not long."""
    return ascii(text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}...")


def guest_name(text: str) -> str:
    """The normal form of a name that a guest asked for. `NameProblem` if it is none."""
    name = text[:-1] if text.endswith(".") else text
    if not name:
        raise NameProblem("the host name is empty")
    if len(name) > HOST_NAME_MAX:
        raise NameProblem(f"a host name has at most {HOST_NAME_MAX} characters")
    if not name.isascii():
        raise NameProblem("a host name on the wire is ASCII (xn--...)")
    name = name.lower()
    for label in name.split("."):
        if not label:
            raise NameProblem("a part between two dots is empty")
        if len(label) > HOST_LABEL_MAX:
            raise NameProblem(f"a part between two dots has at most {HOST_LABEL_MAX} characters")
        if _LABEL.match(label) is None:
            raise NameProblem(
                f"{shown(label)} is not a part of a host name"
                " (letters, digits, '-' and '_'; '-' not at an end)"
            )
    if is_numeric(name):
        address = parse_address(name) or legacy_address(name)
        raise NameProblem(
            "it is a number, not a name" if address is None else f"write the address {address}"
        )
    return name


def user_name(text: str) -> str:
    """The normal form of a name that a user wrote, with letters of any language."""
    if text.isascii():
        return guest_name(text)
    try:
        import idna
    except ImportError:
        raise NameProblem(
            "other letters than ASCII need: pip install 'wasmsand[network]'; or write xn--..."
        ) from None
    try:
        encoded = idna.encode(text, uts46=True, transitional=False, std3_rules=True)
    except (idna.IDNAError, UnicodeError):
        raise NameProblem("it has a character or a part that is in no host name (IDNA)") from None
    return guest_name(encoded.decode("ascii"))
