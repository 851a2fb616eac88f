"""The processors for which modules are compiled in advance, to be shipped.

Owns the table of baselines. Rules: a baseline names the least processor that runs the code; a
machine with a lesser one compiles programs itself. wasmtime's library compiles only for its own
architecture, so the modules of an architecture are compiled on it.

x86-64-v2 is what a processor of 2009 has. Without it, floating-point rounding and parts of
WebAssembly's vectors are calls of functions: `numpy` then multiplies matrices 25 times slower.
x86-64-v3 (2013) is two to three times faster there and nowhere else, so only the interpreter with
`numpy` is compiled for it (`docs/decisions/0024-compiled-modules-in-wheels.md`).
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


_X86_64_V2: Final = (
    "has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt", "has_cmpxchg16b",
)  # fmt: skip
_X86_64_V3: Final = (
    *_X86_64_V2, "has_avx", "has_avx2", "has_fma", "has_bmi1", "has_bmi2", "has_lzcnt",
)  # fmt: skip

X86_64_V2: Final = Processor("x86-64-v2", "x86_64-unknown-linux-gnu", _X86_64_V2)
X86_64_V3: Final = Processor("x86-64-v3", "x86_64-unknown-linux-gnu", _X86_64_V3)
AARCH64: Final = Processor("aarch64", "aarch64-unknown-linux-gnu")
