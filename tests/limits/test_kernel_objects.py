"""Attacks with kernel objects: each is limited, ends in time, and leaves the sandbox usable."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.waiting import eventually
from wasmsand import Sandbox, Usage

MIB = 1024 * 1024
UNCHARGED = 4 * MIB
"""Memory of kernel objects that is not charged to memory_limit_bytes."""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox with 64 MiB that must still work, and hold nothing, after the test."""
    with Sandbox(memory_limit_bytes=64 * MIB) as sandbox:
        yield sandbox
        assert sandbox.commands.run("echo alive | cat").stdout == "alive\n"
        assert empty(sandbox).kernel_bytes == 0


def empty(sandbox: Sandbox) -> Usage:
    """What the sandbox uses when all its processes have ended."""

    def is_empty() -> bool:
        usage = sandbox.usage()
        return not usage.processes and not usage.kernel_bytes

    eventually(is_empty, 20)
    return sandbox.usage()


def attack(sandbox: Sandbox, script: str, timeout_ms: int = 10_000) -> str:
    """Run a Python program that prints what stopped it; returns its output."""
    sandbox.files.write("/tmp/attack.py", script)
    began = time.monotonic()
    result = sandbox.commands.run("python3 /tmp/attack.py", timeout_ms=timeout_ms)
    assert time.monotonic() - began < timeout_ms / 1000 + 10, "the time limit did not hold"
    return result.stdout + result.stderr


FAN_OUT = """
import errno, os, select
layers = [[select.epoll() for _ in range(60)] for _ in range(5)]
refused = {}
def watch(above, below):
    try:
        above.register(below, select.EPOLLIN)
    except OSError as error:
        name = errno.errorcode[error.errno]
        refused[name] = refused.get(name, 0) + 1
for upper, lower in zip(layers, layers[1:]):
    for above in upper:
        for below in lower[:25]:
            watch(above, below)
source, sink = os.pipe()
for epoll in layers[-1]:
    watch(epoll, source)
os.write(sink, b"x")
for epoll in layers[0]:
    epoll.poll(0)
poll = select.poll()
for epoll in layers[0]:
    poll.register(epoll, select.POLLIN)
for _ in range(20):
    poll.poll(0)
print("done", sorted(refused))
"""


def test_epolls_that_fan_out_are_refused_beyond_a_number_of_paths(sandbox: Sandbox) -> None:
    assert attack(sandbox, FAN_OUT) == "done ['EINVAL']\n"


CHAIN = """
import errno, select
kept = []
def chain(count, watch):
    last, refused = select.epoll(), 0
    for _ in range(count):
        kept.append(last)
        new = select.epoll()
        try:
            watch(last, new)
        except OSError as error:
            assert error.errno == errno.ELOOP
            refused += 1
        last = new
    return last, refused
top, refused_above = chain(900, lambda last, new: new.register(last, select.EPOLLIN))
top.poll(0)
_, refused_below = chain(100, lambda last, new: last.register(new, select.EPOLLIN))
print(refused_above, refused_below)
"""


def test_a_chain_of_epolls_is_refused_beyond_a_length(sandbox: Sandbox) -> None:
    assert attack(sandbox, CHAIN) == "180 20\n"


def test_endless_epoll_watches_are_refused(sandbox: Sandbox) -> None:
    script = """
import errno, os, select
source, sink = os.pipe()
fds = [os.dup(source) for _ in range(900)]
count = 0
try:
    kept = []
    while True:
        epoll = select.epoll()
        kept.append(epoll)
        for fd in fds:
            epoll.register(fd, select.EPOLLIN)
            count += 1
except OSError as error:
    print(errno.errorcode[error.errno], count)
os.write(sink, b"x")
"""
    assert attack(sandbox, script) == "ENOSPC 8192\n"


def test_connections_that_nobody_accepts_are_limited(sandbox: Sandbox) -> None:
    script = """
import errno, socket
listeners = []
for _ in range(50):
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    listeners.append(listener)
count, data = 0, b"x" * 65000
try:
    while True:
        client = socket.socket()
        client.settimeout(5)
        client.connect(listeners[count % 50].getsockname())
        client.setblocking(False)
        client.send(data)
        client.close()
        count += 1
except OSError as error:
    print(errno.errorcode[error.errno], count > 100)
"""
    # Memory or sockets, whichever runs out first.
    assert attack(sandbox, script, 30_000) in ("ENOBUFS True\n", "ENFILE True\n")


