"""Names of hosts, and the addresses that stand for them inside a sandbox.

Owns `NameTable`, one per sandbox. Rules: a name that a guest may look up gets an address of
198.18.0.0/15, a range that no host of the Internet has. The address belongs to the name as long as
the sandbox exists, so a connection to it is decided by name, whatever the program that connects.
The number of names is bounded.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.limits import NETWORK_NAMES_MAX

_RANGE: Final = 198 << 24 | 18 << 16
_HOST_BITS: Final = 17
NAMESERVER: Final = (_RANGE | 1).to_bytes(4, "big")
"""198.18.0.1, the only nameserver of a sandbox, as /etc/resolv.conf says."""
NAMESERVER_PORT: Final = 53
GUEST: Final = (_RANGE | 2).to_bytes(4, "big")
"""198.18.0.2, the sandbox's own address on connections to the outside."""
_FIRST: Final = _RANGE | 256


def is_reserved(host: bytes) -> bool:
    """Whether an IPv4 address of four bytes belongs to the range."""
    return int.from_bytes(host, "big") >> _HOST_BITS == _RANGE >> _HOST_BITS


class NameTable:
    """The names that one sandbox has looked up."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}

    def address_of(self, name: str) -> bytes | None:
        """The address that stands for `name`; None if the sandbox has too many names."""
        number = self._numbers.get(name)
        if number is None:
            number = len(self._names)
            if number >= NETWORK_NAMES_MAX:
                return None
            self._numbers[name] = number
            self._names.append(name)
        return (_FIRST + number).to_bytes(4, "big")

    def name_of(self, host: bytes) -> str | None:
        """The name for which an address stands."""
        number = int.from_bytes(host, "big") - _FIRST
        return self._names[number] if 0 <= number < len(self._names) else None
