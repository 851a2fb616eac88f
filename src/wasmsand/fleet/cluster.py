"""This process's connection to Ray, and where the hosts of a fleet are.

Owns `Home`, which knows the place of one host. Rules: a process joins one Ray cluster; a program
that uses Ray already keeps its connection. Calls of `place` and `load` are repeated when an actor
starts again, because they change nothing; `stop` is called once. Each wait has a deadline.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Final

from wasmsand.fleet.ray_library import ray_library
from wasmsand.fleet.values import FleetAddress, HostLoad, HostPlace, host_number
from wasmsand.sdk.errors import ConnectionLostError, ServerError

CALL_SECONDS: Final = 60.0
"""How long to wait for a host that starts, or starts again."""
_STEP_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.1
_LIST_SECONDS: Final = 5.0
"""How long a list of hosts is used before Ray is asked again."""

_joining: Final = threading.Lock()


def join(cluster: str | None) -> Any:
    """The module `ray`, connected to `cluster`. Raises `UnsupportedError`, `ServerError`,
    `ConnectionLostError`."""
    ray = ray_library()
    with _joining:
        if not ray.is_initialized():
            try:
                ray.init(
                    address=cluster or "auto", log_to_driver=False, logging_level=logging.ERROR
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise ConnectionLostError(
                    f"no Ray cluster answers at {cluster or 'this machine'} ({error}); start one "
                    "with `ray start --head`, or `wasmsand fleet up --local`"
                ) from None
        elif cluster is not None:
            joined = str(ray.get_runtime_context().gcs_address)
            if joined.rpartition(":")[2] != cluster.rpartition(":")[2]:
                raise ServerError(
                    f"this process has joined the Ray cluster at {joined}, and can use no other "
                    f"one: {cluster}",
                    "other_cluster",
                    0,
                )
    return ray


class Home:
    """Where one host is now. Used from any thread."""

    def __init__(self, ray: Any, address: FleetAddress, name: str) -> None:
        self._ray = ray
        self._address = address
        self.name = name
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._actor: Any = None
        self._place: HostPlace | None = None

    def actor(self) -> Any:
        """Ray's handle of the host. Raises `ConnectionLostError` if the fleet has no such host."""
        with self._lock:
            if self._actor is None:
                self._check_joined()
                try:
                    self._actor = self._ray.get_actor(self.name, namespace=self._address.namespace)
                except ValueError:
                    raise ConnectionLostError(
                        f"the fleet {self._address} has no {self.name}: it was ended"
                    ) from None
            return self._actor

    def ask(self, method: str, until: float) -> Any:
        """Call a method that changes nothing. Waits while the host starts again. Raises
        `ServerError` (`host_unavailable`) when the time is up, and `ConnectionLostError`."""
        errors = self._ray.exceptions
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise ServerError(
                    f"{self.name} of the fleet {self._address} does not answer; see `wasmsand "
                    "fleet status`",
                    "host_unavailable",
                    503,
                )
            try:
                wanted = getattr(self.actor(), method).remote()
                return self._ray.get(wanted, timeout=min(left, _STEP_SECONDS))
            except ConnectionLostError:
                raise
            except errors.GetTimeoutError:
                self._ray.cancel(wanted)
            except errors.ActorUnavailableError:
                time.sleep(_PAUSE_SECONDS)
            except errors.ActorDiedError:
                # Ended for good. Perhaps a host with the same name was created since.
                with self._lock:
                    self._actor = self._place = None
                time.sleep(_PAUSE_SECONDS)
            except errors.RayError as error:
                cause = str(error).strip().splitlines()[-1:]
                raise ConnectionLostError(
                    f"{self.name} of the fleet {self._address}: {''.join(cause)}"
                ) from None
            except Exception:
                self._check_joined()  # the process may have left in the middle of a call
                raise

    def _check_joined(self) -> None:
        """Raise `ConnectionLostError` if this process has left the cluster. Ray would start a new
        one at the next call."""
        if not self._ray.is_initialized():
            raise ConnectionLostError(
                f"this process has left the Ray cluster of the fleet {self._address}"
            ) from None

    def place(self, seconds: float = CALL_SECONDS) -> HostPlace:
        """Where the host was last seen. Waits for one that starts."""
        with self._lock:
            known = self._place
        return known or self.look(time.monotonic() + seconds)

    def look(self, until: float) -> HostPlace:
        """Where the host is now."""
        found = self.ask("place", until)
        assert isinstance(found, HostPlace)
        with self._lock:
            self._place = found
        return found

    def load(self, until: float) -> HostLoad:
        """What the host has to do."""
        found = self.ask("load", until)
        assert isinstance(found, HostLoad)
        return found


class Homes:
    """The hosts of one fleet, for all transports of this process."""

    def __init__(self, address: FleetAddress) -> None:
        self.address = address
        self.ray = join(address.cluster)
        self._lock = threading.Lock()
        # Guarded by the lock:
        self._homes: dict[str, Home] = {}
        self._listed = float("-inf")

    def all(self) -> list[Home]:
        """All hosts, by number. Raises `ConnectionLostError` if there is none."""
        with self._lock:
            if time.monotonic() - self._listed > _LIST_SECONDS:
                names = host_names(self.ray, self.address)
                known = self._homes
                self._homes = {
                    name: known.get(name) or Home(self.ray, self.address, name) for name in names
                }
                self._listed = time.monotonic()
            found = list(self._homes.values())
            if not found:
                self._listed = float("-inf")
        if not found:
            raise ConnectionLostError(
                f"there is no fleet {self.address}; create it with `wasmsand fleet up`"
            )
        return found


def host_names(ray: Any, address: FleetAddress) -> list[str]:
    """The names of a fleet's hosts, by number."""
    actors = ray.util.list_named_actors(all_namespaces=True)
    names = [each["name"] for each in actors if each["namespace"] == address.namespace]
    numbered = [(number, name) for name in names if (number := host_number(name)) is not None]
    return [name for _, name in sorted(numbered)]


_known: dict[FleetAddress, Homes] = {}
_known_lock: Final = threading.Lock()


def homes_of(address: FleetAddress) -> Homes:
    """The hosts of a fleet. Raises what `join` raises."""
    with _known_lock:
        homes = _known.get(address)
        if homes is None or not homes.ray.is_initialized():
            homes = _known[address] = Homes(address)
    return homes
