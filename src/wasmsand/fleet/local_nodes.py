"""A Ray cluster of several nodes on this machine.

Owns `LocalNodes`, for trials and tests. Rules: the nodes are Ray's own, with all its processes;
they end with this process. They share the machine's memory and cores, so this shows how a fleet
behaves, not how fast one is.
"""

from __future__ import annotations

import os
import signal
from typing import Any, Final

from wasmsand.fleet.ray_library import ray_library
from wasmsand.http.host_gate import family_of

_OBJECTS_BYTES: Final = 78 * 1024 * 1024
"""The least that Ray accepts: hosts keep nothing in its object store."""
_MOST_NODES: Final = 32


class LocalNodes:
    """Ray nodes on this machine, until `close`."""

    def __init__(self, count: int) -> None:
        """Start `count` nodes; the first one is the head of the cluster."""
        if not 0 < count <= _MOST_NODES:
            raise ValueError(f"nodes must be from 1 to {_MOST_NODES}, not {count}")
        ray_library()
        from ray.cluster_utils import Cluster

        self._arguments = {
            "num_cpus": max(1, (os.cpu_count() or 1) // count),
            "object_store_memory": _OBJECTS_BYTES,
            "include_dashboard": False,
        }
        # Ray lets workers run with a niceness of 15; the hosts are all that these nodes are for.
        head = {**self._arguments, "_system_config": {"worker_niceness": 0}}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes: list[Any] = [self._cluster.head_node]
        """Ray's objects of the nodes."""
        try:
            while len(self.nodes) < count:
                self.add()
        except BaseException:
            self.close()
            raise

    @property
    def address(self) -> str:
        """`HOST:PORT` of the cluster."""
        return str(self._cluster.address)

    def add(self) -> Any:
        """Start one more node."""
        node = self._cluster.add_node(**self._arguments)
        self.nodes.append(node)
        return node

    def lose(self, node: Any) -> None:
        """Kill a node and all its processes, servers too, as if its machine had failed."""
        for each in node.all_processes.get("raylet", ()):
            for pid in list(family_of(each.process.pid)):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it has ended
        self._cluster.remove_node(node, allow_graceful=False)
        self.nodes.remove(node)

    def close(self) -> None:
        """End all nodes, and this process's connection to them; idempotent."""
        ray = ray_library()
        ray.shutdown()
        self._cluster.shutdown()
        self.nodes.clear()
