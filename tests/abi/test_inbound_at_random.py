"""The host connects to guests' listeners, and both sides act in random order.

What one side received is a prefix of what the other side sent, a host that finds no place is woken
when there is one, and at the end everything has been given back.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.abi.caller import Caller, Sandbox
from tests.abi.test_inbound import LOOPBACK, listening
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.sockets.inbound import connect_inbound, is_listening, listening_ports
from wasmsand.kernel.sockets.outside import OutsideEnd
from wasmsand.kernel.wait import WouldBlock

STEPS = 1500
NOSIGNAL = 0x4000
PORTS = (8000, 8001, 8002)
SIZES = (1, 100, 5000, 70_000)
FAILURES = {Errno.EAGAIN, Errno.EPIPE, Errno.ECONNRESET, Errno.ETIMEDOUT, Errno.ENOTCONN}


class Stream:
    """A connection; the guest's side exists once it was accepted."""

    def __init__(self, end: OutsideEnd) -> None:
        self.end = end
        self.fd: int | None = None
        self.ended = False
        self.written = self.taken = self.given = self.read = b""


class World:
    """Listeners and connections of one sandbox."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.sandbox = Sandbox()
        self.caller: Caller = self.sandbox.process()
        self.network = self.sandbox.kernel.network
        self.listeners: dict[int, int] = {}
        self.queues: dict[int, list[Stream]] = {port: [] for port in PORTS}
        self.streams: list[Stream] = []
        self.wakes = 0
        with self.sandbox.lock:
            self.network.listening.add(self._woken)

    def _woken(self) -> None:
        self.wakes += 1

    def step(self) -> None:
        acts = (self.listen, self.stop, self.connect, self.connect, self.accept, self.guest,
                self.guest, self.host, self.host)  # fmt: skip
        self.random.choice(acts)()
        for stream in self.streams:
            assert stream.written.startswith(stream.taken)
            assert stream.given.startswith(stream.read)

    def listen(self) -> None:
        port, wakes = self.random.choice(PORTS), self.wakes
        if port not in self.listeners:
            backlog = self.random.randrange(4)
            self.listeners[port] = listening(self.caller, LOOPBACK, port, backlog)
            assert self.wakes > wakes

    def stop(self) -> None:
        if self.listeners and self.random.random() < 0.1:
            port = self.random.choice(list(self.listeners))
            self.caller.ok("close", self.listeners.pop(port))
            with self.sandbox.lock:
                for stream in self.queues[port]:  # a reset, unless the host has closed it before
                    assert stream.ended or (stream.end.was_reset, stream.end.is_gone) == (True,) * 2
            self.queues[port].clear()

    def connect(self) -> None:
        port = self.random.choice(PORTS)
        with self.sandbox.lock:
            sockets = self.network.sockets
            assert is_listening(self.network, port) == (port in self.listeners)
            try:
                stream = Stream(connect_inbound(self.network, port))
            except WouldBlock:
                assert self.queues[port]
                assert self.network.sockets == sockets
                return
            except KernelError as error:
                if error.errno is not Errno.ECONNREFUSED or port in self.listeners:
                    raise
                return
        self.queues[port].append(stream)
        self.streams.append(stream)

    def accept(self) -> None:
        if not self.listeners:
            return
        port = self.random.choice(list(self.listeners))
        result = self.caller.call("accept4", self.listeners[port], 0, 0, 0o4000)
        if self.queues[port]:
            assert result >= 0
            self.queues[port].pop(0).fd = result
        else:
            assert -result == Errno.EAGAIN

    def guest(self) -> None:
        accepted = [stream for stream in self.streams if stream.fd is not None]
        if not accepted:
            return
        stream = self.random.choice(accepted)
        caller, fd, size = self.caller, stream.fd or 0, self.random.choice(SIZES)
        step = self.random.choice(("write", "read", "read", "shutdown", "close"))
        result = 0
        if step == "write":
            data = self.random.randbytes(size)
            result = caller.call("sendto", fd, caller.put(data), size, NOSIGNAL, 0, 0)
            stream.written += data[: max(result, 0)]
        elif step == "read":
            at = caller.room(size)
            result = caller.call("recvfrom", fd, at, size, 0, 0, 0)
            stream.read += caller.get(at, max(result, 0))
        elif step == "shutdown" and self.random.random() < 0.2:
            result = caller.call("shutdown", fd, self.random.randrange(3))
        elif step == "close" and self.random.random() < 0.2:
            caller.ok("close", fd)
            stream.fd = None
        assert result >= 0 or Errno(-result) in FAILURES

    def host(self) -> None:
        if not self.streams:
            return
        stream = self.random.choice(self.streams)
        end, size = stream.end, self.random.choice(SIZES)
        with self.sandbox.lock:
            step = self.random.choice(("take", "give", "finish", "fail", "close"))
            if step == "take" and not stream.ended:
                stream.taken += end.take(size)
            elif step == "give" and not stream.ended:
                data = self.random.randbytes(size)
                stream.given += data[: end.give(data)]
            elif step == "finish" and self.random.random() < 0.2:
                end.finish()
            elif step in ("fail", "close") and self.random.random() < 0.1:
                stream.ended = True
                if step == "fail":
                    end.fail(Errno.ETIMEDOUT)
                else:
                    end.close()


@pytest.mark.parametrize("seed", range(6))
def test_random_steps_of_both_sides_keep_the_rules(seed: int) -> None:
    world = World(seed)
    objects = world.sandbox.kernel.ledger.objects
    for _ in range(STEPS):
        world.step()
    assert len(world.streams) > 50
    caller, network, ledger = world.caller, world.network, world.sandbox.kernel.ledger
    with world.sandbox.lock:
        assert [found.port for found in listening_ports(network)] == sorted(world.listeners)
    for fd in (*world.listeners.values(), *(stream.fd for stream in world.streams)):
        if fd is not None:
            caller.ok("close", fd)
    with world.sandbox.lock:
        for stream in world.streams:
            stream.end.close()
    assert (ledger.queued, ledger.objects, network.sockets) == (0, objects, 0)
    assert world.sandbox.kernel.pipes.in_use == 0
    assert (network.tcp._bound, network.tcp._shared) == ({}, {})
