"""Sockets of one sandbox: Unix sockets, TCP and UDP over the loopback interface, netlink, and
streams to the outside if the sandbox has that capability.

| file | owns |
|---|---|
| `address.py` | addresses: paths, abstract names, Internet addresses and ports |
| `routing.py` | where an Internet address leads: inside, outside, or nowhere |
| `outside.py` | the capability to reach the outside; the host's end of a stream |
| `inbound.py` | connections of the host to listening sockets |
| `creation.py` | which families, types and protocols exist |
| `naming.py` | bind(2), and finding sockets by Unix name, with the permissions of the process |
| `options.py` | socket options |
| `network.py` | which socket is bound to which name |
| `base.py` | what all sockets share |
| `connection.py`, `channel.py` | one end of a connection, and one direction of it |
| `peer.py` | the interface of the other end of a stream |
| `stream.py`, `accept_queue.py` | Unix stream sockets and TCP: listen, connect, accept |
| `datagram.py` | Unix datagram sockets and UDP |
| `interfaces.py` | the network interfaces: loopback |
| `netlink.py` | queries about interfaces and addresses, as made by getifaddrs |
| `rights.py` | descriptors sent to another process (SCM_RIGHTS) |

Rules: nothing here touches the host's network. Without the capability, every address outside the
sandbox is ENETUNREACH. Every buffer is bounded and charged to the sandbox's ledger.
"""
