"""Runs curl in sandboxes, for a test suite whose servers are native.

Owns the harness's end of `curl_client.py`, and how files and connections get there. Rules: each
run has a machine of its own; the suite's files are at the same paths as on the host; what the suite
wrote to its log directory is copied in before, and what curl changed there is copied out after. The
servers listen on the host's loopback, so loopback addresses of the sandbox lead there, through the
bridge and a policy that names them.
"""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from conformance.curl_client import SOCKET
from conformance.native import USER_ID
from conformance.sandboxed import SandboxArea
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.sockets.address import InetAddress
from wasmsand.kernel.sockets.routing import Route, route
from wasmsand.kernel.vfs import ROOT, FrozenTree
from wasmsand.machine import CommandRequest, Machine, MachineOptions
from wasmsand.machine.network.policy import policy_of

_LIMITS = Limits(max_output_bytes=64 << 20)
_LOGS = "tests/log"
_PROGRAM = "/usr/bin/curl"
_INPUT = "/tmp/standard-input"
_TIMEOUT_SECONDS = 120.0
_NOTICE = b"wasmsand: "


class _ToTheHost(Route):
    """A route from loopback to the host's loopback: a socket may be bound to its address."""

    def local_for(self, bound: InetAddress, family: int) -> InetAddress:
        return super().local_for(bound, family) if bound.is_any else bound


@contextmanager
def curl_in_sandboxes(image: FrozenTree, tree: Path) -> Iterator[None]:
    """Serve the clients of the suite in `tree`; `image` is that of `image_with`."""
    with socket.socket(socket.AF_UNIX) as listener:
        place = tree.parent / SOCKET
        listener.bind(str(place))
        if os.geteuid() == 0:
            os.chown(place, USER_ID, USER_ID)
        listener.listen(16)
        threading.Thread(target=_accept, args=(listener, image, tree), daemon=True).start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, image: FrozenTree, tree: Path) -> None:
    with suppress(OSError):
        while True:
            link, _ = listener.accept()
            threading.Thread(target=_answer, args=(link, image, tree), daemon=True).start()


def _answer(link: socket.socket, image: FrozenTree, tree: Path) -> None:
    with link, suppress(OSError):
        asked = json.loads(link.makefile("rb").readline())
        machine = _machine(image, tree)
        threading.Thread(target=_end_with, args=(link, machine), daemon=True).start()
        try:
            answer = _run(machine, asked, tree)
        finally:
            machine.close()
        link.sendall(json.dumps(answer).encode() + b"\n")


def _end_with(link: socket.socket, machine: Machine) -> None:
    """End the program when the suite has ended its client, or when everything is over."""
    with suppress(OSError, ValueError):
        select.select([link], [], [])
    machine.close()


def _machine(image: FrozenTree, tree: Path) -> Machine:
    policy = policy_of(allow=("127.0.0.1", "::1"))
    machine = Machine(MachineOptions(limits=_LIMITS, network=policy), image=image)
    namespace, network = machine.kernel.namespace, machine.kernel.network
    machine.files.mkdir(str(tree.parent))
    link = str(tree).encode()
    namespace.symlink(ROOT, SandboxArea.tree.encode(), namespace.root, link)

    def to_the_host(address: InetAddress) -> Route:
        plain = address.plain()
        if plain.is_loopback:
            return _ToTheHost(plain, plain.host, network.outside)
        return route(address, network.outside)

    network.route = to_the_host  # type: ignore[method-assign]
    return machine


def _run(machine: Machine, asked: dict[str, object], tree: Path) -> dict[str, object]:
    before = _copy_in(machine, tree)
    argv, environ, stdin = asked["argv"], asked["environ"], asked["stdin"]
    assert isinstance(argv, list)
    assert isinstance(environ, dict)
    assert isinstance(stdin, str)
    given, command = base64.b64decode(stdin), (_PROGRAM, *argv)
    if asked["stdin_is_a_file"]:
        # curl can go back in a file, but not in a pipe.
        machine.files.write(_INPUT, given)
        command = ("/bin/sh", "-c", f'exec "$0" "$@" < {_INPUT}', *command)
    request = CommandRequest(
        command,
        {**environ, "PATH": SandboxArea.search_path},
        str(asked["cwd"]),
        timeout_seconds=_TIMEOUT_SECONDS,
        stdin=given,
    )
    ended = machine.run(request)
    _copy_out(machine, tree, before)
    said = [line for line in ended.stderr.splitlines(True) if not line.startswith(_NOTICE)]
    return {
        "exit_code": ended.exit_code,
        "stdout": base64.b64encode(ended.stdout).decode(),
        "stderr": base64.b64encode(b"".join(said)).decode(),
    }


def _copy_in(machine: Machine, tree: Path) -> dict[str, bytes]:
    """Copy the suite's log directory; returns the files, by their paths below the tree."""
    files = {}
    top = tree / _LOGS
    machine.files.mkdir(f"{SandboxArea.tree}/{_LOGS}")
    for folder, folders, names in os.walk(top):
        relative = Path(folder).relative_to(tree)
        for name in folders:
            machine.files.mkdir(f"{SandboxArea.tree}/{relative}/{name}")
        for name in names:
            path = Path(folder) / name
            if not path.is_file():
                continue  # a socket
            with suppress(FileNotFoundError):  # a server has removed it meanwhile
                files[f"{relative}/{name}"] = content = path.read_bytes()
                mode = path.stat().st_mode & 0o777
                machine.files.write(f"{SandboxArea.tree}/{relative}/{name}", content, mode=mode)
    return files


def _copy_out(machine: Machine, tree: Path, before: dict[str, bytes]) -> None:
    """Copy what the program has written, and remove what it has removed."""
    seen = set()
    waiting = [_LOGS]
    while waiting:
        folder = waiting.pop()
        for entry in machine.files.list(f"{SandboxArea.tree}/{folder}"):
            relative = f"{folder}/{entry.name}"
            seen.add(relative)
            if entry.type == "dir":
                (tree / relative).mkdir(exist_ok=True)
                _give(tree / relative)
                waiting.append(relative)
            elif entry.type == "file":
                content = machine.files.read(f"{SandboxArea.tree}/{relative}")
                if before.get(relative) != content:
                    (tree / relative).write_bytes(content)
                    os.utime(tree / relative, ns=(entry.mtime_ns, entry.mtime_ns))
                    _give(tree / relative)
    for gone in before.keys() - seen:
        (tree / gone).unlink(missing_ok=True)


def _give(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, USER_ID, USER_ID)
