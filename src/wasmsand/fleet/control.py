"""`Fleet`: create, describe, drain and end a fleet.

Owns what `wasmsand fleet` does. Rules: the hosts of a fleet are named, detached Ray actors; Ray
knows all there is to know of them, so nothing is written anywhere else. `up` can be repeated: it
creates the hosts that are missing. Each call that waits has a deadline.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from wasmsand.fleet.cluster import CALL_SECONDS, Home, Homes, host_names, join
from wasmsand.fleet.host import FleetHost
from wasmsand.fleet.values import (
    DEFAULT_NAME,
    MOST_HOSTS,
    FleetAddress,
    HostPlan,
    HostStatus,
    checked_name,
    host_name,
)
from wasmsand.sdk.errors import SandboxError, ServerError

_START_SECONDS: Final = 300.0
"""How long the first start of all hosts may take: a node may have to compile programs."""
_STOP_SECONDS: Final = 120.0
_STATUS_SECONDS: Final = 5.0
_MOVE_SECONDS: Final = 180.0
_CALLS_AT_ONCE: Final = 16
_CPUS: Final = 0.001
"""Ray spreads actors only if they need something. This fits on a node that is full."""


class Fleet:
    """The hosts of one fleet in a Ray cluster.

    Example:
        fleet = Fleet.up(store="/mnt/shared/wasmsand")
        with Sandbox.connect(fleet.url) as sandbox:
            sandbox.commands.run("hostname")
    """

    def __init__(self, cluster: str | None = None, name: str = DEFAULT_NAME) -> None:
        """The fleet `name` of the Ray cluster at `cluster` (`HOST:PORT`); None is the one that this
        process has joined, or that runs on this machine."""
        self._address = FleetAddress(cluster, checked_name(name))
        self._ray = join(cluster)

    @classmethod
    def up(
        cls,
        cluster: str | None = None,
        *,
        name: str = DEFAULT_NAME,
        hosts: int | None = None,
        store: str | None = None,
        serve_options: Sequence[str] = (),
        resource: str | None = None,
    ) -> Fleet:
        """Create the hosts that are missing: `hosts` in all, by default one for each node.

        `store` is a directory that all nodes see, with file locks; sandboxes are kept there and
        come back when a node is lost. `serve_options` are those of `wasmsand serve`. With
        `resource`, hosts run only on nodes that have this custom resource of Ray.
        """
        fleet = cls(cluster, name)
        fleet._create(hosts, store, tuple(serve_options), resource)
        return fleet

    @property
    def url(self) -> str:
        """The address for `Sandbox.connect`."""
        return str(self._address)

    def _create(
        self,
        wanted: int | None,
        store: str | None,
        serve_options: tuple[str, ...],
        resource: str | None,
    ) -> None:
        ray = self._ray
        if wanted is None:
            wanted = len(self._nodes(resource)) or 1
        if not 0 < wanted <= MOST_HOSTS:
            raise ValueError(f"hosts must be from 1 to {MOST_HOSTS}, not {wanted}")
        directory = None if store is None else str(Path(store).absolute())
        known = host_names(ray, self._address)
        token = Home(ray, self._address, known[0]).place().token if known else None
        token = token or secrets.token_urlsafe(32)
        kind = ray.remote(FleetHost)
        made = []
        for number in range(wanted):
            name = host_name(number)
            if name in known:
                continue
            own = None if directory is None else str(Path(directory, name))
            made.append(
                kind.options(
                    name=name,
                    namespace=self._address.namespace,
                    lifetime="detached",
                    get_if_exists=True,
                    num_cpus=_CPUS,
                    resources={resource: 0.001} if resource else None,
                    max_restarts=-1,
                    max_concurrency=_CALLS_AT_ONCE,
                    scheduling_strategy="SPREAD",
                ).remote(HostPlan(name, token, own, serve_options))
            )
        self._wait_until_started(made)

    def _wait_until_started(self, made: list[Any]) -> None:
        ray = self._ray
        try:
            ray.get([actor.place.remote() for actor in made], timeout=_START_SECONDS)
        except ray.exceptions.RayError as error:
            for actor in made:
                ray.kill(actor)
            cause = getattr(error, "cause", None) or error
            raise ServerError(
                f"a host of the fleet did not start: {str(cause).strip().splitlines()[-1]}",
                "host_failed",
                0,
            ) from None

    def _nodes(self, resource: str | None = None) -> list[dict[str, Any]]:
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        return [node for node in alive if resource is None or resource in node["Resources"]]

    def _homes(self) -> list[Home]:
        return Homes(self._address).all()

    def status(self) -> list[HostStatus]:
        """All hosts. Takes at most a few seconds."""
        ray = self._ray
        names = host_names(ray, self._address)
        homes = [Home(ray, self._address, name) for name in names]
        calls = [
            call
            for home in homes
            for call in (home.actor().place.remote(), home.actor().load.remote())
        ]
        done, late = ray.wait(calls, num_returns=len(calls), timeout=_STATUS_SECONDS)
        for call in late:
            ray.cancel(call)
        found = []
        for home, place, load in zip(homes, calls[::2], calls[1::2], strict=True):
            try:
                if place not in done or load not in done:
                    raise TimeoutError
                where, what = ray.get([place, load], timeout=_STATUS_SECONDS)
                found.append(HostStatus(home.name, "serving", where.node, where.url, what))
            except (ray.exceptions.RayError, TimeoutError):
                found.append(HostStatus(home.name, "not answering"))
        return found

    def drain(self, node: str, *, force: bool = False) -> list[str]:
        """Move all hosts of a node to others, with their sandboxes. `node` is the beginning of its
        id in Ray. Ray puts nothing on the node any more, and ends it when nothing runs there.
        Returns the names of the hosts.

        Without a store the sandboxes would be lost; this is refused unless `force` is set.
        """
        ray = self._ray
        matching = [each["NodeID"] for each in self._nodes() if each["NodeID"].startswith(node)]
        if len(matching) != 1 or not node:
            raise ValueError(f"{len(matching)} live nodes have an id that begins with {node!r}")
        if len(self._nodes()) < 2:
            raise ServerError("there is no other node to move hosts to", "no_other_node", 0)
        until = time.monotonic() + CALL_SECONDS
        moving = [home for home in self._homes() if home.look(until).node == matching[0]]
        lossy = [home.name for home in moving if not home.place().has_store]
        if lossy and not force:
            raise ServerError(
                f"{', '.join(lossy)} would lose all sandboxes: the fleet has no store; force it "
                "if nobody needs them",
                "no_store",
                0,
            )
        self._let_ray_drain(matching[0])
        stops = [home.actor().stop.remote() for home in moving]
        ray.wait(stops, num_returns=max(1, len(stops)), timeout=_STOP_SECONDS) if stops else None
        for home in moving:
            ray.kill(home.actor(), no_restart=False)
        until = time.monotonic() + _MOVE_SECONDS
        for home in moving:
            _wait_until_moved(home, until)
        return [home.name for home in moving]

    def _let_ray_drain(self, node: str) -> None:
        command = [sys.executable, "-m", "ray.scripts.scripts", "drain-node"]
        command += ["--address", str(self._ray.get_runtime_context().gcs_address)]
        command += ["--node-id", node, "--reason", "DRAIN_NODE_REASON_PREEMPTION"]
        command += ["--reason-message", "wasmsand fleet drain"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CALL_SECONDS)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no reason given"]
            raise ServerError(f"Ray does not drain the node: {last[0]}", "drain_refused", 0)

    def down(self) -> None:
        """Store all sandboxes, if there is a store, and end all hosts. The Ray cluster stays."""
        ray = self._ray
        actors = [Home(ray, self._address, name).actor() for name in host_names(ray, self._address)]
        stops = [actor.stop.remote() for actor in actors]
        if stops:
            ray.wait(stops, num_returns=len(stops), timeout=_STOP_SECONDS)
        for actor in actors:
            ray.kill(actor)


def _wait_until_moved(home: Home, until: float) -> None:
    """Wait until a host that was told to move is somewhere else. Raises `ServerError`."""
    before = home.place()
    while home.look(until).generation == before.generation:
        if time.monotonic() > until:
            raise ServerError(f"{home.name} has not moved in time", "host_unavailable", 503)
        time.sleep(0.1)


def ended(fleet: Fleet) -> bool:
    """Whether a fleet has no host any more, or its cluster has ended."""
    try:
        return not host_names(fleet._ray, fleet._address)
    except (SandboxError, ConnectionError, RuntimeError, ValueError):
        return True
