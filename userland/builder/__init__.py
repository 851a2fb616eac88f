"""Builds the user space: real programs, from source, to WebAssembly.

The layout, from the top down:

    cli          the `wasmsand build` command
    schedule     which recipes, in which order, how many at once
    build        one recipe: fetch, unpack, configure, make, finish, store
    finish       what happens to a linked module before it may be used
    image        the directory of programs that a wheel carries
    sources, debian, python_index             where sources are fetched from
    wasm_opt, toolchain                       the tools, and where they come from
    recipe, recipe_table, keys, cache         what is built, its name, where it is kept
    commands, jobserver, progress, errors     how steps run and what is told about them

Only the standard library and `rich` are needed. Programs that recipes run to build themselves
import single modules of it, and do without `rich`.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `wasmsand build` with these arguments; returns the exit status."""
    from userland.builder import cli

    return cli.main(argv)
