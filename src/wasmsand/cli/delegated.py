"""`wasmsand build` and `wasmsand bench`: commands whose work is done by a source
checkout (`userland/builder`, `bench`), which also parses their arguments.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from wasmsand.cli.checkout import main_of

MODULES = {"build": "userland.builder", "bench": "bench.run"}

_HELP = {
    "build": "build the user space (bash, coreutils) from source",
    "bench": "measure the sandbox against the native programs of this machine",
}


def add_parsers(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands so that `--help` lists them."""
    for name, help_text in _HELP.items():
        subparsers.add_parser(name, help=help_text, add_help=False)


def execute(name: str, arguments: Sequence[str]) -> int:
    """Hand `arguments`, options included, over as they are."""
    return main_of(MODULES[name], f"wasmsand {name}")(arguments)
