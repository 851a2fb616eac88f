"""Sockets inside one sandbox: Unix sockets, TCP and UDP over the loopback interface, netlink.

| file | owns |
|---|---|
| `address.py` | what names an end: paths, abstract names, Internet addresses and ports |
| `options.py` | what setsockopt can set |
| `network.py` | who is bound to which name, and who is reached by it |
| `base.py` | what all sockets share |
| `stream.py` | connections: SOCK_STREAM of Unix and TCP |
| `datagram.py` | messages: SOCK_DGRAM of Unix and UDP |
| `interfaces.py` | which network interfaces there are: loopback |
| `netlink.py` | questions about interfaces and addresses, as getifaddrs asks them |
| `rights.py` | descriptors on their way from one process to another (SCM_RIGHTS) |

Rules: nothing here touches the host's network; an address that is not of this sandbox is
ENETUNREACH. Every buffer is bounded.
"""
