"""The other end of a stream.

Owns `Peer`, the interface of both kinds of other end: another stream socket of this sandbox
(`stream.py`), or an end held by the host (`outside.py`). Rules: bytes never pass through a peer.
They wait in the two `Channel`s of a connection, bounded and charged to the sandbox's ledger.
Reading or writing a channel wakes the other end's queue. A peer only says how it handles data, and
is told when the socket is closed.
"""

from __future__ import annotations

from typing import Protocol

from wasmsand.kernel.files.pipe import PipeAccount
from wasmsand.kernel.limits import FULL_PIPES_MAX, PIPE_ATOMIC_WRITE, PIPE_CAPACITY
from wasmsand.kernel.sockets.channel import Channel
from wasmsand.kernel.wait import WaitQueue


class Peer(Protocol):
    """What a stream socket asks and tells the other end of its connection."""

    @property
    def changed(self) -> WaitQueue:
        """Woken when the socket writes, reads, or shuts down one direction."""

    @property
    def shut_read(self) -> bool:
        """Whether this end has shut down its reading side."""

    @property
    def takes_urgent_inline(self) -> bool:
        """Whether an urgent byte stays in the stream (SO_OOBINLINE)."""

    def left(self, *, reset: bool) -> None:
        """The socket was closed. `reset`: it reset the connection, and data from this end was not
        read."""


def new_channels(
    pipes: PipeAccount, one: WaitQueue, two: WaitQueue, capacity: int = PIPE_CAPACITY
) -> tuple[Channel, Channel]:
    """Both directions of a connection: from `one` to `two`, and back. Each end decrements
    `PipeAccount.in_use` when it is closed. If the sandbox has many, their capacity is small."""
    pipes.in_use += 2
    if pipes.in_use > FULL_PIPES_MAX:
        capacity = PIPE_ATOMIC_WRITE
    ledger = pipes.ledger
    return (
        Channel(ledger, capacity, writer=one, reader=two),
        Channel(ledger, capacity, writer=two, reader=one),
    )
