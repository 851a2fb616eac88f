"""Imports Ray.

Rules: nothing else in the package imports Ray. Where Ray is missing, the error says why and what to
do: it is an optional package, and has no release for some versions of Python and some systems.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from wasmsand.sdk.errors import UnsupportedError

_NEWEST_PYTHON: Final = (3, 14)
"""The newest Python that Ray 2.60 is built for."""


def ray_library() -> Any:
    """The module `ray`. Raises `UnsupportedError`."""
    if os.name != "posix":
        raise UnsupportedError("a fleet needs Linux or macOS: its hosts have worker processes")
    # Ray would count its users by requests to its authors' server. Say no, unless the user chose.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.util
    except ImportError as missing:
        python = ".".join(map(str, sys.version_info[:2]))
        reason = f"Ray cannot be imported ({missing}); install it: pip install 'wasmsand[fleet]'"
        if sys.version_info[:2] > _NEWEST_PYTHON:
            newest = ".".join(map(str, _NEWEST_PYTHON))
            reason = f"Ray has no release for Python {python}; use Python {newest} or older"
        raise UnsupportedError(f"fleets run on Ray: {reason}") from None
    return ray
