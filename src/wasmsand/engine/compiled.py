"""What the library of the compiled kernel has in C.

Owns `COMPILED`. `wasmsand.compiled_kernel` loads the library before it imports any compiled module,
if there is one for this installation; decision 0042.
"""

from __future__ import annotations

import sys
from typing import Any, Final

COMPILED: Final[Any] = sys.modules.get("wasmsand_start")
"""The module of `scripts/compiled_entry.c`; None if the sources of the kernel run."""
