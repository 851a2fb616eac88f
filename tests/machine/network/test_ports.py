"""Connections from this machine to servers in a sandbox: data, ends, limits, hostile guests."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pytest

from tests.machine.network.servers import ENVIRONMENT, PATIENCE
from tests.waiting import wait_until
from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.limits import FORWARDS_MAX, OUTSIDE_CAPACITY
from wasmsand.machine.command import CommandRequest
from wasmsand.machine.machine import Machine
from wasmsand.machine.network import forwarding
from wasmsand.machine.network.listening import HostListeners
from wasmsand.machine.streamed import StreamedProcess

HEAD = "import os, selectors, socket, struct, sys, threading, time\n"
ECHO = """
def serve(c):
    while data := c.recv(65536): c.sendall(data)
    c.close()
l = socket.create_server(("127.0.0.1", 7000), backlog=100)
while True:
    c, _ = l.accept()
    threading.Thread(target=serve, args=(c,)).start()
"""
SELECTING_ECHO = """
l = socket.create_server(("", 7000), backlog=1000); l.setblocking(False)
s = selectors.DefaultSelector(); s.register(l, 1)
while True:
    for key, _ in s.select():
        if key.fileobj is l:
            c, _ = l.accept(); c.setblocking(False); s.register(c, 1)
        else:
            try: data = key.fileobj.recv(4096)
            except OSError: data = b""
            if data: key.fileobj.send(data)
            else: s.unregister(key.fileobj); key.fileobj.close()
"""
NEVER_ACCEPTS = """
l = socket.create_server(("127.0.0.1", 7000), backlog=0)
time.sleep(1000)
"""


@pytest.fixture
def guest() -> Iterator[Machine]:
    machine = Machine()
    yield machine
    machine.close()
    # Whatever happened: nothing of the host stays.
    wait_until(lambda: machine.ports.connections == 0)
    wait_until(lambda: machine.kernel.network.sockets == 0)
    assert machine.kernel.ledger.queued == 0


@pytest.fixture
def opened(guest: Machine) -> Iterator[Callable[[int], int]]:
    """Opens a port of this machine for one of the guest."""
    listeners = HostListeners(guest.ports.attach_soon, guest.ports.has_room)
    yield lambda port: listeners.open(port, None)
    listeners.close()


def start(guest: Machine, program: str, port: int | None = 7000) -> StreamedProcess:
    """Start a Python program of the guest, and wait until it listens."""
    request = CommandRequest(
        ("python3", "-c", HEAD + program), environ=ENVIRONMENT, cwd="/home/user", stdin=b""
    )
    started = guest.start(request)
    if port is not None:
        assert guest.ports.wait(port, PATIENCE)
    return started


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def read_all(connection: socket.socket) -> bytes:
    got = bytearray()
    while data := connection.recv(1 << 20):
        got += data
    return bytes(got)


def expect_reset(port: int) -> None:
    """The reset may come while the client still connects."""
    with pytest.raises(ConnectionResetError), connect(port) as connection:
        connection.recv(1)


def failure(work: Callable[[], object]) -> Errno:
    with pytest.raises(KernelError) as caught:
        work()
    return caught.value.errno


def test_much_data_goes_both_ways_and_a_half_closed_connection_stays_open(
    guest: Machine, opened: Callable[[int], int]
) -> None:
    start(guest, ECHO)
    data = os.urandom(3_000_000)
    with connect(opened(7000)) as connection:

        def send() -> None:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        assert read_all(connection) == data
        sender.join()
    wait_until(lambda: guest.ports.connections == 0)
    (event,) = guest.bridge.log.events()
    assert (event.kind, event.allowed, event.port) == ("port", True, 7000)
    assert (event.sent, event.received) == (3_000_000, 3_000_000)


def test_a_guest_that_does_not_read_makes_the_client_wait(guest: Machine) -> None:
    start(guest, "l = socket.create_server(('', 7000)); c, _ = l.accept(); time.sleep(1000)")
    with guest.ports.connect(7000) as connection:
        connection.setblocking(False)
        sent, idle = 0, 0
        while idle < 10:
            try:
                sent += connection.send(bytes(65536))
                idle = 0
            except BlockingIOError:
                idle += 1
                time.sleep(0.02)
        assert sent < 8_000_000
        assert guest.kernel.ledger.queued <= OUTSIDE_CAPACITY + 10_000


def test_a_client_that_does_not_read_makes_the_guest_wait(guest: Machine) -> None:
    program = """
