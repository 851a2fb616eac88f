"""How long builds take, so that the longest chain of builds begins first.

Owns `durations.toml`, the seconds of CPU that builds of recipes take. Rules: the numbers only
decide the order, so they need not be exact; a recipe without a number counts as a short one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from userland.builder.recipe import Recipe
from userland.builder.target import Target

_SHORT_SECONDS = 3.0


def seconds_to_the_end(recipes: Mapping[str, Recipe], target: Target) -> dict[str, float]:
    """For each recipe, the time of the longest chain of builds that begins with its own.

    `recipes` lists dependencies before their users.
    """
    seconds = {name: known_seconds().get(name, _SHORT_SECONDS) for name in recipes}
    chains: dict[str, float] = dict.fromkeys(recipes, 0.0)
    for name, recipe in reversed(list(recipes.items())):
        chains[name] += seconds[name]
        for needed in target.depends(recipe):
            if needed in chains:
                chains[needed] = max(chains[needed], chains[name])
    return chains


def longest_chain(recipes: Mapping[str, Recipe], target: Target) -> list[str]:
    """The chain of builds that takes longest, each of which needs the one before."""
    weights = seconds_to_the_end(recipes, target)
    chain: list[str] = []
    following = set(recipes)
    while following:
        chain.append(max(following, key=lambda name: (weights[name], name)))
        following = {
            name for name, recipe in recipes.items() if chain[-1] in target.depends(recipe)
        }
    return chain


@cache
def known_seconds() -> dict[str, float]:
    """The content of `durations.toml`."""
    text = Path(__file__).with_name("durations.toml").read_text(encoding="utf-8")
    return {name: float(spent) for name, spent in tomllib.loads(text).items()}
