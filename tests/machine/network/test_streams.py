"""Connections of guests to real servers: data in both directions, ends, resets, limits."""

from __future__ import annotations

import socket
import struct
import threading
import time

import pytest

from tests.machine.network.servers import PATIENCE, echo, machine, only_event, python, run, server
from wasmsand.machine.network.policy import Budget, policy_of

HOST = "server.test"


def at(port: int) -> dict[str, str]:
    """The server's name leads to a port of loopback."""
    return {HOST: f"127.0.0.1:{port}"}


def test_data_goes_both_ways_and_a_half_closed_connection_stays_open() -> None:
    with server(echo) as port, machine(HOST, hosts=at(port)) as guest:
        program = """
            s = socket.create_connection(("server.test", 7))
            data = os.urandom(3_000_000)
            def send():
                s.sendall(data); s.shutdown(socket.SHUT_WR)
            import threading; threading.Thread(target=send).start()
            got = bytearray()
            while piece := s.recv(100_000): got += piece
            print(got == data)
        """
        assert python(guest, _plain(program)) == "True\n"
        event = only_event(guest)
        assert (event.kind, event.allowed, event.host, event.port) == ("connection", True, HOST, 7)
        assert (event.sent, event.received) == (3_000_000, 3_000_000)


def test_a_server_that_ends_first_is_read_to_the_end_and_can_still_be_written_to() -> None:
    heard: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        connection.sendall(b"first")
        connection.shutdown(socket.SHUT_WR)
        while data := connection.recv(100):
            heard.append(data)

    with server(serve) as port, machine(HOST, hosts=at(port)) as guest:
        program = """
            s = socket.create_connection(("server.test", 7))
            print(s.recv(100), s.recv(100))
            s.sendall(b"last"); s.close()
        """
        assert python(guest, _plain(program)) == "b'first' b''\n"
        _until(lambda: b"".join(heard) == b"last")


def test_a_reset_is_passed_on_in_both_directions() -> None:
    seen: list[BaseException] = []

    def serve(connection: socket.socket) -> None:
        if connection.recv(1) == b"r":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        try:
            connection.recv(1)
        except OSError as error:
            seen.append(error)

    with server(serve) as port, machine(HOST, hosts=at(port)) as guest:
        program = """
            s = socket.create_connection(("server.test", 7)); s.sendall(b"r")
            try: s.recv(1)
            except ConnectionResetError: print("reset")
            s = socket.create_connection(("server.test", 7)); s.sendall(b"x")
            time.sleep(0.2)
            import struct
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()
        """
        assert python(guest, _plain(program)) == "reset\n"
        _until(lambda: bool(seen))
        assert isinstance(seen[0], ConnectionResetError)


def test_a_port_where_nobody_listens_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with machine(HOST, hosts=at(port)) as guest:
        program = """
            try: socket.create_connection(("server.test", 7))
            except ConnectionRefusedError as error: print(error)
            s = socket.socket(); s.setblocking(False)
            print(errno.errorcode[s.connect_ex(("server.test", 7))])
            select.select([], [s], [])
            print(errno.errorcode[s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)])
        """
        expected = "[Errno 111] Connection refused\nEINPROGRESS\nECONNREFUSED\n"
        assert python(guest, _plain(program)) == expected


def test_an_endless_server_waits_for_a_guest_that_does_not_read() -> None:
    sent = 0
    blocked = threading.Event()

    def serve(connection: socket.socket) -> None:
        nonlocal sent
        connection.settimeout(1)
        try:
            while True:
                sent += connection.send(b"x" * 65536)
        except TimeoutError:
            blocked.set()

    with server(serve) as port, machine(HOST, hosts=at(port)) as guest:
        python(
            guest,
            _plain("""
            s = socket.create_connection(("server.test", 7)); s.recv(1); time.sleep(3)
        """),
        )
        assert blocked.wait(PATIENCE)
        assert sent < 32 << 20  # what the operating system keeps
        _until(lambda: guest.kernel.ledger.queued == 0)


def test_a_server_that_does_not_read_makes_the_guest_wait() -> None:
    hold = threading.Event()

    def serve(connection: socket.socket) -> None:
        hold.wait(PATIENCE)

    with server(serve) as port, machine(HOST, hosts=at(port)) as guest:
        program = """
            s = socket.create_connection(("server.test", 7)); s.setblocking(False)
            total = quiet = 0
            while quiet < 20:
                try: total += s.send(b"x" * 65536); quiet = 0
                except BlockingIOError: quiet += 1; time.sleep(0.05)
            print(total < 32 << 20)
        """
        try:
            assert python(guest, _plain(program)) == "True\n"
        finally:
            hold.set()


