"""Sockets of one sandbox: Unix sockets, TCP and UDP over the loopback interface, netlink, and
streams to what is outside, if the sandbox was given that capability.

| file | owns |
|---|---|
| `address.py` | addresses: paths, abstract names, Internet addresses and ports |
| `routing.py` | where an Internet address leads: inside, outside, or nowhere |
| `outside.py` | the capability to reach what is outside; the host's end of a stream |
| `creation.py` | which families, types and protocols exist |
| `naming.py` | bind(2), and the look-up of Unix names, with the rights of a process |
| `options.py` | what setsockopt can set |
| `network.py` | which socket is bound to which name |
| `base.py` | what all sockets share |
| `connection.py`, `channel.py` | one end of a connection, and one direction of it |
| `peer.py` | the protocol of the other end |
| `stream.py`, `accept_queue.py` | SOCK_STREAM of Unix and TCP: listen, connect, accept |
| `datagram.py` | messages: SOCK_DGRAM of Unix and UDP |
| `interfaces.py` | the network interfaces: loopback |
| `netlink.py` | questions about interfaces and addresses, as getifaddrs asks them |
| `rights.py` | descriptors that are sent from one process to another (SCM_RIGHTS) |

Rules: nothing here touches the host's network; without the capability every address that is not
of this sandbox is ENETUNREACH. Every buffer is bounded and on the sandbox's ledger.
"""
