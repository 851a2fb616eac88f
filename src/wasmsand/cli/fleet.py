"""`wasmsand fleet`: sandboxes on the nodes of a Ray cluster."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from wasmsand.cli.failure import CliError
from wasmsand.cli.options import failures

if TYPE_CHECKING:
    from wasmsand.fleet import Fleet

HELP = "serve sandboxes on the nodes of a Ray cluster"
DESCRIPTION = (
    "Create, show, drain or end a fleet: one server of sandboxes on each node of a Ray cluster. "
    "Sandbox.connect('fleet:') uses it. Needs pip install 'wasmsand[fleet]' on each node."
)
EXAMPLES = """\
examples:
  wasmsand fleet up --local --nodes 3        a cluster of three nodes on this machine, until Ctrl-C
  wasmsand fleet up --store /mnt/shared/wasmsand
                                             a host on each node of the cluster that this machine
                                             is part of; sandboxes survive the loss of a node
  wasmsand fleet up --store /mnt/shared/wasmsand -- --host-memory 48G --max-load 4
                                             with options of `wasmsand serve`
  wasmsand fleet status
  wasmsand fleet drain 3f2a                  move all sandboxes away from a node
  wasmsand fleet down

From Python: Sandbox.connect("fleet:"), or Sandbox.connect("fleet:10.0.0.1:6379")
On the command line: wasmsand run --connect fleet: 'uname -a'
The guide is docs/guides/fleet.md.
"""
_POLL_SECONDS: Final = 1.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """See `Subcommand`."""
    parser.add_argument("action", choices=("up", "status", "drain", "down"))
    parser.add_argument(
        "rest", metavar="NODE", nargs="*", help="for drain: the id of the node, or its beginning"
    )
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="the Ray cluster (default: that of this machine)"
    )
    parser.add_argument("--name", default="default", help="name of the fleet (default: default)")
    parser.add_argument("--json", action="store_true", help="status: print JSON")
    parser.add_argument(
        "--force", action="store_true", help="drain: even if sandboxes are lost, without a store"
    )
    group = parser.add_argument_group("options of up; those of `wasmsand serve` follow after --")
    group.add_argument(
        "--local",
        action="store_true",
        help="start a Ray cluster on this machine; it ends with this command",
    )
    group.add_argument("--nodes", metavar="N", type=int, help="with --local (default: 1)")
    group.add_argument(
        "--hosts", metavar="N", type=int, help="number of hosts (default: one for each node)"
    )
    group.add_argument(
        "--store", metavar="DIR", help="directory that all nodes see, to keep sandboxes in"
    )
    group.add_argument(
        "--resource", metavar="NAME", help="use only nodes with this custom resource of Ray"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Do one action."""
    actions: dict[str, Callable[[argparse.Namespace], int]] = {
        "up": _up,
        "status": _status,
        "drain": _drain,
        "down": _down,
    }
    if arguments.action not in ("up", "drain") and arguments.rest:
        raise CliError(f"fleet {arguments.action} takes no arguments: {arguments.rest[0]}")
    with failures():
        return actions[arguments.action](arguments)


def _fleet(arguments: argparse.Namespace) -> Fleet:
    from wasmsand.fleet import Fleet

    try:
        return Fleet(arguments.address, arguments.name)
    except ValueError as error:
        raise CliError(str(error)) from None


def _up(arguments: argparse.Namespace) -> int:
    if arguments.nodes is not None and not arguments.local:
        raise CliError("--nodes is for --local; Ray knows the nodes of a cluster")
    if not arguments.local:
        _create(arguments, arguments.address)
        return 0
    if arguments.address is not None:
        raise CliError("--local starts a cluster of its own: leave out --address")
    from wasmsand.fleet.control import ended
    from wasmsand.fleet.local_nodes import LocalNodes

    try:
        nodes = LocalNodes(arguments.nodes or 1)
    except ValueError as error:
        raise CliError(str(error)) from None
    try:
        asked_to_end = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: asked_to_end.set())
        fleet = _create(arguments, nodes.address)
        while not asked_to_end.wait(_POLL_SECONDS) and not ended(fleet):
            pass
        if not ended(fleet):
            fleet.down()
    finally:
        nodes.close()
    return 0


def _create(arguments: argparse.Namespace, cluster: str | None) -> Fleet:
    from wasmsand.fleet import Fleet

    try:
        fleet = Fleet.up(
            cluster,
            name=arguments.name,
            hosts=arguments.hosts,
            store=arguments.store,
            serve_options=arguments.rest,
            resource=arguments.resource,
        )
    except ValueError as error:
        raise CliError(str(error)) from None
    print(f"wasmsand: fleet {fleet.url}: {len(fleet.status())} hosts", file=sys.stderr)
    return fleet


def _status(arguments: argparse.Namespace) -> int:
    hosts = _fleet(arguments).status()
    if arguments.json:
        print(json.dumps([asdict(host) for host in hosts], indent=2))
        return 0
    if not hosts:
        raise CliError(f"there is no fleet {arguments.name!r}; create it with `wasmsand fleet up`")
    for host in hosts:
        line = f"{host.name}  {host.state}"
        if host.load is not None:
            load = host.load
            line += (
                f"  node {host.node[:12]}  {host.url}  {load.sandboxes} sandboxes  memory "
                f"{load.memory:.0%}  load {load.load:.1f}"
            )
        print(line)
    return 0


def _drain(arguments: argparse.Namespace) -> int:
    if len(arguments.rest) != 1:
        raise CliError("name one node to drain; `wasmsand fleet status` shows their ids")
    try:
        moved = _fleet(arguments).drain(arguments.rest[0], force=arguments.force)
    except ValueError as error:
        raise CliError(str(error)) from None
    print(f"moved: {', '.join(moved) or 'no host was there'}")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    _fleet(arguments).down()
    return 0
