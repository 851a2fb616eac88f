"""The other end of a stream.

Owns `Peer`, the protocol that both kinds of other end follow: another stream socket of this
sandbox (`stream.py`), and something of the host (`outside.py`). Rules: bytes never pass through
a peer. They wait in the two `Channel`s of a connection, bounded and on the sandbox's ledger;
whoever reads or writes a channel wakes the other end's queue. A peer only answers how it takes
data, and learns that the socket was closed.
"""

from __future__ import annotations

from typing import Protocol

from wasmsand.kernel.files.pipe import PipeAccount
from wasmsand.kernel.limits import FULL_PIPES_MAX, PIPE_ATOMIC_WRITE, PIPE_CAPACITY
from wasmsand.kernel.sockets.channel import Channel
from wasmsand.kernel.wait import WaitQueue


class Peer(Protocol):
    """What a stream socket needs to know of, and tells, the other end of its connection."""

    @property
    def changed(self) -> WaitQueue:
        """Wakes when the socket has written, read, or ended one direction."""

    @property
    def shut_read(self) -> bool:
        """Whether this end has shut down its reading side."""

    @property
    def takes_urgent_inline(self) -> bool:
        """Whether an urgent byte stays in the stream (SO_OOBINLINE)."""

    def left(self, *, reset: bool) -> None:
        """The socket was closed. `reset`: it broke off the connection, and what this end has
        sent was not read."""


def new_channels(pipes: PipeAccount, one: WaitQueue, two: WaitQueue) -> tuple[Channel, Channel]:
    """Both directions of a connection: from `one` to `two`, and back. Each end gives its share
    of the account back when it parts (`PipeAccount.in_use`)."""
    pipes.in_use += 2
    capacity = PIPE_CAPACITY if pipes.in_use <= FULL_PIPES_MAX else PIPE_ATOMIC_WRITE
    ledger = pipes.ledger
    return (
        Channel(ledger, capacity, writer=one, reader=two),
        Channel(ledger, capacity, writer=two, reader=one),
    )
