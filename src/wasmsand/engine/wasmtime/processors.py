"""The processors for which modules are compiled in advance, to be shipped.

Owns the table of baselines. Rules: a baseline names the least processor that runs the code; a
machine with a lesser one compiles programs itself. wasmtime's library compiles only for its own
architecture, so the modules of an architecture are compiled on it.

x86-64-v2 is what processors since 2009 have. Below it, parts of WebAssembly's vectors are slow
function calls: `numpy` multiplies matrices 60 times slower. Code for all features of a current
processor multiplies them 1.4 times faster and does nothing else faster, and virtual machines often
lack those features (`docs/decisions/0027-compiled-modules-in-wheels.md`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Processor:
    """The least processor for which modules are compiled."""

    name: str
    """For messages."""
    target: str
    """The triple of the system."""
    features: tuple[str, ...] = ()
    """Cranelift's settings, beyond what every processor of the architecture has."""


BASELINES: Final = {
    "x86_64": Processor(
        "x86-64-v2",
        "x86_64-unknown-linux-gnu",
        ("has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt", "has_cmpxchg16b"),
    ),
    "aarch64": Processor("aarch64", "aarch64-unknown-linux-gnu"),
}
"""For Linux, by machine as Python names it."""
