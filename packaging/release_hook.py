"""Makes a released wheel require the compiled modules that belong to it.

Rules: only wheels that `scripts/make_wheels.py` builds require them, because only those are
released together with them. An editable installation, and a wheel that is built otherwise, compile
at first use.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

VARIABLE = "WASMSAND_RELEASE"


class ReleaseHook(BuildHookInterface[Any]):
    """See the file's documentation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built."""
        if os.environ.get(VARIABLE) == "1" and version == "standard":
            project = self.metadata.core
            build_data["dependencies"].append(f"{project.name}-native=={project.version}")
