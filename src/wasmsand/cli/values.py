"""Parses words of the command line: numbers, variables, addresses.

Rules: each function takes a word and returns its value, or raises `ArgumentTypeError` with a
message that says what is wrong with the word.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wasmsand.sdk.mounts import Mount


_BYTES = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,6})?)([KMGTkmgt]?)(?:i?[Bb])?")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def seconds(word: str) -> float:
    """A positive time in seconds."""
    try:
        value = float(word)
    except ValueError:
        raise ArgumentTypeError(f"{word!r} is not a number of seconds") from None
    if not 0 < value < 1e9:
        raise ArgumentTypeError("must be a positive number of seconds")
    return value


def positive_integer(word: str) -> int:
    """A positive whole number."""
    if not word.isascii() or not word.isdecimal() or not 0 < len(word) < 20 or int(word) == 0:
        raise ArgumentTypeError(f"{word!r} is not a positive number")
    return int(word)


def byte_count(word: str) -> int:
    """A positive number of bytes, such as `4096`, `512K`, `10M` or `1.5G` (powers of 1024)."""
    found = _BYTES.fullmatch(word.strip())
    count = 0 if found is None else int(float(found[1]) * _UNITS[found[2].upper()])
    if not 0 < count < 2**53:
        raise ArgumentTypeError(f"{word!r} is not a size, such as 65536, 512K, 10M or 1.5G")
    return count


def shown_bytes(count: int) -> str:
    """A number of bytes in the largest unit that is exact."""
    for unit in ("T", "G", "M", "K"):
        if count and count % _UNITS[unit] == 0:
            return f"{count // _UNITS[unit]}{unit}"
    return str(count)


def port_number(word: str) -> int:
    """A TCP port; 0 is one that the system chooses."""
    if not word.isascii() or not word.isdecimal() or len(word) > 5 or int(word) > 65535:
        raise ArgumentTypeError(f"{word!r} is not a port")
    return int(word)


def whole_number(word: str) -> int:
    """A whole number that is not negative."""
    return 0 if word == "0" else positive_integer(word)


def variable(word: str) -> tuple[str, str]:
    """`NAME=VALUE`."""
    name, equals, value = word.partition("=")
    if not name or not equals:
        raise ArgumentTypeError(f"{word!r} is not NAME=VALUE")
    return name, value


def address(word: str) -> tuple[str, int]:
    """`HOST:PORT`, or a port on this machine; port 0 is any free port."""
    host, _, port = word.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdecimal() or len(port) > 5 or int(port) > 65535:
        raise ArgumentTypeError(f"{word!r} is not HOST:PORT")
    return host, int(port)


def absolute_path(word: str) -> str:
    """An absolute path in the sandbox."""
    if not word.startswith("/"):
        raise ArgumentTypeError(f"{word!r} is not an absolute path")
    return word


def mount(word: str) -> tuple[str, Mount]:
    """`HOST:GUEST[:ro|rw|overlay]`."""
    from wasmsand.sdk.mounts import mount_from_word

    try:
        return mount_from_word(word)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