l = socket.create_server(("", 7000)); c, _ = l.accept(); c.setblocking(False)
sent = 0
end = time.monotonic() + 1
while time.monotonic() < end:
    try: sent += c.send(bytes(65536))
    except BlockingIOError: time.sleep(0.02)
print(sent, flush=True)
"""
    process = start(guest, program)
    with guest.ports.connect(7000) as connection:
        (output,) = process.read(PATIENCE)
        sent = int(output.data)
        assert 0 < sent < 4_000_000
        assert len(read_all(connection)) == sent


@pytest.mark.parametrize("who", ["guest", "client"])
def test_a_reset_is_passed_on(guest: Machine, opened: Callable[[int], int], who: str) -> None:
    program = """
l = socket.create_server(("", 7000)); c, _ = l.accept()
if sys.argv[1:] == ["guest"]:
    c.recv(1); c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); c.close()
else:
    c.sendall(b"x")
    try: print(c.recv(1), flush=True)
    except ConnectionResetError: print("reset", flush=True)
time.sleep(1000)
"""
    process = start(guest, f"sys.argv[1:] = [{who!r}]\n" + program)
    connection = connect(opened(7000))
    if who == "guest":
        connection.sendall(b"xyz")
        with pytest.raises(ConnectionResetError):
            read_all(connection)
    else:
        assert connection.recv(1) == b"x"
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
        assert process.read(PATIENCE)[0].data == b"reset\n"
    connection.close()


def test_a_port_without_a_server_resets_the_client(
    guest: Machine, opened: Callable[[int], int]
) -> None:
    expect_reset(opened(7000))
    assert failure(lambda: guest.ports.connect(7000)) is Errno.ECONNREFUSED
    events = guest.bridge.log.events()
    assert [(event.allowed, event.reason) for event in events] == [
        (False, "nothing listens on port 7000")
    ]


def test_a_port_can_be_opened_before_the_server_listens(
    guest: Machine, opened: Callable[[int], int]
) -> None:
    port = opened(7000)
    waited: list[bool] = []
    waiter = threading.Thread(target=lambda: waited.append(guest.ports.wait(7000, PATIENCE)))
    waiter.start()
    start(guest, "time.sleep(0.3)" + ECHO, None)
    waiter.join(PATIENCE)
    assert waited == [True]
    with connect(port) as connection:
        connection.sendall(b"hello")
        assert connection.recv(5) == b"hello"


def test_waiting_for_a_server_ends_in_time(guest: Machine) -> None:
    began = time.monotonic()
    assert guest.ports.wait(7000, 0.2) is False
    assert 0.2 <= time.monotonic() - began < 5
    assert guest.ports.wait(7000, 0) is False


def test_a_client_waits_for_a_place_in_the_backlog(
    guest: Machine, opened: Callable[[int], int]
) -> None:
    program = """
l = socket.create_server(("", 7000), backlog=0)
time.sleep(0.5)
while True:
    c, _ = l.accept(); c.sendall(b"hello"); c.close()
