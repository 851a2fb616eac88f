"""Real servers on loopback, and machines whose guests reach them by name."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from wasmsand.machine.command import CommandRequest
from wasmsand.machine.machine import Machine, MachineOptions
from wasmsand.machine.network.events import NetworkEvent
from wasmsand.machine.network.policy import Budget, policy_of

ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/user"}
PATIENCE = 30.0


@contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that gives each connection to `serve`, on a thread of its own; its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)

    def handle(connection: socket.socket) -> None:
        with connection:
            connection.settimeout(PATIENCE)
            try:
                serve(connection)
            except OSError:
                pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def echo(connection: socket.socket) -> None:
    """Send back what comes, and end when the client has."""
    while data := connection.recv(65536):
        connection.sendall(data)


@contextmanager
def machine(
    *allow: str, hosts: Mapping[str, str] | None = None, budget: Budget | None = None
) -> Iterator[Machine]:
    """A machine with a network policy."""
    policy = policy_of(allow=allow, hosts=hosts or {}, budget=budget)
    made = Machine(MachineOptions(network=policy))
    try:
        yield made
    finally:
        made.close()


def run(of: Machine, *argv: str, timeout: float = 60.0) -> tuple[str, str]:
    """Run a command; its standard output and error."""
    request = CommandRequest(argv, environ=ENVIRONMENT, cwd="/home/user", timeout_seconds=timeout)
    ended = of.run(request)
    assert not ended.timed_out, ended
    return ended.stdout.decode(), ended.stderr.decode()


def python(of: Machine, program: str, timeout: float = 60.0) -> str:
    """Run a Python program, which must succeed; its output."""
    head = "import errno, os, select, socket, sys, time\n"
    out, err = run(of, "python3", "-c", head + program, timeout=timeout)
    assert not err, err
    return out


def only_event(of: Machine) -> NetworkEvent:
    """The one event of a machine; a connection is reported a moment after the guest knows."""
    until = time.monotonic() + PATIENCE
    while not of.bridge.log.events() and time.monotonic() < until:
        time.sleep(0.01)
    (event,) = of.bridge.log.events()
    return event
