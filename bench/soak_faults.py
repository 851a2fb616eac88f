"""A server under faults, for a given time: `python -m bench.soak_faults --minutes 10`, `make soak`.

Clients run commands over `wasmsand serve --workers 2 --store` without a pause. Meanwhile workers
are killed, the store's disk is full from time to time, and other clients vanish in the middle of
requests. Each command's output is checked, and an error must be one that the fault explains. The
run passes if nothing unexpected happened, and if at the end the front process and the worker that
was never killed hold as much memory, and as many descriptors and threads, as after the warm-up.

Rules: both measurements are taken when all sandboxes of the run have ended. The first worker is
spared, so that it serves all the time; a leak in it would show. "Disk full" is a limit on the size
of files that the front process may write (EFBIG): not every host lets us mount a small file system.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from bench.http_load import FD_SLACK, MEMORY_SLACK, Held
from bench.served import Driver, ServerUnderFaults
from wasmsand import Sandbox, SandboxError
from wasmsand.sdk.errors import ConnectionLostError, SandboxCrashedError, ServerError, StoreError

_WORKERS: Final = 2
_COMMANDS_PER_SANDBOX: Final = 200
_STUCK_SECONDS: Final = 300.0
_SETTLE_SECONDS: Final = 60.0
_SAMPLES: Final = 4
_EXPECTED: Final = frozenset({"worker_lost", "store_failed", "server_busy"})
"""Codes of `ServerError` that the faults explain."""
_KILLED: Final = "workers killed"


class Journal:
    """What happened, recorded by all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter()
        self.errors: list[str] = []

    def count(self, what: str) -> None:
        """Record something that may happen."""
        with self._lock:
            self.counts[what] += 1

    def error(self, text: str) -> None:
        """Record something that must not happen."""
        with self._lock:
            self.errors.append(text[:300])


class Client(threading.Thread):
    """Runs commands, in one sandbox after the other."""

    def __init__(self, url: str, journal: Journal, number: int) -> None:
        super().__init__(daemon=True, name=f"client-{number}")
        self._url = url
        self._journal = journal
        self._number = number
        self.ending = threading.Event()
        self.began = 0.0

    def run(self) -> None:
        while not self.ending.is_set():
            self.began = time.monotonic()
            try:
                with Sandbox.connect(self._url) as sandbox:
                    for number in range(_COMMANDS_PER_SANDBOX):
                        if self.ending.is_set():
                            break
                        self.began = time.monotonic()
                        self._use(sandbox, number)
            except StoreError:
                self._journal.count("refused: the disk is full")
                self.ending.wait(0.2)
            except SandboxError as error:
                self._explain(error)
                self.ending.wait(0.2)
            except Exception as error:
                self._journal.error(f"{self.name}: {error!r}")
        self.began = 0.0

    def _use(self, sandbox: Sandbox, number: int) -> None:
        wanted = f"{self._number} {number}\n"
        killed = self._journal.counts[_KILLED]
        try:
            if number % 20 == 19:
                sandbox.files.write("file", wanted)
                found = sandbox.commands.run("cat file").stdout
            else:
                found = sandbox.commands.run(f"echo {self._number} {number}").stdout
        except SandboxError as error:
            if not self._explain(error):
                raise
            self.ending.wait(0.2)  # the sandbox comes back
            return
        earlier = ["", *(f"{self._number} {before}\n" for before in range(19, number, 20))]
        if number % 20 == 19 and found in earlier and self._journal.counts[_KILLED] != killed:
            # The worker died after it had written the file: the sandbox came back as it was stored.
            self._journal.count("files that were not stored yet")
        elif found != wanted:
            self._journal.error(f"{self.name}: got {found!r:.80}, expected {wanted!r}")
        self._journal.count("commands")

    def _explain(self, error: SandboxError) -> bool:
        """Record an error; whether the sandbox may go on."""
        if isinstance(error, ServerError) and error.code in _EXPECTED:
            self._journal.count(f"refused: {error.code}")
            return True
        if isinstance(error, SandboxCrashedError):
            self._journal.count("lost with a worker before it was stored")
        elif not isinstance(error, ConnectionLostError):
            self._journal.error(f"{self.name}: {error!r}")
        else:
            self._journal.error(f"{self.name}: the server does not answer: {error}")
        return False


_one_fault: Final = threading.Lock()
"""Held while the disk is full, or a worker is missing: a worker that starts while the disk is full
would inherit the limit, and it would not pass."""


def kill_workers(server: ServerUnderFaults, journal: Journal) -> None:
    """Kill a worker, but never the first one, and wait for the next one."""
    with _one_fault:
        others = server.workers()[1:]
        if others:
            journal.count(_KILLED)
            os.kill(random.choice(others), signal.SIGKILL)
            Driver(server.url).wait_for_workers(_WORKERS)


def fill_disk(server: ServerUnderFaults, journal: Journal, seconds: float) -> None:
    """Let the front process write nothing for some seconds: it has the store's index."""
    with _one_fault:
        limits = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
        time.sleep(seconds)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, limits)
        journal.count("times the disk was full")


