"""`FleetHost`: the Ray actor of a host.

Owns the life of one server on the node where Ray has put the actor. Rules: Ray starts the actor
again, perhaps on another node, when its process or node is lost; a server that dies takes the
actor with it, so that there is only one way to recover. Methods answer at once, except `stop`. An
actor that starts again tries until its server runs: what is in the way, such as a store that is not
mounted, may pass.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from wasmsand.fleet.ray_library import ray_library
from wasmsand.fleet.server_process import ServerFailed, ServerProcess
from wasmsand.fleet.values import HostLoad, HostPlace, HostPlan
from wasmsand.http.backend import HttpBackend, open_http_backend
from wasmsand.http.host_gate import load_per_core
from wasmsand.http.transport import Transport
from wasmsand.sdk.errors import SandboxError, StoreError
from wasmsand.sdk.options import SandboxOptions
from wasmsand.sdk.sandbox import Sandbox

_FRESH_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 30.0
_LOST_STATUS: Final = 70
_MEMORY: Final = Path("/proc/meminfo")


class FleetHost:
    """One server of a fleet, on the node of this actor."""

    def __init__(self, plan: HostPlan) -> None:
        """Returns when the server runs and has done some work."""
        ray = ray_library()
        context = ray.get_runtime_context()
        self._plan = plan
        self._node = str(context.get_node_id())
        self._generation = uuid.uuid4().hex
        self._is_stopping = False
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._load: HostLoad | None = None
        self._measured = float("-inf")
        self._server = _started(plan, ray.util.get_node_ip_address(), context)
        self._transport = Transport(self._server.url, plan.token)
        threading.Thread(target=self._end_with_server, name="wasmsand-host", daemon=True).start()
        self._warm_up()

    def _end_with_server(self) -> None:
        status = self._server.wait()
        if not self._is_stopping:
            print(f"wasmsand: the server of {self._plan.name} ended: {status}", file=sys.stderr)
            os._exit(_LOST_STATUS)

    def _warm_up(self) -> None:
        """Let each worker run a command, so that no client waits for the first start of bash and
        Python. A new sandbox goes to the worker with the least to do, so all get one."""
        try:
            workers = max(1, _workers_of(self._transport.ask("GET", "/metrics").decode()))
            with (
                _sandboxes(self._server.url, self._plan.token, workers) as made,
                ThreadPoolExecutor(workers) as threads,
            ):
                list(threads.map(lambda one: one.commands.run("python3 -c ''"), made))
        except SandboxError as error:
            print(f"wasmsand: {self._plan.name} was not warmed up: {error}", file=sys.stderr)

    def place(self) -> HostPlace:
        """Where the host is now."""
        plan = self._plan
        return HostPlace(
            self._server.url, plan.token, self._node, self._generation, plan.store is not None
        )

    def load(self) -> HostLoad:
        """How much it has to do; measured at most once per second."""
        with self._lock:
            if self._load is None or time.monotonic() - self._measured > _FRESH_SECONDS:
                metrics = self._transport.ask("GET", "/metrics").decode()
                sandboxes = int(_metric(metrics, "wasmsand_sandboxes"))
                self._load = HostLoad(sandboxes, _memory_in_use(), load_per_core() or 0.0)
                self._measured = time.monotonic()
            return self._load

    def stop(self) -> None:
        """Let running requests finish, store everything, and end the server."""
        self._is_stopping = True
        self._server.stop()

    def server_pid(self) -> int:
        """The pid of the server's front process, for whoever looks for it on the node."""
        return self._server.pid


def _started(plan: HostPlan, address: str, context: object) -> ServerProcess:
    """The server. The first start of a host fails if the server does, so that whoever creates the
    fleet sees why."""
    pause = 0.5
    while True:
        try:
            return ServerProcess(plan, address)
        except (ServerFailed, StoreError, OSError) as error:
            if not getattr(context, "was_current_actor_reconstructed", False):
                raise
            print(f"wasmsand: {plan.name} cannot start yet: {error}", file=sys.stderr)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


@contextmanager
def _sandboxes(url: str, token: str, count: int) -> Iterator[list[Sandbox]]:
    options = SandboxOptions()
    made: list[HttpBackend] = []
    try:
        for _ in range(count):
            made.append(open_http_backend(url, token, options))
        yield [Sandbox.from_backend(each, options) for each in made]
    finally:
        for each in made:
            each.close()


def _workers_of(metrics: str) -> int:
    return int(_metric(metrics, "wasmsand_workers"))


def _metric(metrics: str, name: str) -> float:
    """The value of a metric without labels; 0 if there is none."""
    for line in metrics.splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[1])
    return 0.0


def _memory_in_use() -> float:
    """The part of the node's memory that is in use; 0 if the system does not say."""
    try:
        lines = [line.split() for line in _MEMORY.read_text().splitlines()]
        found = {words[0]: int(words[1]) for words in lines}
        return 1.0 - found["MemAvailable:"] / found["MemTotal:"]
    except (OSError, KeyError, IndexError, ValueError, ZeroDivisionError):
        return 0.0
