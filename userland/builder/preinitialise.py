"""Programs that are stored when they have prepared themselves (`plain` in their recipe).

Owns the step between built programs and the image: each such program runs on our own kernel,
in an image of its recipe and what that needs, up to its checkpoint (`userland/libc/checkpoint`);
the module in the image begins there. Rules: an outcome is kept in the cache under a key of
all that it depends on, the kernel included; the same key gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from userland.builder.cache import Cache, Entry
from userland.builder.errors import BadModule, BuildError
from userland.builder.image import write_image
from userland.builder.keys import file_digest, tree_digest
from userland.builder.recipe import Program, Recipe, installed_path, with_dependencies
from userland.builder.stored_module import stored_module, with_variables_exported
from userland.builder.wasm_module import summarise

# A zone that no user has, so that the libc looks at the zone again after a start.
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "TZ": "CHECKPOINT0", "LC_ALL": "C.UTF-8"}
_ROOT = Path(__file__).resolve().parents[2]
_CODE = ("preinitialise.py", "stored_module.py", "image.py")
_KERNEL = tuple(_ROOT / "src/wasmsand" / layer for layer in ("abi", "kernel", "machine"))


def store_programs(
    built: Sequence[tuple[Recipe, Entry]], cache: Cache, step: Callable[[str], None]
) -> dict[str, Entry]:
    """The stored programs by name, each with its `NAME.wasm`; `step` is told what takes time.

    None where the engine is not installed: all programs then start from nothing.
    """
    wanted = [(recipe, program) for recipe, _ in built for program in recipe.programs]
    wanted = [(recipe, program) for recipe, program in wanted if program.plain is not None]
    if not wanted or not _engine_is_installed():
        return {}
    entries = {recipe.name: entry for recipe, entry in built}
    recipes = {recipe.name: recipe for recipe, _ in built}
    kernel = [tree_digest(path) for path in _KERNEL]
    stored = {}
    for recipe, program in wanted:
        needed = with_dependencies([recipe.name], recipes)
        pairs = [(recipe, entries[name]) for name, recipe in needed.items()]
        key = _key(program, [entry.key for _, entry in pairs], kernel)
        name = f"stored-{program.name}"
        with cache.lock(f"{name}-{key}"):
            entry = cache.find(name, key)
            if entry is None:
                step(f"prepare {program.name}")
                with cache.scratch(name) as scratch:
                    made = scratch / "out"
                    made.mkdir()
                    module = _prepared(program, entries[recipe.name], pairs, scratch)
                    (made / program.file).write_bytes(module)
                    entry = cache.publish(name, key, made, {})
        stored[program.name] = entry
    return stored


def _key(program: Program, entries: list[str], kernel: list[str]) -> str:
    parts = {
        "program": [program.name, program.plain],
        "entries": entries,
        "kernel": kernel,
        "environment": _ENVIRONMENT,
        "builder": [file_digest(Path(__file__).with_name(name)) for name in _CODE],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _engine_is_installed() -> bool:
    try:
        import wasmsand.engine  # noqa: F401  # the user space can be built without it
    except ImportError:
        return False
    return True


def _prepared(
    program: Program, entry: Entry, pairs: Sequence[tuple[Recipe, Entry]], scratch: Path
) -> bytes:
    """The module of the program as it is at its checkpoint."""
    from wasmsand.machine import CheckpointFailed, image_at, run_to_checkpoint

    plain = (entry.folder / program.file).read_bytes()
    readable = with_variables_exported(plain)
    image = scratch / "image"
    write_image(image, pairs)
    try:
        checkpoint = run_to_checkpoint(
            installed_path(program.names[0]),
            _ENVIRONMENT,
            image=image_at(image),
            # Most programs need no change, and have been compiled already.
            module=None if readable == plain else readable,
        )
    except CheckpointFailed as failure:
        raise BuildError(
            f"{program.name}: {failure}", "See userland/libc/checkpoint/checkpoint.h."
        ) from None
    module = stored_module(plain, checkpoint.memory, checkpoint.variables)
    if summarise(module).imports != summarise(plain).imports:
        raise BadModule(f"{program.name}: storing it has changed its imports")
    return module
