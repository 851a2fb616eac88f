"""Builds the user space: real programs, from source, to WebAssembly.

The layout, from the top down:

    cli          the `wasmsand build` command
    schedule     which recipes, in which order, how many at once
    build        one recipe: fetch, unpack, configure, make, finish, store
    finish       turns a linked module into one that the kernel can run
    image        the directory of programs that a wheel carries
    sources, debian, wasm_opt, toolchain      what is fetched, and with which tool
    recipe, keys, cache                       what is built, its key, where it is kept
    commands, jobserver, progress, errors     how steps run, and what is shown about them

It needs only the standard library and `rich`.
"""

from userland.builder.cli import main

__all__ = ["main"]
