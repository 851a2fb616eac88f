"""Puts the compiled modules into the wheels of wasmsand-native and wasmsand-packages-native.

Rules: `scripts/make_wheels.py` compiles the modules and says where they are and for which platform;
without it there is nothing to build.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DIRECTORY = "WASMSAND_COMPILED_DIRECTORY"
"""The Python package with the compiled modules."""
TAG = "WASMSAND_COMPILED_TAG"
"""The platform tag of the wheel, such as `manylinux1_x86_64`, or `any`."""


class NativeHook(BuildHookInterface[Any]):
    """See the file's documentation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built."""
        try:
            directory, tag = os.environ[DIRECTORY], os.environ[TAG]
        except KeyError:
            raise SystemExit("build this with `make wheel`, which compiles its modules") from None
        build_data["force_include"][directory] = os.path.basename(directory)
        build_data["pure_python"] = tag == "any"
        build_data["tag"] = f"py3-none-{tag}"
