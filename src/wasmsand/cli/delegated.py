"""`wasmsand build` and `wasmsand bench`: commands that are implemented in the source checkout
(`userland/builder`, `bench`), where their arguments are parsed too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from wasmsand.cli.checkout import main_of

MODULES = {"build": "userland.builder", "bench": "bench.run"}

_HELP = {
    "build": "build the programs of the sandbox (bash, coreutils ...) from source",
    "bench": "measure the sandbox and compare it with native programs",
}


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands so that `--help` lists them."""
    for name, help_text in _HELP.items():
        subparsers.add_parser(name, help=help_text, add_help=False)


def execute(name: str, arguments: Sequence[str]) -> int:
    """Pass `arguments`, including options, on unchanged."""
    return main_of(MODULES[name], f"wasmsand {name}")(arguments)
