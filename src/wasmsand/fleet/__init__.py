"""Sandboxes on many machines: hosts of a fleet are Ray actors, one for each node.

    control.py        `Fleet`: create, describe, drain and end a fleet
    host.py           the actor: starts `wasmsand serve` on its node, and reports its load
    server_process.py the server that belongs to an actor, and ends with it
    values.py         addresses of fleets, and what hosts report
    cluster.py        this process's connection to Ray, and where hosts are now
    placing.py        which host gets a new sandbox
    transport.py      requests to a host, which may move to another node
    reaching.py       the transports that `Sandbox.connect("fleet:...")` uses
    local_nodes.py    a Ray cluster of several nodes on this machine
    ray_library.py    imports Ray, or says why it cannot

Rules: Ray knows which nodes there are, where actors run, and starts them again elsewhere when a
node is lost. This package has no membership, no scheduler of nodes and no protocol of its own. The
sandboxes are those of `wasmsand serve`, and so are its store, its workers and its barriers.
docs/decisions/0036 has the reasons, docs/guides/fleet.md the use.
"""

from wasmsand.fleet.control import Fleet
from wasmsand.fleet.values import HostStatus

__all__ = ["Fleet", "HostStatus"]
