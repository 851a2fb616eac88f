"""A recipe built for this machine: libraries, makefiles, staged files, the same everywhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.userland.conftest import World, recipe_head, source_tarball
from userland.builder.build import Workshop
from userland.builder.cache import Entry
from userland.builder.commands import Commands
from userland.builder.errors import BuildError
from userland.builder.jobserver import JobServer
from userland.builder.keys import recipe_keys
from userland.builder.progress import PlainProgress
from userland.builder.schedule import build_recipes
from userland.builder.target_native import NativeTarget
from userland.builder.toolchain import find_toolchain
from userland.builder.wasm_opt import InstalledWasmOpt

# Needs the compiler that `make build` installs.
pytestmark = pytest.mark.userland

LIBRARY = {
    "COPYING": "free\n",
    "twice.h": "int twice(int);\n",
    "twice.c": '#include "twice.h"\nint twice(int x) { return 2 * x; }\n',
    "Makefile": """
libtwice.a: twice.c
	$(CC) $(CFLAGS) -c twice.c && $(AR) rc $@ twice.o
install:
	mkdir -p $(DESTDIR)/usr/include $(DESTDIR)/usr/lib
	cp twice.h $(DESTDIR)/usr/include && cp libtwice.a $(DESTDIR)/usr/lib
""",
}
LIBRARY_BUILD = """
[build]
system = "make"
make = ["libtwice.a"]
install = ["install"]
library = "stage/usr"
"""

TOOL = {
    "doc/TERMS": "also free\n",
    "data/deep/text": "data\n",
    "script.in": "#!/bin/sh\necho @WORD@\n",
    "tool.c": "#include <stdio.h>\n#include <twice.h>\n"
    'int main(void) { printf("%d %s\\n", twice(FACTOR), WHAT); }\n',
    "Makefile": """
tool: tool.c
	$(CC) $(CFLAGS) -DWHAT='$(WHAT)' tool.c -o $@ $(LDFLAGS) -ltwice
""",
}
TOOL_BUILD = """
[build]
system = "make"
before = ["sed s/@WORD@/word/ script.in > script; chmod 700 script"]
cflags = ["-DFACTOR=21"]
guest_cflags = ["--not-for-this-machine"]
make = ["tool", 'WHAT="$SAID"']
after = ["ln -s text data/deep/again"]
variables = { SAID = "times" }

[[programs]]
name = "tool"
binary = "tool"
names = ["tool", "/usr/libexec/parts/tool"]

[[files]]
path = "/usr/bin/script"
from = "script"

[[files]]
path = "/usr/share/tool"
from = "data"
mode = 0o600

[[links]]
path = "/usr/bin/alias"
to = "script"
"""


def add(
    world: World, name: str, files: Mapping[str, str], build: str, depends: str, top: str = ""
) -> None:
    tarball = source_tarball(world.mirror, name, "1.0", files)
    folder = world.recipes_folder / name
    folder.mkdir()
    head = recipe_head(name, "1.0", depends, tarball)
    (folder / "recipe.toml").write_text(top + head + build)


def build(world: World, *, optimised: bool = True) -> dict[str, Entry]:
    commands = Commands()
    toolchain = find_toolchain(commands)
    assert toolchain is not None, "make build installs it"
    target = NativeTarget(toolchain, optimised=optimised)
    recipes = {name: recipe for name, recipe in world.recipes().items() if name != "musl"}
    server = JobServer(2)
    shop = Workshop(
        world.cache,
        commands,
        target,
        InstalledWasmOpt(Path("/nonexistent"), Path("/nonexistent")),
        2,
        server,
        PlainProgress(world.console),
    )
    try:
        return build_recipes(recipes, recipe_keys(recipes, target), shop)
    finally:
        server.close()


@pytest.fixture
def two(world: World) -> World:
    """A library, and a program with files that uses it."""
    world.add("musl")
    add(world, "twice", LIBRARY, LIBRARY_BUILD, '["musl"]')
    add(world, "tool", TOOL, TOOL_BUILD, '["musl", "twice"]', 'licence_files = ["doc/TERMS"]\n')
    return world


def test_program_finds_its_library_and_its_variables(two: World) -> None:
    files = build(two)["tool"].folder / "files"
    for path in ("usr/bin/tool", "usr/libexec/parts/tool"):
        assert subprocess.check_output([files / path]) == b"42 times\n"


def test_files_and_links_lie_under_their_paths_with_usual_modes(two: World) -> None:
    files = build(two)["tool"].folder / "files"
    assert subprocess.check_output([files / "usr/bin/alias"]) == b"word\n"
    assert os.readlink(files / "usr/bin/alias") == "script"
    assert (files / "usr/bin/script").stat().st_mode & 0o7777 == 0o755
    assert (files / "usr/share/tool/deep/text").stat().st_mode & 0o7777 == 0o600
    assert os.readlink(files / "usr/share/tool/deep/again") == "text"


def test_licence_text_is_kept_wherever_the_recipe_says_it_is(two: World) -> None:
    entries = build(two)
    assert (entries["tool"].folder / "licences/TERMS").read_text() == "also free\n"
    assert (entries["twice"].folder / "licences/COPYING").read_text() == "free\n"


def test_source_without_licence_text_is_refused(world: World) -> None:
    world.add("musl")
    files = {name: text for name, text in LIBRARY.items() if name != "COPYING"}
    add(world, "twice", files, LIBRARY_BUILD, '["musl"]')
    with pytest.raises(BuildError, match="no licence text") as caught:
        build(world)
    assert "licence_files" in caught.value.advice


def test_second_build_comes_from_the_cache_beside_those_of_the_sandbox(two: World) -> None:
    first = build(two)["tool"].folder
    assert build(two)["tool"].folder == first
    assert first.parent.name == "native-tool"


def test_missing_file_is_named(world: World) -> None:
    world.add("musl")
    add(world, "twice", LIBRARY, LIBRARY_BUILD, '["musl"]')
    broken = TOOL_BUILD.replace('from = "data"', 'from = "dada"')
    add(world, "tool", TOOL, broken, '["musl", "twice"]', 'licence_files = ["doc/TERMS"]\n')
    with pytest.raises(BuildError, match="tool: the build left no dada"):
        build(world)


def test_unoptimised_programs_are_others_and_do_the_same(world: World) -> None:
    world.add("musl")
    code = "#include <stdio.h>\nint main(void) {\n#ifdef __OPTIMIZE__\n"
    code += 'puts("optimised");\n#endif\nreturn 0; }\n'
    recipe = """
[build]
system = "make"
make = ["tool"]

[[programs]]
name = "tool"
binary = "tool"
"""
    makefile = "tool: tool.c\n\t$(CC) $(CFLAGS) tool.c -o $@\n"
    files = {"COPYING": "free\n", "Makefile": makefile, "tool.c": code}
    add(world, "tool", files, recipe, '["musl"]')
    outputs = [build(world, optimised=level)["tool"] for level in (True, False)]
    said = [
        subprocess.run(
            [entry.folder / "files/usr/bin/tool"], capture_output=True, check=True
        ).stdout
        for entry in outputs
    ]
    assert said == [b"optimised\n", b""]
    assert outputs[0].key != outputs[1].key
