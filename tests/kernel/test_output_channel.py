"""The channel by which a started command's output reaches the host."""

from __future__ import annotations

import pytest

from wasmsand.kernel.clock import Clock
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.files.anonymous import AnonymousInodes
from wasmsand.kernel.files.output_channel import ChannelOutput, OutputChannel
from wasmsand.kernel.flags import O_NONBLOCK, POLLOUT, S_IFIFO
from wasmsand.kernel.limits import OUTPUT_CHANNEL_CAPACITY
from wasmsand.kernel.wait import WouldBlock


def output(channel: OutputChannel, fd: int) -> ChannelOutput:
    return ChannelOutput(channel, fd, AnonymousInodes(Clock()).new(S_IFIFO | 0o600))


def test_writes_to_several_descriptors_keep_their_order() -> None:
    channel = OutputChannel()
    one, two = output(channel, 1), output(channel, 2)
    for file, data in ((one, b"a"), (one, b"b"), (two, b"c"), (one, b"d")):
        assert file.write(data) == 1
    assert channel.take() == ((1, b"ab"), (2, b"c"), (1, b"d"))
    assert channel.take() == ()


def test_a_full_channel_takes_what_fits_and_then_makes_its_writer_wait() -> None:
    channel = OutputChannel()
    file = output(channel, 1)
    written = file.write(b"x" * (2 * OUTPUT_CHANNEL_CAPACITY))
    assert 0 < written <= OUTPUT_CHANNEL_CAPACITY
    assert not file.poll() & POLLOUT
    with pytest.raises(WouldBlock) as blocked:
        file.write(b"y")
    woken: list[bool] = []
    blocked.value.queues[0].add(lambda: woken.append(True))
    assert channel.take() == ((1, b"x" * written),)
    assert woken
    assert file.poll() & POLLOUT
    assert file.write(b"y") == 1


def test_a_short_write_is_never_cut() -> None:
    channel = OutputChannel()
    file = output(channel, 1)
    file.write(b"x" * (channel.room() - 200))
    with pytest.raises(WouldBlock):
        file.write(b"y" * 1000)


def test_a_nonblocking_writer_gets_eagain() -> None:
    channel = OutputChannel()
    file = output(channel, 1)
    file.flags |= O_NONBLOCK
    file.write(b"x" * (2 * OUTPUT_CHANNEL_CAPACITY))
    with pytest.raises(KernelError) as caught:
        file.write(b"y")
    assert caught.value.errno is Errno.EAGAIN


def test_single_bytes_on_two_descriptors_cannot_fill_the_hosts_memory() -> None:
    channel = OutputChannel()
    files = output(channel, 1), output(channel, 2)
    count = 0
    with pytest.raises(WouldBlock):
        while True:
            files[count % 2].write(b"x")
            count += 1
    assert count < OUTPUT_CHANNEL_CAPACITY / 100


def test_when_the_host_has_left_writes_are_accepted_and_dropped() -> None:
    channel = OutputChannel()
    file = output(channel, 1)
    file.write(b"waits")
    channel.abandon()
    assert file.write(b"x" * (2 * OUTPUT_CHANNEL_CAPACITY)) == 2 * OUTPUT_CHANNEL_CAPACITY
    assert channel.size == 0
    assert file.poll() & POLLOUT


def test_the_last_close_is_noticed() -> None:
    channel = OutputChannel()
    one, two = output(channel, 1), output(channel, 2)
    for file in (one, two):
        file.references = 1
        file.forget()
    assert channel.writers == 0


def test_a_host_that_waits_for_one_descriptor_is_not_woken_for_others() -> None:
    channel = OutputChannel()
    woken: list[str] = []
    channel.changed.add(lambda: woken.append("changed"))
    channel.awaited, channel.on_awaited = 103, lambda: woken.append("awaited")
    channel.push(1, b"output")
    assert (woken, channel.is_due()) == ([], False)
    channel.push(103, b"report")
    assert (woken, channel.is_due()) == (["awaited"], True)
    assert channel.take() == ((1, b"output"), (103, b"report"))


def test_a_host_that_waits_for_one_descriptor_is_woken_when_the_queue_fills() -> None:
    channel = OutputChannel()
    woken: list[None] = []
    channel.changed.add(lambda: woken.append(None))
    channel.awaited, channel.on_awaited = 103, lambda: None
    pieces = 0
    while not channel.is_due():
        channel.push(1, bytes(4096))
        pieces += 1
    assert woken == [None]
    assert pieces * 4096 < OUTPUT_CHANNEL_CAPACITY // 2
