"""Machines whose guests reach a TLS server of the test, through the bridge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.servers import run
from wasmsand.machine.machine import Machine, MachineOptions
from wasmsand.machine.network.policy import policy_of


@contextmanager
def inspected(
    private_authority: PrivateAuthority, *allow: str, packages: tuple[str, ...] = (), **policy: Any
) -> Iterator[Machine]:
    """A machine whose bridge trusts the servers of the tests."""
    options = MachineOptions(network=policy_of(allow=allow, **policy), packages=packages)
    made = Machine(options)
    made.bridge.inspection.verify_with(private_authority.ca_file)
    try:
        yield made
    finally:
        made.close()


def python(of: Machine, program: str) -> str:
    """Run a Python program; its output, and its errors."""
    out, err = run(of, "python3", "-c", program)
    return out + err
