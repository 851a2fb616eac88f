"""What a recipe file may contain, and the messages about mistakes in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.userland.conftest import World
from userland.builder.errors import RecipeError
from userland.builder.recipe import built_by_default, load_recipe, load_recipes, with_dependencies

Edit = Callable[[Path, str, str], None]

PROGRAM = """
name = "tool"
version = "2.1"
summary = "a tool"
licence = "GPL-3.0-or-later"
depends = ["musl"]

[source]
package = "tool"
suites = ["trixie", "sid"]
file = "tool_2.1.orig.tar.xz"
sha256 = "{sha256}"

[build]
system = "autotools"
configure = ["--disable-nls"]
make = ["src/tool"]

[build.answers]
ac_cv_func_b = "no"
ac_cv_func_a = "yes"

[[programs]]
name = "tool"
binary = "src/tool"
names = ["tool", "gtool"]
fork = true
"""


def write(world: World, text: str, name: str = "tool") -> Path:
    folder = world.recipes_folder / name
    folder.mkdir()
    (folder / "recipe.toml").write_text(text.replace("{sha256}", "a" * 64))
    return folder


def test_program_recipe_is_read_whole(world: World) -> None:
    recipe = load_recipe(write(world, PROGRAM), world.root)
    assert (recipe.name, recipe.version, recipe.depends) == ("tool", "2.1", ("musl",))
    assert recipe.source.suites == ("trixie", "sid")
    assert recipe.build.answers == (("ac_cv_func_a", "yes"), ("ac_cv_func_b", "no"))
    (program,) = recipe.programs
    assert program.names == ("tool", "gtool")
    assert program.fork
    assert program.fork_through_pointers is None
    assert program.file == "tool.wasm"
    assert recipe.origin.startswith("tool 2.1 (Debian source package tool, ")


def test_source_of_a_python_project_needs_no_suites(world: World) -> None:
    text = PROGRAM.replace('package = "tool"\nsuites = ["trixie", "sid"]', 'pypi = "Tool.Kit"')
    recipe = load_recipe(write(world, text), world.root)
    assert (recipe.source.pypi, recipe.source.package) == ("Tool.Kit", "")
    assert recipe.origin.startswith("tool 2.1 (PyPI project Tool.Kit, tool_2.1.orig.tar.xz, ")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('licence = "GPL-3.0-or-later"\n', "", "licence is missing"),
        ('sha256 = "{sha256}"\n', "", "source.sha256 is missing"),
        ("{sha256}", "abc", "source.sha256 cannot be 'abc'"),
        ('suites = ["trixie", "sid"]', "suites = []", "source.suites must name at least one"),
        ('suites = ["trixie", "sid"]', 'pypi = "tool"', "source.package is an unknown field"),
        ('package = "tool"\nsuites = ["trixie", "sid"]', 'pypi = "-"', "source.pypi cannot be '-'"),
        ('make = ["src/tool"]', 'makes = ["src/tool"]', "build.makes is an unknown field"),
        ('make = ["src/tool"]', 'make = "src/tool"', "build.make must be a list"),
        ('system = "autotools"', 'system = "meson"', "build.system must be one of"),
        ('name = "tool"\nversion', 'name = "other"\nversion', "but the folder is 'tool'"),
        ('"gtool"', '"../gtool"', "programs[0].names cannot hold"),
        ('binary = "src/tool"', 'binary = "../tool"', "programs[0].binary must lie"),
        ("fork = true", 'fork = "yes"', "programs[0].fork must be a bool"),
        ('depends = ["musl"]', "depends = []", "depends must name musl"),
        ('make = ["src/tool"]', 'patches = ["x.patch"]', "names x.patch, which is not in"),
        ("[source]", "[source", "is not valid TOML"),
        ('"gtool"', '"sub/gtool"', "programs[0].names cannot hold"),
        ('"gtool"', '"/usr//gtool"', "programs[0].names cannot hold"),
        ("[[programs]]", '[[files]]\npath = "etc/x"\nfrom = "x"\n[[programs]]', "files[0].path"),
        ("[[programs]]", '[[files]]\npath = "/x"\nfrom = "/x"\n[[programs]]', "files[0].from must"),
        ("[[programs]]", '[[links]]\npath = "/x"\n[[programs]]', "links[0].to is missing"),
    ],
)
def test_mistake_is_named_with_file_and_field(
    world: World, old: str, new: str, complaint: str
) -> None:
    assert old in PROGRAM
    folder = write(world, PROGRAM.replace(old, new))
    with pytest.raises(RecipeError) as caught:
        load_recipe(folder, world.root)
    assert str(caught.value).startswith(str(folder / "recipe.toml"))
    assert complaint in str(caught.value)


def test_dependencies_come_before_their_users(world: World) -> None:
    world.add("aa", depends='["zz"]')
    world.add("mm")
    world.add("zz")
    recipes = world.recipes()
    assert list(recipes).index("zz") < list(recipes).index("aa")
    assert list(with_dependencies(["aa"], recipes)) == ["zz", "aa"]


def test_recipes_of_the_package_stage_are_built_only_when_named(world: World, edit: Edit) -> None:
    world.add("base")
    later = world.add("later", depends='["base"]') / "recipe.toml"
    edit(later, 'licence = "MIT"', 'licence = "MIT"\nstage = "packages"')
    recipes = world.recipes()
    assert list(built_by_default(recipes)) == ["base"]
    assert list(with_dependencies(["later"], recipes)) == ["base", "later"]
    edit(later, 'stage = "packages"', 'stage = "packs"')
    with pytest.raises(RecipeError, match="stage must be one of base, packages"):
        world.recipes()


def test_recipe_cannot_depend_on_one_of_a_later_stage(world: World, edit: Edit) -> None:
    later = world.add("later") / "recipe.toml"
    edit(later, 'licence = "MIT"', 'licence = "MIT"\nstage = "packages"')
    world.add("base", depends='["later"]')
    # A tool has no files in the image, and is built for whoever needs it.
    assert list(world.recipes()) == ["later", "base"]
    later.write_text(later.read_text() + '[[files]]\npath = "/usr/share/x"\nfrom = "x"\n')
    with pytest.raises(RecipeError, match="depends names 'later', which is of a later stage"):
        world.recipes()


def test_circle_of_dependencies_is_refused(world: World) -> None:
    world.add("aa", depends='["bb"]')
    world.add("bb", depends='["aa"]')
    with pytest.raises(RecipeError, match="aa → bb → aa"):
        world.recipes()


def test_unknown_dependency_and_unknown_name_are_told_apart(world: World) -> None:
    world.add("aa")
    with pytest.raises(RecipeError, match="unknown recipe: 'bb'") as caught:
        with_dependencies(["bb"], world.recipes())
    assert "aa" in caught.value.advice
    world.add("cc", depends='["bb"]')
    with pytest.raises(RecipeError, match="depends names an unknown recipe: 'bb'"):
        world.recipes()


def test_two_programs_cannot_install_one_name(world: World) -> None:
    world.add("musl")
    write(world, PROGRAM)
    second = PROGRAM.replace('name = "tool"\nversion', 'name = "rival"\nversion')
    write(world, second, "rival")
    with pytest.raises(RecipeError, match="/usr/bin/tool is already installed by rival"):
        world.recipes()


def test_recipes_of_this_repository_are_valid(repository: Path) -> None:
    recipes = load_recipes(repository / "userland/recipes", repository)
    assert {"musl", "bash", "coreutils"} <= recipes.keys()
    for recipe in recipes.values():
        # A library is tested by the programs that use it.
        if recipe.programs or recipe.files:
            assert list(recipe.folder.glob("test_*.py")), f"{recipe.name} has no test beside it"
