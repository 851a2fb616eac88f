"""Builds the user space: real programs, from source, to WebAssembly.

The layout, from the top down:

    cli          the `wasmsand build` command
    ahead        what `make` runs before that command is installed
    schedule     which recipes, in which order, how many at once
    build        one recipe: fetch, unpack, configure, make, finish, store
    finish       turns a linked module into one that the kernel can run
    image        the directory of programs that a wheel carries
    sources, debian, python_index             where sources are fetched from
    wasm_opt, toolchain                       the tools, and where they come from
    recipe, recipe_table, keys, cache         what is built, its key, where it is kept
    package_build, package_wheel, package_files, extension_modules, link_python
                                              Python packages; recipes run these
    commands, jobserver, progress, errors     how steps run, and what is shown about them

It needs only the standard library and `rich`. Programs that recipes run import single modules of
it, which do without `rich`.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `wasmsand build` with these arguments; returns the exit status."""
    from userland.builder import cli

    return cli.main(argv)
