"""Which native packages the full interpreter has is chosen when it is built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from userland.builder.cli import RECIPES, ROOT, main
from userland.builder.commands import Commands
from userland.builder.errors import RecipeError
from userland.builder.features import (
    FULL_PYTHON,
    choose_packages,
    native_packages,
    packages_of_image,
)
from userland.builder.keys import recipe_keys
from userland.builder.recipe import Recipe, load_recipes, with_dependencies
from userland.builder.target_wasm import WasmTarget
from userland.builder.toolchain import find_toolchain


@pytest.fixture(scope="module")
def recipes() -> dict[str, Recipe]:
    return load_recipes(RECIPES, ROOT)


def chosen(recipes: dict[str, Recipe], words: str) -> set[str]:
    """The packages of the image that a choice makes."""
    narrowed = choose_packages(recipes, words)
    needed = with_dependencies([FULL_PYTHON], narrowed)
    return set(needed) & set(native_packages(recipes))


def test_without_a_choice_nothing_changes(recipes: dict[str, Recipe]) -> None:
    assert choose_packages(recipes, "all") is recipes
    assert {"numpy", "pandas"} <= set(native_packages(recipes))


def test_a_choice_brings_the_packages_that_are_needed(recipes: dict[str, Recipe]) -> None:
    assert chosen(recipes, "numpy") == {"numpy"}
    assert chosen(recipes, " pandas ,") == {"numpy", "pandas"}
    assert chosen(recipes, "regex") == {"regex"}
    assert chosen(recipes, "contourpy,regex") == {"contourpy", "numpy", "regex"}


def test_libraries_of_other_packages_are_left_out(recipes: dict[str, Recipe]) -> None:
    depends = choose_packages(recipes, "regex")[FULL_PYTHON].depends
    assert "openblas" not in depends
    assert {"musl", "python"} <= set(depends)
    assert "openblas" in choose_packages(recipes, "numpy")[FULL_PYTHON].depends


def test_a_choice_changes_the_key_of_the_interpreter_and_no_other(
    recipes: dict[str, Recipe],
) -> None:
    toolchain = find_toolchain(Commands())
    if toolchain is None:
        pytest.skip("the toolchain is not installed")
    target = WasmTarget(toolchain)
    before = recipe_keys(recipes, target)
    after = recipe_keys(choose_packages(recipes, "numpy"), target)
    assert {name for name in before if before[name] != after[name]} == {FULL_PYTHON}
    other = recipe_keys(choose_packages(recipes, "numpy,pandas"), target)
    assert other[FULL_PYTHON] != after[FULL_PYTHON]
    same = recipe_keys(choose_packages(recipes, "pandas"), target)
    assert same[FULL_PYTHON] == other[FULL_PYTHON]


@pytest.mark.parametrize("words", ["nump", "numpy,bash", "requests"])
def test_an_unknown_package_is_an_error_that_names_the_known_ones(
    words: str, recipes: dict[str, Recipe]
) -> None:
    with pytest.raises(RecipeError, match="unknown package") as caught:
        choose_packages(recipes, words)
    assert "numpy, pandas" in caught.value.advice


def test_an_empty_choice_is_an_error(recipes: dict[str, Recipe]) -> None:
    with pytest.raises(RecipeError, match="names no package"):
        choose_packages(recipes, " , ")


def test_packages_go_only_with_the_full_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["bash", "--packages", "numpy"])
    assert caught.value.code == 2
    assert "--packages only goes with python-full or --list" in capsys.readouterr().err


def test_the_command_says_which_packages_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["python-full", "--packages", "nump"]) == 1
    printed = capsys.readouterr().err
    assert "unknown package: 'nump'" in printed
    assert "Did you mean numpy?" in printed


def test_the_manifest_names_the_packages_of_an_image(tmp_path: Path) -> None:
    assert packages_of_image(tmp_path) is None
    (tmp_path / "manifest.json").write_text(json.dumps({"packages": ["numpy"]}))
    assert packages_of_image(tmp_path) == ["numpy"]


def test_the_list_shows_the_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "image-packages").mkdir()
    manifest = tmp_path / "image-packages/manifest.json"
    manifest.write_text(json.dumps({"packages": ["numpy"]}))
    assert main(["--list", "--image", str(tmp_path / "image")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "python-full is installed with these packages: numpy; without: contourpy" in printed
    assert main(["--list", "--image", str(tmp_path / "none")]) == 0
    assert "python-full is not installed; it can have" in capsys.readouterr().out
