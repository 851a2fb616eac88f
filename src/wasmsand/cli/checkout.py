"""The source checkout, for the subcommands that need more than the installed package.

Rules: no other file of the package looks outside the package.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from wasmsand.cli.failure import CliError


def repository_root() -> Path | None:
    """The checkout that this package runs from, or None if it was installed."""
    root = Path(__file__).resolve().parents[3]
    is_checkout = (root / "pyproject.toml").is_file() and (root / "userland").is_dir()
    return root if is_checkout else None


def main_of(module: str, purpose: str) -> Callable[[Sequence[str]], int]:
    """The `main(argv)` of a module of the checkout, such as `userland.builder`."""
    root = repository_root()
    if root is None:
        raise CliError(
            f"{purpose} needs a source checkout, but this is an installed package: "
            "clone the repository and run `make build` there"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return cast("Callable[[Sequence[str]], int]", importlib.import_module(module).main)
