"""Which of the waiting builds begins first."""

from __future__ import annotations

from tests.userland.conftest import World, target_of
from userland.builder import durations
from userland.builder.cli import RECIPES, ROOT
from userland.builder.durations import longest_chain, seconds_to_the_end
from userland.builder.recipe import load_recipes


def test_a_recipe_weighs_what_its_longest_chain_of_users_takes(world: World) -> None:
    world.add("base")
    world.add("middle", depends='["base"]')
    world.add("end", depends='["middle"]')
    world.add("alone")
    weights = seconds_to_the_end(world.recipes(), target_of("1"))
    short = weights["alone"]
    assert weights == {"alone": short, "base": 3 * short, "end": short, "middle": 2 * short}


def test_the_longest_chain_begins_with_what_needs_nothing(world: World) -> None:
    world.add("base")
    world.add("middle", depends='["base"]')
    world.add("end", depends='["middle"]')
    world.add("alone")
    world.add("short", depends='["base"]')
    assert longest_chain(world.recipes(), target_of("1")) == ["base", "middle", "end"]


def test_known_durations_count() -> None:
    recipes = load_recipes(RECIPES, ROOT)
    weights = seconds_to_the_end(recipes, target_of("1"))
    assert (
        weights["musl"]
        == max(weights[name] for name, recipe in recipes.items() if "musl" in recipe.depends)
        + durations.known_seconds()["musl"]
    )
    assert weights["openssl"] > weights["bash"]


def test_durations_name_recipes_that_exist() -> None:
    assert durations.known_seconds().keys() <= load_recipes(RECIPES, ROOT).keys()