"""
    start(guest, program)
    port = opened(7000)
    connections = [connect(port) for _ in range(5)]
    assert [read_all(connection) for connection in connections] == [b"hello"] * 5
    for connection in connections:
        connection.close()


def test_a_server_that_never_accepts_is_given_up(
    guest: Machine, opened: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "PORT_BACKLOG_SECONDS", 0.3)
    start(guest, NEVER_ACCEPTS)
    first = guest.ports.connect(7000)  # one place is always there
    assert failure(lambda: guest.ports.connect(7000)) is Errno.ETIMEDOUT
    expect_reset(opened(7000))
    first.close()


def test_a_server_that_ends_resets_connections_that_wait(
    guest: Machine, opened: Callable[[int], int]
) -> None:
    process = start(guest, NEVER_ACCEPTS)
    port = opened(7000)
    connections = [connect(port) for _ in range(3)]
    wait_until(lambda: guest.ports.connections == 3)
    process.kill()
    for connection in connections:
        with connection, pytest.raises(ConnectionResetError):
            connection.recv(1)


def test_hundreds_of_connections_at_once(guest: Machine, opened: Callable[[int], int]) -> None:
    start(guest, SELECTING_ECHO)
    port = opened(7000)
    connections = [connect(port) for _ in range(300)]
    for turn in range(3):
        for number, connection in enumerate(connections):
            connection.sendall(b"%d-%d" % (turn, number))
        for number, connection in enumerate(connections):
            expected = b"%d-%d" % (turn, number)
            assert connection.recv(len(expected)) == expected
    threads = [thread.name for thread in threading.enumerate()]
    assert threads.count("wasmsand-network") == 1
    for connection in connections:
        connection.close()
    wait_until(lambda: guest.ports.connections == 0)


def test_more_connections_than_allowed_wait_until_others_end(
    guest: Machine, opened: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "PORT_CONNECTIONS_MAX", 4)
    start(guest, SELECTING_ECHO)
    port = opened(7000)
    connections = [connect(port) for _ in range(6)]
    for connection in connections:
        connection.sendall(b"x")
    for connection in connections[:4]:
        assert connection.recv(1) == b"x"
    connections[4].settimeout(0.3)
    with pytest.raises(TimeoutError):
        connections[4].recv(1)
    assert guest.ports.connections == 4
    assert failure(lambda: guest.ports.connect(7000)) is Errno.EMFILE
    for connection in connections[:2]:
        connection.close()
    for connection in connections[4:]:
        connection.settimeout(PATIENCE)
        assert connection.recv(1) == b"x"
    for connection in connections[2:]:
        connection.close()


def test_an_idle_connection_is_closed(guest: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "PORT_IDLE_SECONDS", 1.5)
    start(guest, ECHO)
    with guest.ports.connect(7000) as idle, guest.ports.connect(7000) as busy:
        for connection in (idle, busy):
            connection.settimeout(PATIENCE)
        began = time.monotonic()
        while guest.ports.connections == 2:
            busy.sendall(b"x")
            assert busy.recv(1) == b"x"
            assert time.monotonic() - began < PATIENCE
        assert idle.recv(1) == b""
        busy.sendall(b"y")
        assert busy.recv(1) == b"y"
    assert guest.bridge.log.events()[0].reason.startswith("no byte moved")


def test_closing_the_sandbox_ends_connections_listeners_and_waits(guest: Machine) -> None:
    start(guest, ECHO)
    listeners = HostListeners(guest.ports.attach_soon, guest.ports.has_room)
    port = listeners.open(7000, None)
    forwarded, direct = connect(port), guest.ports.connect(7000)
    forwarded.sendall(b"x")
    assert forwarded.recv(1) == b"x"
    errors: list[Errno] = []
    waiter = threading.Thread(
        target=lambda: errors.append(failure(lambda: guest.ports.wait(9, None)))
    )
    waiter.start()
    listeners.close()
    guest.close()
    with forwarded, pytest.raises(ConnectionResetError):
        forwarded.recv(1)
    assert direct.recv(1) == b""
    direct.close()
    waiter.join(PATIENCE)
    assert errors == [Errno.ESRCH]
    wait_until(lambda: _is_refused(port))
    assert failure(lambda: guest.ports.connect(7000)) is Errno.ESRCH
    assert failure(lambda: listeners.open(7000, None)) is Errno.ESRCH


def _is_refused(port: int) -> bool:
    try:
        connect(port).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # accepted, and reset at once
    return False


def test_a_closed_port_leaves_its_connections_open(guest: Machine) -> None:
    start(guest, ECHO)
    listeners = HostListeners(guest.ports.attach_soon, guest.ports.has_room)
    port = listeners.open(7000, None)
    with connect(port) as connection:
        connection.sendall(b"x")
        assert connection.recv(1) == b"x"
        assert listeners.close_port(7000)
        assert not listeners.close_port(7000)
        wait_until(lambda: _is_refused(port))
        connection.sendall(b"y")
        assert connection.recv(1) == b"y"
    listeners.close()


def test_the_port_of_this_machine_can_be_chosen(guest: Machine) -> None:
    listeners = HostListeners(guest.ports.attach_soon, guest.ports.has_room)
    free = listeners.open(7000, None)
    assert listeners.open(7000, None) == free
    assert listeners.open(7000, free) == free
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        assert failure(lambda: listeners.open(7001, number)) is Errno.EADDRINUSE
    assert listeners.open(7000, number) == number
    wait_until(lambda: _is_refused(free))
    assert listeners.opened() == {7000: number}
    listeners.close()


def test_the_ports_of_this_machine_are_bounded_and_only_on_loopback(guest: Machine) -> None:
    listeners = HostListeners(guest.ports.attach_soon, guest.ports.has_room)
    for port in range(1, FORWARDS_MAX + 1):
        listeners.open(port, None)
    assert failure(lambda: listeners.open(9999, None)) is Errno.EMFILE
    assert {found._socket.getsockname()[0] for found in listeners._listeners.values()
            if found._socket is not None} == {"127.0.0.1"}  # fmt: skip
    listeners.close()


def test_a_sandbox_without_references_ends_its_connections() -> None:
    machine = Machine()
    start(machine, ECHO)
    connection = machine.ports.connect(7000)
    connection.sendall(b"x")
    assert connection.recv(1) == b"x"
    gone = weakref.ref(machine)
    del machine
    gc.collect()
    assert gone() is None
    connection.settimeout(PATIENCE)
    assert connection.recv(1) == b""
    connection.close()


def test_a_guest_that_listens_and_closes_all_the_time_harms_only_itself(
    guest: Machine, opened: Callable[[int], int]
) -> None:
    program = """
