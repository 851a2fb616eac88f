"""Guests and the host use their ends of streams in random order.

After each step, what one side received is a prefix of what the other side sent, the ledger holds
exactly the queued bytes, and calls fail only with allowed errors. At the end, everything has been
given back.
"""

from __future__ import annotations

from random import Random
from struct import pack

import pytest

from tests.abi.caller import Caller, Sandbox
from tests.abi.host_peers import ManualHost
from wasmsand.kernel.errno import Errno
from wasmsand.kernel.sockets.outside import OutsideEnd

STEPS = 1500
NONBLOCK, NOSIGNAL = 0o4000, 0x4000
ADDRESS = pack("<HH4s8x", 2, 80 << 8, b"\x5d\xb8\xd8\x22")
ALLOWED = {
    "connect": {Errno.EINPROGRESS, Errno.EALREADY, Errno.EISCONN, Errno.ECONNREFUSED,
                Errno.ETIMEDOUT, Errno.ECONNRESET, Errno.EPIPE},
    "sendto": {Errno.EAGAIN, Errno.EPIPE, Errno.ECONNRESET, Errno.ECONNREFUSED, Errno.ETIMEDOUT},
    "recvfrom": {Errno.EAGAIN, Errno.ENOTCONN, Errno.ECONNRESET, Errno.ECONNREFUSED,
                 Errno.ETIMEDOUT, Errno.EPIPE},
    "shutdown": {Errno.ENOTCONN},
    "getsockopt": set[Errno](),
    "ppoll_time64": set[Errno](),
}  # fmt: skip


class Stream:
    """One connection, from both sides."""

    def __init__(self, sandbox: Sandbox, caller: Caller, host: ManualHost) -> None:
        self._sandbox = sandbox
        self._caller = caller
        self._host = host
        self.fd: int | None = caller.ok("socket", 2, 1 | NONBLOCK, 0)
        self.end: OutsideEnd | None = None
        self.end_closed = False
        self.written = self.taken = self.given = self.read = b""

    def _call(self, name: str, *arguments: int) -> int:
        result = self._caller.call(name, self.fd or 0, *arguments)
        assert result >= 0 or Errno(-result) in ALLOWED[name], (name, Errno(-result))
        return result

    def guest(self, random: Random) -> None:
        """One step of the guest."""
        caller = self._caller
        if self.fd is None:
            return
        step = random.choice(("connect", "write", "read", "shutdown", "error", "poll", "close"))
        if step == "connect":
            count = len(self._host.asked)
            self._call("connect", caller.put(ADDRESS), len(ADDRESS))
            if len(self._host.asked) > count:
                self.end, self.end_closed = self._host.end, False
                self.written = self.taken = self.given = self.read = b""
        elif step == "write":
            data = random.randbytes(random.choice((0, 1, 100, 5000, 70_000)))
            sent = self._call("sendto", caller.put(data), len(data), NOSIGNAL, 0, 0)
            if sent > 0:
                self.written += data[:sent]
        elif step == "read":
            size = random.choice((1, 100, 5000, 70_000))
            at = caller.room(size)
            got = self._call("recvfrom", at, size, 0, 0, 0)
            self.read += caller.get(at, max(got, 0))
        elif step == "shutdown" and random.random() < 0.3:
            self._call("shutdown", random.randrange(3))
        elif step == "error":
            self._call("getsockopt", 1, 4, caller.room(4), caller.pack("I", 4))
        elif step == "poll":
            at = caller.pack("IHH", self.fd, 7, 0)
            caller.ok("ppoll_time64", at, 1, caller.pack("qq", 0, 0), 0, 0)
        elif step == "close" and random.random() < 0.1:
            caller.ok("close", self.fd)
            self.fd = None

    def outside(self, random: Random) -> None:
        """One step of the host."""
        end = self.end
        if end is None:
            return
        with self._sandbox.lock:
            step = random.choice(("establish", "take", "give", "finish", "fail", "close"))
            if step == "establish":
                end.establish()
            elif step == "take":
                self.taken += end.take(random.choice((1, 100, 5000, 70_000)))
            elif step == "give":
                data = random.randbytes(random.choice((1, 100, 5000, 70_000)))
                room = end.room
                sent = end.give(data)
                assert sent == min(len(data), room)
                self.given += data[:sent]
            elif step == "finish" and random.random() < 0.2:
                end.finish()
            elif step == "fail" and random.random() < 0.1:
                end.fail(random.choice((Errno.ECONNREFUSED, Errno.ETIMEDOUT, Errno.ECONNRESET)))
                self.end_closed = True
            elif step == "close" and random.random() < 0.1:
                end.close()
                self.end_closed = True

    def check(self) -> None:
        assert self.written.startswith(self.taken)
        assert self.given.startswith(self.read)


@pytest.mark.parametrize("seed", range(6))
def test_random_steps_of_both_sides_keep_the_rules(seed: int) -> None:
    random = Random(seed)
    sandbox = Sandbox()
    host = ManualHost()
    sandbox.kernel.network.outside = host
    caller = sandbox.process()
    objects = sandbox.kernel.ledger.objects
    streams = [Stream(sandbox, caller, host) for _ in range(4)]
    for _ in range(STEPS):
        stream = random.choice(streams)
        random.choice((stream.guest, stream.outside))(random)
        stream.check()
        waiting = sum(_waiting(end) for _, end in host.asked) + sum(
            _received(caller, each.fd) for each in streams if each.fd is not None
        )
        assert sandbox.kernel.ledger.queued == waiting
        if stream.fd is None and (stream.end is None or stream.end_closed):
            streams[streams.index(stream)] = Stream(sandbox, caller, host)
    for stream in streams:
        if stream.fd is not None:
            caller.ok("close", stream.fd)
    with sandbox.lock:
        for _, end in host.asked:
            end.close()
    ledger, network = sandbox.kernel.ledger, sandbox.kernel.network
    assert (ledger.queued, ledger.objects, network.sockets) == (0, objects, 0)
    assert sandbox.kernel.pipes.in_use == 0
    assert (network.tcp._bound, network.tcp._shared) == ({}, {})


def _waiting(end: OutsideEnd) -> int:
    """Bytes that the host has not taken."""
    return end._from_guest.size if end._from_guest is not None else 0


def _received(caller: Caller, fd: int) -> int:
    """Bytes that the guest has not read (FIONREAD)."""
    at = caller.room(4)
    caller.ok("ioctl", fd, 0x541B, at)
    count: int = caller.unpack("I", at)[0]
    return count
