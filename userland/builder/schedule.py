"""Builds many recipes: order, concurrency, the cache, reproducibility.

Every recipe has a thread. The thread fetches the source when it is its turn, waits for the
dependencies, then for one of a few build slots. Rules: on the whole machine, one builder at a time
builds a recipe; an output in the cache is not built again unless requested; an error in one recipe
stops only the recipes that need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from userland.builder.build import RecipeBuild, Workshop
from userland.builder.cache import Entry, describe_files, disk_errors
from userland.builder.durations import seconds_to_the_end
from userland.builder.errors import BuildError, InputsChanged, Interrupted, NotReproducible
from userland.builder.keys import needed_keys, recipe_key
from userland.builder.recipe import Recipe
from userland.builder.slots import Slots, Turns
from userland.builder.sources import fetch, is_stored


class DependencyFailed(BuildError):
    """A recipe was not built, because a recipe that it needs failed."""


def build_recipes(
    recipes: Mapping[str, Recipe],
    keys: Mapping[str, str],
    shop: Workshop,
    rebuild: frozenset[str] = frozenset(),
) -> dict[str, Entry]:
    """The outputs of all recipes, from the cache or built now.

    Recipes in `rebuild` are built even if they are cached, and compared with the cached output.
    When all threads have ended, the first error is raised. A `KeyboardInterrupt` in the waiting
    thread stops the commands and becomes `Interrupted`.
    """
    for recipe in recipes.values():
        shop.progress.add(recipe.name, recipe.version)
    needs = {name: set(shop.target.depends(recipe)) for name, recipe in recipes.items()}
    weights = seconds_to_the_end(recipes, shop.target)
    slots = Slots(shop.jobs, needs, weights)
    sources = Turns(weights)
    results: dict[str, Future[Entry]] = {name: Future() for name in recipes}

    def work(recipe: Recipe) -> None:
        try:
            entry = _obtain(
                recipe,
                keys[recipe.name],
                shop,
                results,
                slots,
                sources,
                recipe.name in rebuild,
                needed_keys(recipe, recipes, keys, shop.target),
            )
        except BaseException as error:
            # The future passes the error to the caller and to recipes that wait for this one.
            slots.failed(recipe.name)
            shop.progress.end(recipe.name, "failed", _first_line(error))
            results[recipe.name].set_exception(error)
        else:
            slots.built(recipe.name)
            results[recipe.name].set_result(entry)

    with ThreadPoolExecutor(max_workers=max(1, len(recipes))) as pool:
        try:
            for recipe in recipes.values():
                pool.submit(work, recipe)
            for result in results.values():
                result.exception()
        except KeyboardInterrupt:
            shop.commands.stop()
            raise Interrupted from None
    errors = [error for result in results.values() if (error := result.exception()) is not None]
    for error in sorted(errors, key=lambda found: isinstance(found, DependencyFailed)):
        raise error
    return {name: result.result() for name, result in results.items()}


def _obtain(
    recipe: Recipe,
    key: str,
    shop: Workshop,
    results: Mapping[str, Future[Entry]],
    slots: Slots,
    sources: Turns,
    again: bool,
    standing_for_dependencies: list[str],
) -> Entry:
    """The output of one recipe; runs on the recipe's thread."""
    name = recipe.name
    stored = shop.target.cache_prefix + name
    found = shop.cache.find(stored, key)
    if found is not None and not again:
        shop.progress.end(name, "cached", "")
        return found
    shop.progress.step(name, "fetch")
    if not is_stored(recipe.source, shop.cache):
        with sources.turn(name):
            fetch(recipe.source, shop.cache, shop.commands)
    slots.fetched(name)
    needed = shop.target.depends(recipe)
    if needed:
        shop.progress.step(name, f"waiting for {', '.join(needed)}")
    dependencies = _wait_for(recipe, needed, results)
    slots.take(name)
    lock = f"{stored}-{key[:16]}"
    waiting = "waiting for another builder"
    with shop.cache.lock(lock, shop.commands.stopped, lambda: shop.progress.step(name, waiting)):
        # Another builder may have built it meanwhile.
        found = shop.cache.find(stored, key)
        if found is not None and not again:
            shop.progress.end(name, "cached", "")
            return found
        # The second build uses another directory, which reveals paths in the output.
        area = f"{lock}-again" if found is not None else lock
        with disk_errors(shop.cache.root), shop.cache.scratch(area) as scratch:
            build = RecipeBuild(recipe, key, dependencies, shop)
            outputs = build.run(scratch)
            if recipe_key(recipe, standing_for_dependencies, shop.target) != key:
                raise InputsChanged(name)
            if found is not None:
                _compare(recipe, found, outputs)
                shop.progress.end(name, "built", "again: the same bytes")
                return found
            entry = shop.cache.publish(stored, key, outputs, build.seconds)
    shop.progress.end(name, "built", "")
    return entry


def _wait_for(
    recipe: Recipe, needed: Iterable[str], results: Mapping[str, Future[Entry]]
) -> dict[str, Entry]:
    entries = {}
    for name in needed:
        try:
            entries[name] = results[name].result()
        except Interrupted:
            raise
        except Exception:
            raise DependencyFailed(f"{recipe.name}: not built, because {name} failed") from None
    return entries


def _compare(recipe: Recipe, first: Entry, outputs: Path) -> None:
    second = describe_files(outputs)
    differing = sorted(
        path
        for path in first.files.keys() | second.keys()
        if first.files.get(path) != second.get(path)
    )
    if differing:
        raise NotReproducible(
            f"{recipe.name}: a second build differs in {', '.join(differing)}",
            "The output contains a path, a time or an unordered list; compare with "
            f"{first.folder}.",
        )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
