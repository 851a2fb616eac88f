"""The image directory and its manifest."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.userland.conftest import World
from userland.builder.cache import Entry
from userland.builder.errors import BuildError
from userland.builder.image import write_image
from userland.builder.recipe import Build, ImageDirectory, OwnFile, Program, Recipe, Source
from wasmsand.kernel.vfs import ROOT
from wasmsand.machine import Machine, image_at

BUILD = Build("autotools")


def built(world: World, name: str, content: bytes) -> tuple[Recipe, Entry]:
    recipe = Recipe(
        name=name,
        version="1.0",
        summary="a test",
        licence="MIT",
        folder=world.recipes_folder / name,
        source=Source(name, ("trixie",), f"{name}_1.0.orig.tar.gz", "a" * 64),
        build=BUILD,
        programs=(Program(name, name, (name, f"{name}2"), False, None, "O1"),),
        depends=(),
    )
    with world.cache.scratch(name) as scratch:
        made = scratch / "out"
        made.mkdir()
        (made / f"{name}.wasm").write_bytes(content)
        (made / "licences").mkdir()
        (made / "licences/COPYING").write_text(f"terms of {name}\n")
        return recipe, world.cache.publish(name, "k" * 64, made, {})


@pytest.mark.parametrize("place", ["program", "file"])
def test_a_file_that_names_the_builders_directory_is_refused(
    world: World, tmp_path: Path, place: str
) -> None:
    leak = b"built in " + bytes(world.cache.root) + b"/work"
    recipe, entry = built(world, "zed", leak if place == "program" else b"clean")
    if place == "file":
        (entry.folder / "files/etc").mkdir(parents=True)
        (entry.folder / "files/etc/zed").write_bytes(leak)
    with pytest.raises(BuildError, match="names the builder's directory"):
        write_image(tmp_path / "image", [(recipe, entry)])
    assert not (tmp_path / "image").exists()


def test_manifest_describes_every_program(world: World, tmp_path: Path) -> None:
    image = tmp_path / "image"
    assert write_image(image, [built(world, "zed", b"zz"), built(world, "abc", b"a")])
    manifest = json.loads((image / "manifest.json").read_text())
    assert manifest["format"] == 4
    assert [program["name"] for program in manifest["programs"]] == ["abc", "zed"]
    assert manifest["programs"][1] == {
        "name": "zed",
        "version": "1.0",
        "licence": "MIT",
        "source": "zed 1.0 (Debian source package zed, zed_1.0.orig.tar.gz, sha256 "
        + "a" * 64
        + ")",
        "file": "zed.wasm",
        "sha256": hashlib.sha256(b"zz").hexdigest(),
        "size": 2,
        "names": ["/usr/bin/zed", "/usr/bin/zed2"],
    }
    assert (image / "zed.wasm").read_bytes() == b"zz"
    assert (image / "licences/zed/COPYING").read_text() == "terms of zed\n"


def test_image_is_replaced_whole_and_only_when_it_changes(world: World, tmp_path: Path) -> None:
    image = tmp_path / "image"
    old = [built(world, "tool", b"old"), built(world, "gone", b"x")]
    assert write_image(image, old)
    assert not write_image(image, old)
    assert write_image(image, [built(world, "tool", b"new")])
    assert sorted(path.name for path in image.iterdir()) == [
        "LICENCES.md",
        "files.bin",
        "licences",
        "manifest.json",
        "tool.wasm",
    ]
    assert (image / "tool.wasm").read_bytes() == b"new"
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("image")) == [
        "image"
    ]


def test_damaged_image_is_repaired(world: World, tmp_path: Path) -> None:
    image = tmp_path / "image"
    pair = built(world, "tool", b"content")
    write_image(image, [pair])
    (image / "tool.wasm").write_bytes(b"cut")
    assert write_image(image, [pair])
    assert (image / "tool.wasm").read_bytes() == b"content"


def test_module_changed_in_the_cache_does_not_reach_the_image(world: World, tmp_path: Path) -> None:
    image = tmp_path / "image"
    recipe, entry = built(world, "tool", b"content")
    write_image(image, [(recipe, entry)])
    (image / "manifest.json").unlink()
    (entry.folder / "tool.wasm").write_bytes(b"CONTENT")
    with pytest.raises(BuildError, match="was changed after it was built"):
        write_image(image, [(recipe, entry)])
    assert (image / "tool.wasm").read_bytes() == b"content"


def with_files(world: World, name: str, files: dict[str, bytes]) -> tuple[Recipe, Entry]:
    recipe, entry = built(world, name, b"module")
    for path, content in files.items():
        (entry.folder / "files" / path).parent.mkdir(parents=True, exist_ok=True)
        (entry.folder / "files" / path).write_bytes(content)
    return recipe, entry


def test_other_files_lie_in_one_file_and_equal_ones_only_once(world: World, tmp_path: Path) -> None:
    image = tmp_path / "image"
    recipe, entry = with_files(world, "tool", {"etc/a": b"same", "etc/b": b"same", "etc/c": b"c"})
    (entry.folder / "files/etc/a").chmod(0o755)
    (entry.folder / "files/etc/b").chmod(0o644)
    (entry.folder / "files/etc/c").chmod(0o600)
    (entry.folder / "files/etc/link").symlink_to("a")
    write_image(image, [(recipe, entry)])
    manifest = json.loads((image / "manifest.json").read_text())
    assert (image / "files.bin").read_bytes() == b"samec"
    assert manifest["files"] == [
        ["/etc/a", 0o755, 0, 4],
        ["/etc/b", 0o644, 0, 4],
        ["/etc/c", 0o600, 4, 1],
    ]
    assert manifest["links"] == [["/etc/link", "a"]]


def test_deep_directories_are_listed_apart(world: World, tmp_path: Path) -> None:
    files = {
        "etc/conf": b"0",
        "usr/share/zone/Area/City": b"1",
        "usr/share/zone/Area/In/Town": b"2",
        "usr/share/zone/UTC": b"3",
    }
    recipe, entry = with_files(world, "tool", files)
    (entry.folder / "files/usr/share/zone/Zulu").symlink_to("UTC")
    write_image(tmp_path / "image", [(recipe, entry)])
    manifest = json.loads((tmp_path / "image/manifest.json").read_text())
    assert [file[0] for file in manifest["files"]] == ["/etc/conf"]
    (tree,) = manifest["trees"]
    assert (tree["path"], tree["inodes"], tree["subdirs"]) == ("/usr/share/zone", 6, 1)
    offset, size = tree["listing"]
    contents = (tmp_path / "image/files.bin").read_bytes()
    listing = json.loads(contents[offset : offset + size])
    assert hashlib.sha256(contents).hexdigest() == manifest["contents"]["sha256"]
    assert [file[0] for file in listing["files"]] == [
        "/usr/share/zone/Area/City",
        "/usr/share/zone/Area/In/Town",
        "/usr/share/zone/UTC",
    ]
    assert listing["links"] == [["/usr/share/zone/Zulu", "UTC"]]


def test_a_deep_directory_with_a_program_is_not_listed_apart(world: World, tmp_path: Path) -> None:
    files = {"usr/libexec/tool/script": b"1", "usr/libexec/other/script": b"2"}
    recipe, entry = with_files(world, "tool", files)
    helper = Program("helper", "helper", ("/usr/libexec/tool/helper",), False, None, "O1")
    (entry.folder / "helper.wasm").write_bytes(b"h")
    measured = {**entry.files, "helper.wasm": (1, hashlib.sha256(b"h").hexdigest())}
    pair = (
        replace(recipe, programs=(*recipe.programs, helper)),
        replace(entry, files=measured),
    )
    write_image(tmp_path / "image", [pair])
    manifest = json.loads((tmp_path / "image/manifest.json").read_text())
    assert [file[0] for file in manifest["files"]] == ["/usr/libexec/tool/script"]
    assert [tree["path"] for tree in manifest["trees"]] == ["/usr/libexec/other"]


def test_two_recipes_cannot_install_one_file(world: World, tmp_path: Path) -> None:
    pairs = [with_files(world, name, {"etc/conf": b"x"}) for name in ("one", "two")]
    with pytest.raises(BuildError, match="two installs /etc/conf, as one does"):
        write_image(tmp_path / "image", pairs)


def test_file_cannot_take_the_name_of_a_program(world: World, tmp_path: Path) -> None:
    pair = with_files(world, "tool", {"usr/bin/tool": b"x"})
    with pytest.raises(BuildError, match="tool installs /usr/bin/tool, a program's name"):
        write_image(tmp_path / "image", [pair])


def test_list_of_licences_says_where_sources_come_from(world: World, tmp_path: Path) -> None:
    write_image(tmp_path / "image", [built(world, "tool", b"x")])
    text = (tmp_path / "image/LICENCES.md").read_text()
    assert (
        f"| tool | 1.0 | MIT | Debian source package tool | tool_1.0.orig.tar.gz | `{'a' * 64}` |"
        in text
    )


def test_a_prepared_program_is_its_module_and_a_file_of_memory(
    world: World, tmp_path: Path
) -> None:
    recipe, entry = built(world, "tool", b"module")
    programs = (replace(recipe.programs[0], plain="/usr/lib/tool/plain"),)
    recipe = replace(recipe, programs=programs)
    with world.cache.scratch("stored") as scratch:
        made = scratch / "out"
        made.mkdir()
        (made / "tool.image").write_bytes(b"memory")
        (made / "memory.json").write_text('{"first": 4, "entry": "_resume"}')
        stored = world.cache.publish("stored-tool", "s" * 64, made, {})
    image = tmp_path / "image"
    assert write_image(image, [(recipe, entry)], {"tool": stored})
    (program,) = json.loads((image / "manifest.json").read_text())["programs"]
    assert (program["file"], program["names"]) == ("tool.wasm", ["/usr/lib/tool/plain"])
    assert program["prepared"] == {
        "names": ["/usr/bin/tool", "/usr/bin/tool2"],
        "file": "tool.image",
        "sha256": hashlib.sha256(b"memory").hexdigest(),
        "size": 6,
        "first": 4,
        "entry": "_resume",
    }
    assert (image / "tool.wasm").read_bytes() == b"module"
    assert (image / "tool.image").read_bytes() == b"memory"
    assert not write_image(image, [(recipe, entry)], {"tool": stored})
    (image / "tool.image").unlink()
    assert write_image(image, [(recipe, entry)], {"tool": stored})


def test_own_files_and_directories_of_a_recipe_need_no_build(world: World, tmp_path: Path) -> None:
    recipe, entry = with_files(world, "tool", {"usr/lib/tool/built": b"1"})
    own = tmp_path / "own.py"
    own.write_bytes(b"own")
    recipe = replace(
        recipe,
        own_files=(OwnFile("/usr/lib/tool/own.py", own),),
        directories=(
            ImageDirectory("/etc/tool", "user"),
            ImageDirectory("/usr/lib/tool/a/b", "user"),
            ImageDirectory("/usr/lib/tool/c", "root"),
        ),
    )
    write_image(tmp_path / "image", [(recipe, entry)])
    manifest = json.loads((tmp_path / "image/manifest.json").read_text())
    assert manifest["directories"] == [["/etc/tool", 1000]]
    machine = Machine(image=image_at(tmp_path / "image"))
    try:
        assert machine.files.read("/usr/lib/tool/own.py") == b"own"
        namespace = machine.kernel.namespace
        owners = [
            namespace.stat(namespace.resolve(ROOT, namespace.root, path)).uid
            for path in (b"/etc/tool", b"/usr/lib/tool/a", b"/usr/lib/tool/a/b", b"/usr/lib/tool/c")
        ]
    finally:
        machine.close()
    assert owners == [1000, 0, 1000, 0]


def test_a_program_that_could_not_be_stored_has_all_its_names(world: World, tmp_path: Path) -> None:
    recipe, entry = built(world, "tool", b"plain")
    programs = (replace(recipe.programs[0], plain="/usr/lib/tool/plain"),)
    image = tmp_path / "image"
    assert write_image(image, [(replace(recipe, programs=programs), entry)])
    found = json.loads((image / "manifest.json").read_text())["programs"]
    assert [module["names"] for module in found] == [
        ["/usr/bin/tool", "/usr/bin/tool2", "/usr/lib/tool/plain"]
    ]
