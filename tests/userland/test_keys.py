"""A key changes with every input that can change the output, and only then."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.userland.conftest import World, target_of
from userland.builder import keys as keys_module
from userland.builder.keys import recipe_keys, tree_digest

Edit = Callable[[Path, str, str], None]


@pytest.fixture
def two(world: World) -> World:
    """`user` depends on `base`; `base` has a directory of further inputs."""
    folder = world.add("base")
    (world.root / "overlay/sub").mkdir(parents=True)
    (world.root / "overlay/sub/file.c").write_text("int x;\n")
    recipe = folder / "recipe.toml"
    recipe.write_text(recipe.read_text().replace('["base.sh"]', '["base.sh", "overlay"]'))
    world.add("user", depends='["base"]')
    return world


def change_recipe(world: World, edit: Edit) -> None:
    edit(world.recipes_folder / "base/recipe.toml", "a test", "another test")


def change_script(world: World, edit: Edit) -> None:
    edit(world.root / "base.sh", "cp", "cp -p")


def change_source(world: World, edit: Edit) -> None:
    world.add("base", content="other content")


def change_overlay_file(world: World, edit: Edit) -> None:
    edit(world.root / "overlay/sub/file.c", "int", "long")


def add_overlay_file(world: World, edit: Edit) -> None:
    (world.root / "overlay/sub/empty.c").touch()


def rename_overlay_file(world: World, edit: Edit) -> None:
    (world.root / "overlay/sub/file.c").rename(world.root / "overlay/sub/other.c")


def make_overlay_file_executable(world: World, edit: Edit) -> None:
    (world.root / "overlay/sub/file.c").chmod(0o755)


@pytest.mark.parametrize(
    "change",
    [
        change_recipe,
        change_script,
        change_source,
        change_overlay_file,
        add_overlay_file,
        rename_overlay_file,
        make_overlay_file_executable,
    ],
)
def test_a_change_of_a_recipe_changes_its_key_and_those_of_its_users(
    two: World, edit: Edit, change: Callable[[World, Edit], None]
) -> None:
    before = two.keys()
    change(two, edit)
    after = two.keys()
    assert after["base"] != before["base"]
    assert after["user"] != before["user"]


def test_an_interface_stands_for_a_recipe_in_the_keys_of_its_users(two: World, edit: Edit) -> None:
    two.add("linker", depends='["base"]\ncontains_depends = true')
    base = two.recipes_folder / "base/recipe.toml"
    edit(base, 'name = "base"', 'name = "base"\ninterface = "headers 1"')
    before = two.keys()
    change_script(two, edit)
    after = two.keys()
    assert after["user"] == before["user"]
    assert after["linker"] != before["linker"]
    edit(base, "headers 1", "headers 2")
    assert two.keys()["user"] != before["user"]


def test_key_changes_with_a_patch(two: World, edit: Edit) -> None:
    folder = two.recipes_folder / "base"
    (folder / "fix.patch").write_text("one\n")
    edit(folder / "recipe.toml", 'system = "script"', 'system = "script"\npatches = ["fix.patch"]')
    before = two.keys()
    (folder / "fix.patch").write_text("two\n")
    assert two.keys()["base"] != before["base"]


def test_keys_change_with_the_toolchain(two: World) -> None:
    assert two.keys("clang 22") != two.keys("clang 23")


def test_keys_change_with_the_code_that_finishes(
    two: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "builder"
    copy.mkdir()
    for name in target_of("t").code:
        (copy / name).write_text("one")
    monkeypatch.setattr(keys_module, "__file__", str(copy / "keys.py"))
    before = two.keys()
    (copy / "finish.py").write_text("two")
    assert two.keys() != before


def test_a_change_of_a_user_does_not_change_its_dependencies(two: World, edit: Edit) -> None:
    before = two.keys()
    edit(two.recipes_folder / "user/recipe.toml", "a test", "another test")
    after = two.keys()
    assert after["user"] != before["user"]
    assert after["base"] == before["base"]


def test_two_clones_have_the_same_keys(two: World, tmp_path: Path) -> None:
    clone = World(tmp_path / "clone", two.mirror, two.cache, two.output)
    two.root.rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", clone.root)
    moved = World(tmp_path / "moved", two.mirror, two.cache, two.output)
    assert clone.keys() == moved.keys()


def test_compiled_python_files_are_not_inputs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    before = tree_digest(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/m.cpython-311.pyc").write_text("y")
    assert tree_digest(tmp_path) == before


def test_keys_need_dependencies_first(two: World) -> None:
    recipes = two.recipes()
    assert recipe_keys(dict(recipes), target_of("t")) == two.keys("t")


def test_keys_do_not_change_with_the_addresses_of_a_source(world: World) -> None:
    world.add("tool")
    before = world.keys()
    recipe = world.recipes_folder / "tool" / "recipe.toml"
    text = recipe.read_text()
    assert "\nsha256 = " in text
    address = 'upstream = ["https://example.org/tool.tar.gz"]'
    recipe.write_text(text.replace("\nsha256 = ", f"\n{address}\nsha256 = ", 1))
    assert world.recipes()["tool"].source.upstream == ("https://example.org/tool.tar.gz",)
    assert world.keys() == before
