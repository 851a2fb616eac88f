"""The words of refusals.

Owns the texts that say why something is refused, and which rule would allow it. Rules: hosts in
them are in normal form; nothing else of a guest is shown as it is.
"""

from __future__ import annotations

from wasmsand.machine.network.addresses import AddressKind
from wasmsand.machine.network.rules import Verdict


def as_rule(host: str, port: int | None) -> str:
    """The rule for one host and port."""
    if port is None:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def not_allowed(host: str, port: int | None, kind: AddressKind = AddressKind.PUBLIC) -> Verdict:
    """The refusal of a host that no rule is about."""
    special = "" if kind is AddressKind.PUBLIC else f", a {kind.value} address,"
    return Verdict(
        False,
        reason=f"{as_rule(host, port)}{special} is not allowed;"
        f" to allow it, add {as_rule(host, port)!r} to network.allow",
    )


def because(problem: str) -> str:
    """The end of a sentence, if there is a cause to add."""
    return f" ({problem})" if problem else ""