def test_datagrams_that_nobody_reads_are_limited(sandbox: Sandbox) -> None:
    script = """
import errno, socket
receivers = []
for _ in range(900):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    receivers.append(receiver.getsockname())
    receivers.append(receiver)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    while True:
        for address in receivers[::2]:
            sender.sendto(b"x" * 20000, address)
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    assert attack(sandbox, script, 30_000) == "ENOBUFS\n"


def test_queued_data_is_reported(sandbox: Sandbox) -> None:
    script = """
import os, sys
pipes = [os.pipe() for _ in range(100)]
for _, sink in pipes:
    os.write(sink, b"x" * 60000)
print("ready", flush=True)
sys.stdin.read()
"""
    sandbox.files.write("/tmp/attack.py", script)
    command = sandbox.commands.start("python3 /tmp/attack.py")
    assert next(iter(command)) is not None
    usage = sandbox.usage()
    assert 6_000_000 < usage.kernel_bytes < 8_000_000
    assert usage.memory_bytes > usage.kernel_bytes
    command.kill()
    command.wait()


def test_terminals_whose_masters_are_closed(sandbox: Sandbox) -> None:
    script = """
import errno, os
slaves = []
try:
    while True:
        master, slave = os.openpty()
        os.set_blocking(slave, False)
        try:
            while True:
                os.write(slave, b"x" * 4096)
        except BlockingIOError:
            pass
        os.close(master)
        slaves.append(slave)
except OSError as error:
    print(errno.errorcode[error.errno], len(slaves))
"""
    name, count = attack(sandbox, script, 30_000).split()
    assert name in ("ENOMEM", "EMFILE")
    assert int(count) < 700


def test_a_timer_that_fires_all_the_time(sandbox: Sandbox) -> None:
    script = """
import signal
count = 0
def handle(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
while count < 50:
    pass
for _ in range(100000):
    signal.setitimer(signal.ITIMER_REAL, 1000)
print("done")
"""
    assert attack(sandbox, script, 30_000) == "done\n"


def test_a_background_process_that_keeps_making_threads(sandbox: Sandbox) -> None:
    script = """
import threading, time
def make():
    while True:
        try:
            threading.Thread(target=time.sleep, args=(1000,)).start()
        except RuntimeError:
            time.sleep(0.01)
make()
"""
    sandbox.files.write("/tmp/attack.py", script)
    sandbox.commands.run("python3 /tmp/attack.py > /dev/null 2>&1 &")
    for _ in range(5):
        result = sandbox.commands.run("sleep 0.3; echo alive | cat", timeout_ms=20_000)
        assert result.stdout == "alive\n"
    sandbox.commands.run("pkill -KILL python3; sleep 0.1")


HOGS = {
    "memory": """
import time
kept = []
while True:
    try:
        kept.append(bytearray(1 << 20))
    except MemoryError:
        time.sleep(0.01)
""",
    "sockets": """
import socket, time
kept = []
while True:
    try:
        pair = socket.socketpair()
        pair[0].setblocking(False)
        kept.append(pair)
        pair[0].send(b"x" * 65536)
    except OSError:
        time.sleep(0.01)
""",
}


@pytest.mark.parametrize("hog", HOGS)
def test_a_background_process_that_takes_all_it_gets(sandbox: Sandbox, hog: str) -> None:
    sandbox.files.write("/tmp/attack.py", HOGS[hog])
    sandbox.commands.run("python3 /tmp/attack.py > /dev/null 2>&1 &")
    for _ in range(5):
        result = sandbox.commands.run("sleep 0.3; echo alive | cat", timeout_ms=20_000)
        assert result.stdout == "alive\n", result.stderr
    sandbox.commands.run("pkill -KILL python3; sleep 0.1")


def test_the_command_after_a_fork_bomb_runs() -> None:
    with Sandbox() as sandbox:
        for _ in range(3):
            sandbox.commands.run(":(){ :|:& };:", timeout_ms=4_000)
            result = sandbox.commands.run("echo alive | cat", timeout_ms=20_000)
            assert (result.stdout, result.timed_out) == ("alive\n", False)
