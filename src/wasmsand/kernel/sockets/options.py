"""Socket options.

Owns the table of options and their values. Rules: options without an effect inside one machine
(keep-alive times, TOS, TTL) are stored and returned, as programs expect. An option that is not in
the table is ENOPROTOOPT.
"""

from __future__ import annotations

from typing import Final

SOL_SOCKET: Final = 1
IPPROTO_IP: Final = 0
IPPROTO_TCP: Final = 6
IPPROTO_UDP: Final = 17
IPPROTO_IPV6: Final = 41

SO_REUSEADDR: Final = (SOL_SOCKET, 2)
SO_TYPE: Final = (SOL_SOCKET, 3)
SO_ERROR: Final = (SOL_SOCKET, 4)
SO_SNDBUF: Final = (SOL_SOCKET, 7)
SO_RCVBUF: Final = (SOL_SOCKET, 8)
SO_OOBINLINE: Final = (SOL_SOCKET, 10)
SO_LINGER: Final = (SOL_SOCKET, 13)
SO_REUSEPORT: Final = (SOL_SOCKET, 15)
SO_PEERCRED: Final = (SOL_SOCKET, 17)
SO_RCVTIMEO: Final = (SOL_SOCKET, 66)
SO_SNDTIMEO: Final = (SOL_SOCKET, 67)
SO_ACCEPTCONN: Final = (SOL_SOCKET, 30)
SO_PROTOCOL: Final = (SOL_SOCKET, 38)
SO_DOMAIN: Final = (SOL_SOCKET, 39)
IPV6_UNICAST_HOPS: Final = (IPPROTO_IPV6, 16)
IPV6_V6ONLY: Final = (IPPROTO_IPV6, 26)
IPV6_RECVHOPLIMIT: Final = (IPPROTO_IPV6, 51)
IPV6_HOPLIMIT: Final = (IPPROTO_IPV6, 52)
IPV6_RECVTCLASS: Final = (IPPROTO_IPV6, 66)
IPV6_TCLASS: Final = (IPPROTO_IPV6, 67)

_BUFFER_DEFAULT: Final = 212_992

SWITCHES: Final = frozenset(
    {
        (SOL_SOCKET, 1),  # SO_DEBUG
        SO_REUSEADDR,
        (SOL_SOCKET, 5),  # SO_DONTROUTE
        (SOL_SOCKET, 6),  # SO_BROADCAST
        (SOL_SOCKET, 9),  # SO_KEEPALIVE
        SO_OOBINLINE,
        SO_REUSEPORT,
        (SOL_SOCKET, 16),  # SO_PASSCRED
        (IPPROTO_TCP, 1),  # TCP_NODELAY
        (IPPROTO_TCP, 3),  # TCP_CORK
        (IPPROTO_TCP, 12),  # TCP_QUICKACK
        (IPPROTO_IP, 8),  # IP_PKTINFO
        (IPPROTO_IP, 34),  # IP_MULTICAST_LOOP
        IPV6_V6ONLY,
        (IPPROTO_IPV6, 19),  # IPV6_MULTICAST_LOOP
        (IPPROTO_IPV6, 49),  # IPV6_RECVPKTINFO
        IPV6_RECVHOPLIMIT,
        IPV6_RECVTCLASS,
    }
)
"""Boolean options; any value but 0 means on."""

DEFAULTS: Final[dict[tuple[int, int], int]] = {
    **dict.fromkeys(SWITCHES, 0),
    (IPPROTO_IP, 34): 1,
    (IPPROTO_IPV6, 19): 1,
    SO_SNDBUF: _BUFFER_DEFAULT,
    SO_RCVBUF: _BUFFER_DEFAULT,
    (SOL_SOCKET, 12): 0,  # SO_PRIORITY
    (SOL_SOCKET, 18): 1,  # SO_RCVLOWAT
    (IPPROTO_TCP, 4): 7200,  # TCP_KEEPIDLE
    (IPPROTO_TCP, 5): 75,  # TCP_KEEPINTVL
    (IPPROTO_TCP, 6): 9,  # TCP_KEEPCNT
    (IPPROTO_TCP, 7): 6,  # TCP_SYNCNT
    (IPPROTO_TCP, 9): 0,  # TCP_DEFER_ACCEPT
    (IPPROTO_TCP, 18): 0,  # TCP_USER_TIMEOUT
    (IPPROTO_TCP, 2): 32741,  # TCP_MAXSEG
    (IPPROTO_IP, 1): 0,  # IP_TOS
    (IPPROTO_IP, 2): 64,  # IP_TTL
    (IPPROTO_IP, 33): 1,  # IP_MULTICAST_TTL
    IPV6_UNICAST_HOPS: 64,
    (IPPROTO_IPV6, 18): 1,  # IPV6_MULTICAST_HOPS
    IPV6_TCLASS: 0,
}
"""Every integer option with its default."""

_BUFFER_MIN: Final = {SO_SNDBUF: 4608, SO_RCVBUF: 2304}


def settled(option: tuple[int, int], value: int) -> int:
    """The value that getsockopt returns after `value` was set: buffer sizes are doubled and
    bounded, as on Linux."""
    if option in SWITCHES:
        return int(value != 0)
    if option in _BUFFER_MIN:
        return max(_BUFFER_MIN[option], min(max(value, 0), _BUFFER_DEFAULT) * 2)
    return value
