"""Building many recipes: order, concurrency, the cache, reproducibility.

Every recipe has a thread. It fetches its source at once, waits for its dependencies,
then for one of a few places to build in. Rules: a recipe is built by one builder at a
time, on the whole machine; an output that is in the cache is not built again unless
asked; an error in one recipe stops only those that need it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from userland.builder.build import RecipeBuild, Workshop
from userland.builder.cache import Entry, describe_files, disk_errors
from userland.builder.errors import BuildError, InputsChanged, Interrupted, NotReproducible
from userland.builder.keys import recipe_key
from userland.builder.recipe import Recipe
from userland.builder.sources import fetch


class DependencyFailed(BuildError):
    """A recipe was not built because one that it needs failed."""


def build_recipes(
    recipes: Mapping[str, Recipe],
    keys: Mapping[str, str],
    shop: Workshop,
    rebuild: frozenset[str] = frozenset(),
) -> dict[str, Entry]:
    """The outputs of all recipes, built or from the cache.

    Those in `rebuild` are built even if cached, and compared with what is there.
    Raises the first error when all threads have ended; `KeyboardInterrupt` in the
    waiting thread stops the commands and becomes `Interrupted`.
    """
    for recipe in recipes.values():
        shop.progress.add(recipe.name, recipe.version)
    places = threading.BoundedSemaphore(shop.jobs)
    results: dict[str, Future[Entry]] = {name: Future() for name in recipes}

    def work(recipe: Recipe) -> None:
        try:
            entry = _obtain(
                recipe, keys[recipe.name], shop, results, places, recipe.name in rebuild
            )
        except BaseException as error:
            # The future carries it to the caller and to those who wait for this recipe.
            shop.progress.end(recipe.name, "failed", _first_line(error))
            results[recipe.name].set_exception(error)
        else:
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
    places: threading.Semaphore,
    again: bool,
) -> Entry:
    """One recipe's output; runs on the recipe's thread."""
    name = recipe.name
    found = shop.cache.find(name, key)
    if found is not None and not again:
        shop.progress.end(name, "cached", "")
        return found
    shop.progress.step(name, "fetch")
    fetch(recipe.source, shop.cache, shop.commands)
    if recipe.depends:
        shop.progress.step(name, f"waiting for {', '.join(recipe.depends)}")
    dependencies = _wait_for(recipe, results)
    with places:
        lock = f"{name}-{key[:16]}"
        waiting = "waiting for another builder"
        with shop.cache.lock(
            lock, shop.commands.stopped, lambda: shop.progress.step(name, waiting)
        ):
            # Another builder may have made it while we waited.
            found = shop.cache.find(name, key)
            if found is not None and not again:
                shop.progress.end(name, "cached", "")
                return found
            # A second build is done elsewhere, so that a path in its output shows.
            area = f"{lock}-again" if found is not None else lock
            with disk_errors(shop.cache.root), shop.cache.scratch(area) as scratch:
                build = RecipeBuild(recipe, key, dependencies, shop)
                outputs = build.run(scratch)
                needed = [entry.key for entry in dependencies.values()]
                if recipe_key(recipe, needed, shop.toolchain.identity) != key:
                    raise InputsChanged(name)
                if found is not None:
                    _compare(recipe, found, outputs)
                    shop.progress.end(name, "built", "again, with the same bytes")
                    return found
                entry = shop.cache.publish(name, key, outputs, build.seconds)
    shop.progress.end(name, "built", "")
    return entry


def _wait_for(recipe: Recipe, results: Mapping[str, Future[Entry]]) -> dict[str, Entry]:
    entries = {}
    for needed in recipe.depends:
        try:
            entries[needed] = results[needed].result()
        except Interrupted:
            raise
        except Exception:
            raise DependencyFailed(f"{recipe.name}: not built, because {needed} failed") from None
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
            "A path, a time or an unordered list got into the output; compare with "
            f"{first.folder}.",
        )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