while True:
    l = socket.create_server(("", 7000), backlog=3)
    try:
        l.settimeout(0.001); c, _ = l.accept(); c.close()
    except OSError: pass
    l.close()
"""
    start(guest, program)
    port = opened(7000)
    ends = 0
    for _ in range(100):
        try:
            with connect(port) as connection:
                ends += connection.recv(1) == b""
        except ConnectionResetError:
            ends += 1
    assert ends == 100


def test_one_sandbox_with_busy_connections_does_not_stop_another(
    guest: Machine, opened: Callable[[int], int]
) -> None:
    flood = """
l = socket.create_server(("", 7000))
while True:
    c, _ = l.accept()
    def send(c=c):
        while True: c.sendall(bytes(1 << 20))
    threading.Thread(target=send, daemon=True).start()
"""
    start(guest, flood)
    other = Machine()
    try:
        start(other, ECHO)
        drains = [connect(opened(7000)) for _ in range(4)]
        stop = threading.Event()

        def drain(connection: socket.socket) -> None:
            while not stop.is_set() and connection.recv(1 << 20):
                pass

        threads = [threading.Thread(target=drain, args=(found,)) for found in drains]
        for thread in threads:
            thread.start()
        slowest = 0.0
        with other.ports.connect(7000) as connection:
            for _ in range(20):
                began = time.monotonic()
                connection.sendall(b"x")
                assert connection.recv(1) == b"x"
                slowest = max(slowest, time.monotonic() - began)
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
        for found in drains:
            found.close()
        assert slowest < 5
    finally:
        other.close()