def test_many_connections_at_once() -> None:
    count = 600
    budget = Budget(connections_at_once=count)
    with server(echo) as port, machine(HOST, hosts=at(port), budget=budget) as guest:
        program = f"""
            all = [socket.create_connection(("server.test", 7)) for _ in range({count})]
            for n, s in enumerate(all): s.sendall(b"%d" % n)
            print(all and sum(s.recv(10) == b"%d" % n for n, s in enumerate(all)))
            try: socket.create_connection(("server.test", 7))
            except OSError as error: print(errno.errorcode[error.errno])
            all.pop().close(); time.sleep(0.3)
            socket.create_connection(("server.test", 7)).close()
        """
        out, err = run(guest, "python3", "-c", "import errno,socket,time\n" + _plain(program))
        assert out == f"{count}\nENOBUFS\n"
        assert f"{count} connections are open; raise connections_at_once" in err
        _until(lambda: guest.kernel.network.sockets == 0)


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(bytes_out=100_000), "100000 bytes were sent; raise bytes_out"),
        (Budget(bytes_in=100_000), "100000 bytes were received; raise bytes_in"),
        (Budget(connections=0), "0 connections were made; raise connections"),
    ],
)
def test_a_budget_that_is_used_up_ends_the_connection(budget: Budget, reason: str) -> None:
    with server(echo) as port, machine(HOST, hosts=at(port), budget=budget) as guest:
        program = """
            try:
                s = socket.create_connection(("server.test", 7))
                for _ in range(100):
                    s.sendall(b"x" * 10_000); s.recv(10_000)
            except OSError as error: print(errno.errorcode[error.errno])
            time.sleep(0.2)
        """
        out, err = run(guest, "python3", "-c", "import errno,socket,time\n" + _plain(program))
        assert out in ("ECONNRESET\n", "EPIPE\n", "ENOBUFS\n")
        assert reason in err


def test_what_is_no_longer_allowed_is_reset_at_once() -> None:
    with server(echo) as port, machine(HOST, hosts=at(port)) as guest:
        policy = guest.bridge.policy
        assert policy is not None
        denied = threading.Timer(0.5, lambda: setattr(guest.bridge, "policy", policy.denying(HOST)))
        denied.start()
        program = """
            s = socket.create_connection(("server.test", 7))
            try: s.recv(1)
            except ConnectionResetError: print("reset")
            try: socket.create_connection(("server.test", 7))
            except OSError as error: print(error)
        """
        out, err = run(guest, "python3", "-c", "import socket\n" + _plain(program))
        assert out == "reset\n[Errno -2] Name does not resolve\n"
        assert "no longer allowed" in err


def test_a_machine_that_is_closed_leaves_no_connection() -> None:
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.sendall(b"hello")
        while connection.recv(100):
            pass
        ended.set()

    with server(serve) as port:
        with machine(HOST, hosts=at(port)) as guest:
            waiting = threading.Thread(
                target=lambda: guest.run(_cat(HOST)),
            )
            waiting.start()
            _until(lambda: guest.kernel.network.sockets == 2)
        assert ended.wait(PATIENCE)
        waiting.join(PATIENCE)


def test_the_user_is_asked_about_hosts_that_no_rule_names() -> None:
    asked: list[tuple[str, int]] = []

    def ask(host: str, port: int) -> bool:
        asked.append((host, port))
        return host == HOST

    with server(echo) as port, machine("nobody.test", hosts=at(port)) as guest:
        guest.bridge.ask = ask
        program = """
            for name in ("server.test", "server.test", "other.test"):
                try:
                    s = socket.create_connection((name, 7)); s.sendall(b"hi"); print(s.recv(2))
                except OSError as error: print(error)
        """
        out, err = run(guest, "python3", "-c", "import socket\n" + _plain(program))
        assert asked == [(HOST, 7), ("other.test", 7)]
        refused = "[Errno 101] Network is unreachable\n"
        assert out == "b'hi'\n" * 2 + refused
        assert "connection to other.test:7 refused: the user's code did not allow it" in err
        asked.clear()
        guest.bridge.policy = policy_of(allow=["nobody.test"], deny=[HOST], hosts=at(port))
        out, err = run(guest, "python3", "-c", "import socket\n" + _plain(program))
        assert asked == []  # what is denied is not asked
        assert out == "[Errno -2] Name does not resolve\n" * 2 + refused


def _cat(host: str):  # type: ignore[no-untyped-def]
    from tests.machine.network.servers import ENVIRONMENT
    from wasmsand.machine.command import CommandRequest

    script = f"exec 3<>/dev/tcp/{host}/7; cat <&3"
    return CommandRequest(("bash", "-c", script), environ=ENVIRONMENT, cwd="/", timeout_seconds=60)


def _plain(program: str) -> str:
    """A program without the indentation of the test."""
    import textwrap

    return textwrap.dedent(program)


def _until(happened) -> None:  # type: ignore[no-untyped-def]
    until = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def test_somebody_to_ask_without_a_policy_has_the_usual_budget() -> None:
    with machine() as guest:
        guest.bridge.policy = None
        guest.bridge.ask = lambda host, port: False
        assert guest.bridge.outgoing._budget == Budget()
