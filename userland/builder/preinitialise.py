"""Programs that start prepared (`plain` in their recipe).

Owns the step between built programs and the image: each such program runs on our own kernel,
in an image of its recipe and what that needs, up to its checkpoint (`userland/libc/checkpoint`);
its memory becomes a file of the image, with which the same module starts. Rules: an outcome is kept
in the cache under a key of all that it depends on, the kernel included; the same key gives the
same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from userland.builder.cache import Cache, Entry
from userland.builder.errors import BuildError
from userland.builder.image import MEMORY_FACTS, memory_file, write_image
from userland.builder.keys import file_digest, tree_digest
from userland.builder.prepared_packages import preparation_files
from userland.builder.recipe import Program, Recipe, installed_path, with_dependencies
from userland.builder.stored_memory import RESUME_ENTRY, stack_reserve_of, stored_content

# A zone that no user has, so that the libc looks at the zone again after a start.
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "TZ": "CHECKPOINT0", "LC_ALL": "C.UTF-8"}
_ROOT = Path(__file__).resolve().parents[2]
_CODE = ("preinitialise.py", "stored_memory.py", "image.py", "image_contents.py")
_KERNEL = tuple(_ROOT / "src/wasmsand" / layer for layer in ("abi", "kernel", "machine"))
_STACK_POINTER = "__stack_pointer"


def store_programs(
    built: Sequence[tuple[Recipe, Entry]], cache: Cache, step: Callable[[str], None]
) -> dict[str, Entry]:
    """The memory of prepared programs by name, each with its `NAME.image` and what is to be known
    of it; `step` is told what takes time.

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
        added = preparation_files(recipe, recipes)
        key = _key(program, pairs, added, kernel)
        name = f"stored-{program.name}"
        with cache.lock(f"{name}-{key}"):
            entry = cache.find(name, key)
            if entry is None:
                step(f"prepare {program.name}")
                with cache.scratch(name) as scratch:
                    made = scratch / "out"
                    made.mkdir()
                    image = scratch / "image"
                    write_image(image, pairs, added=added)
                    _prepare(program, entries[recipe.name], image, made)
                    entry = cache.publish(name, key, made, {})
        stored[program.name] = entry
    return stored


def _key(
    program: Program,
    pairs: Sequence[tuple[Recipe, Entry]],
    added: Mapping[str, bytes],
    kernel: list[str],
) -> str:
    own = [file for recipe, _ in pairs for file in recipe.own_files]
    parts = {
        "program": [program.name, program.plain],
        "entries": [entry.key for _, entry in pairs],
        "own files": [[file.path, file_digest(file.origin)] for file in own],
        "added": {path: hashlib.sha256(content).hexdigest() for path, content in added.items()},
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


def _prepare(program: Program, entry: Entry, image: Path, made: Path) -> None:
    """Run the program to its checkpoint in an image, and write its memory to the directory
    `made`."""
    from wasmsand.engine import default_engine
    from wasmsand.machine import CheckpointFailed, image_at, run_to_checkpoint

    module = (entry.folder / program.file).read_bytes()
    stack_reserve = stack_reserve_of(module)
    # Compiling it takes longer than the run may.
    default_engine().load(hashlib.sha256(module).hexdigest(), lambda: module)
    try:
        checkpoint = run_to_checkpoint(
            installed_path(program.names[0]), _ENVIRONMENT, image=image_at(image)
        )
    except CheckpointFailed as failure:
        raise BuildError(
            f"{program.name}: {failure}", "See userland/libc/checkpoint/checkpoint.h."
        ) from None
    first, content = stored_content(checkpoint.memory, stack_reserve)
    variables = {
        name: value for name, value in checkpoint.variables.items() if name != _STACK_POINTER
    }
    facts = {
        "first": first,
        "memory_size": len(checkpoint.memory),
        "variables": variables,
        "entry": RESUME_ENTRY,
    }
    (made / memory_file(program)).write_bytes(content)
    (made / MEMORY_FACTS).write_text(json.dumps(facts, sort_keys=True), encoding="utf-8")