def vanish(server: ServerUnderFaults, journal: Journal) -> None:
    """Clients that go away: after half a request, and while a command runs."""
    driver, parts = Driver(server.url), urlsplit(server.url)
    address = (parts.hostname or "", parts.port or 0)
    try:
        with Sandbox.connect(server.url) as sandbox:
            run = driver.request(
                "POST", f"/v1/sandboxes/{sandbox.id}/run", {"command": "yes | head -c 8M"}
            )
            for piece in (run, run[:40], run[:-5]):
                with socket.create_connection(address, timeout=30) as connection:
                    connection.sendall(piece)
                    time.sleep(0.05)
                journal.count("clients vanished")
    except (SandboxError, OSError):
        journal.count("vanishing clients refused")


class Faults(threading.Thread):
    """Makes one kind of fault again and again."""

    def __init__(self, name: str, every: float, make: Callable[[], None], journal: Journal) -> None:
        super().__init__(daemon=True, name=name)
        self._every = every
        self._make = make
        self._journal = journal
        self.ending = threading.Event()

    def run(self) -> None:
        while not self.ending.wait(self._every):
            try:
                self._make()
            except ProcessLookupError:
                pass  # another fault was faster
            except Exception as error:
                self._journal.error(f"{self.name}: {error!r}")


@contextmanager
def _working(url: str, journal: Journal, count: int) -> Iterator[list[Client]]:
    clients = [Client(url, journal, number) for number in range(count)]
    for client in clients:
        client.start()
    try:
        yield clients
    finally:
        for client in clients:
            client.ending.set()
        for client in clients:
            client.join(_STUCK_SECONDS)
            if client.is_alive():
                journal.error(f"{client.name} hangs")


def _held(server: ServerUnderFaults) -> dict[str, Held]:
    """What the processes hold that live all the time, when no sandbox is left. The least of some
    samples counts: output of clients that have vanished is freed a little later."""
    server.wait_until_empty(_SETTLE_SECONDS)
    found = {}
    for name, pid in (("front process", server.pid), ("first worker", server.workers()[0])):
        samples = []
        for _ in range(_SAMPLES):
            samples.append(Held.of(pid))
            time.sleep(1.0)
        found[name] = Held(
            min(each.descriptors for each in samples),
            min(each.threads for each in samples),
            min(each.resident_bytes for each in samples),
        )
    return found


def soak(minutes: float, clients: int, at_least: int) -> bool:
    """Run for that long; True if it passed."""
    journal, warming = Journal(), Journal()
    seconds = minutes * 60
    with (
        tempfile.TemporaryDirectory() as store,
        ServerUnderFaults("--workers", str(_WORKERS), "--store", store) as server,
    ):
        Driver(server.url).wait_for_workers(_WORKERS)
        spared = server.workers()[0]
        with _working(server.url, warming, clients):
            until = time.monotonic() + max(5.0, seconds * 0.1)
            while time.monotonic() < until:
                vanish(server, warming)
        before = _held(server)
        faults = [
            Faults("kill", seconds / 40, lambda: kill_workers(server, journal), journal),
            Faults("disk", seconds / 20, lambda: fill_disk(server, journal, 1.0), journal),
            Faults("vanish", 0.5, lambda: vanish(server, journal), journal),
        ]
        began = time.monotonic()
        with _working(server.url, journal, clients) as working:
            for fault in faults:
                fault.start()
            minute = 1
            while (elapsed := time.monotonic() - began) < seconds:
                time.sleep(min(1.0, seconds - elapsed))
                for client in working:
                    if client.began and time.monotonic() - client.began > _STUCK_SECONDS:
                        journal.error(f"{client.name}: a request takes too long")
                        client.began = 0.0
                if elapsed > minute * 60:
                    done, held = journal.counts["commands"], Held.of(server.pid)
                    print(f"minute {minute}: {done} commands, front process {held}", flush=True)
                    minute += 1
            for fault in faults:
                fault.ending.set()
            for fault in faults:
                fault.join(_STUCK_SECONDS)
        if server.workers()[:1] != [spared]:
            journal.error("the first worker died, which nobody killed")
        after = _held(server)
    if journal.counts["commands"] < at_least:
        journal.error(f"only {journal.counts['commands']} commands, expected {at_least}")
    return _verdict(journal, warming, before, after, minutes)


def _verdict(
    journal: Journal,
    warming: Journal,
    before: dict[str, Held],
    after: dict[str, Held],
    minutes: float,
) -> bool:
    well = not journal.errors and not warming.errors
    for error in (warming.errors + journal.errors)[:20]:
        print(f"unexpected: {error}")
    for name, was in before.items():
        now = after[name]
        is_flat = (
            now.descriptors <= was.descriptors + FD_SLACK
            and now.threads <= was.threads + FD_SLACK
            and now.resident_bytes <= was.resident_bytes + MEMORY_SLACK
        )
        well = well and is_flat
        print(
            f"{name}: {was.resident_bytes >> 20} MiB, {was.descriptors} descriptors, "
            f"{was.threads} threads; then {now.resident_bytes >> 20} MiB, {now.descriptors} "
            f"descriptors, {now.threads} threads ({'flat' if is_flat else 'NOT FLAT'})"
        )
    for what, count in sorted(journal.counts.items()):
        print(f"{what}: {count}")
    print(f"soak: {'PASSED' if well else 'FAILED'}: {minutes:g} minutes")
    return well


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak_faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--at-least", type=int, default=1, help="commands that must be done")
    arguments = parser.parse_args(words)
    return 0 if soak(arguments.minutes, arguments.clients, arguments.at_least) else 1


if __name__ == "__main__":
    sys.exit(main())
