"""A program with a checkpoint becomes a program of the image that starts there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.userland.conftest import World
from userland.builder.cache import Entry
from userland.builder.errors import BadModule, BuildError
from userland.builder.image import compile_ahead, write_image
from userland.builder.preinitialise import store_programs
from userland.builder.recipe import Build, Program, Recipe, Source
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.machine import CommandRequest, Machine, image_at, image_programs

PLAIN = "/usr/libexec/tool-plain"


def tool(before_the_checkpoint: str = "", *, exported: str = '(export "private")') -> bytes:
    """A program that exits with 42 if it was prepared, and with 7 otherwise."""
    return wat_to_wasm(f"""(module
      (import "linux" "syscall"
        (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 1)
      (global (export "__stack_pointer") (mut i32) (i32.const 4096))
      (global (export "__signal_flag") i32 (i32.const 4096))
      (global $private {exported} (mut i32) (i32.const 0))
      (func (export "__signal_run"))
      (func $call (param i32 i32) (result i32)
        (call $syscall (local.get 0) (local.get 1)
          (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
      (func (export "_start")
        (if (i32.eq (call $call (i32.const 1004) (i32.const 0)) (i32.const 1))
          (then
            (i32.store (i32.const 8192) (i32.const 40))
            (global.set $private (i32.const 2))
            {before_the_checkpoint}
            (drop (call $call (i32.const 1004) (i32.const 1)))))
        (drop (call $call (i32.const 94) (i32.const 7))))
      (func (export "_resume")
        (drop (call $call (i32.const 94)
          (i32.add (i32.load (i32.const 8192)) (global.get $private))))))""")


def built(world: World, module: bytes) -> tuple[Recipe, Entry]:
    recipe = Recipe(
        name="tool",
        version="1.0",
        summary="a test",
        licence="MIT",
        folder=world.recipes_folder / "tool",
        source=Source("tool", ("trixie",), "tool_1.0.orig.tar.gz", "a" * 64),
        build=Build("autotools"),
        programs=(Program("tool", "tool", ("tool",), False, None, "O1", plain=PLAIN),),
        depends=(),
    )
    with world.cache.scratch("tool") as scratch:
        made = scratch / "out"
        made.mkdir()
        (made / "tool.wasm").write_bytes(module)
        return recipe, world.cache.publish("tool", "k" * 64, made, {})


def test_a_variable_that_cannot_be_read_fails_the_build(world: World) -> None:
    with pytest.raises(BadModule, match="does not export its mutable globals 2"):
        store_programs([built(world, tool(exported=""))], world.cache, lambda step: None)


def exit_code(image: Path, program: str) -> int:
    machine = Machine(image=image_at(image))
    try:
        return machine.run(CommandRequest((program,), {}, "/")).exit_code
    finally:
        machine.close()


def test_names_start_prepared_and_the_plain_path_from_the_beginning(
    world: World, tmp_path: Path
) -> None:
    pair = built(world, tool())
    stored = store_programs([pair], world.cache, lambda step: None)
    image = tmp_path / "image"
    write_image(image, [pair], stored)
    assert exit_code(image, "/usr/bin/tool") == 42
    assert exit_code(image, PLAIN) == 7


def test_both_are_one_module_that_is_shipped_once(world: World, tmp_path: Path) -> None:
    pair = built(world, tool())
    image = tmp_path / "image"
    write_image(image, [pair], store_programs([pair], world.cache, lambda step: None))
    assert sorted(path.name for path in image.glob("tool*")) == ["tool.image", "tool.wasm"]
    (program,) = image_programs(image)
    assert program.names == (PLAIN,)
    assert program.prepared is not None
    assert program.prepared.names == ("/usr/bin/tool",)
    steps: list[str] = []
    assert compile_ahead(image, steps.append) <= 1
    assert compile_ahead(image, steps.append) == 0


def test_a_program_is_prepared_once(world: World) -> None:
    pair = built(world, tool())
    steps: list[str] = []
    first = store_programs([pair], world.cache, steps.append)
    assert store_programs([pair], world.cache, steps.append) == first
    assert steps == ["prepare tool"]


def test_programs_without_a_checkpoint_are_left_alone(world: World) -> None:
    recipe, entry = built(world, tool())
    programs = tuple(replace(program, plain=None) for program in recipe.programs)
    steps: list[str] = []
    assert (
        store_programs([(replace(recipe, programs=programs), entry)], world.cache, steps.append)
        == {}
    )
    assert steps == []


def test_a_program_that_cannot_be_stored_fails_the_build(world: World) -> None:
    pipe = "(drop (call $call (i32.const 59) (i32.const 12288)))"
    with pytest.raises(BuildError, match=r"tool: .*cannot be stored: open files: 3, 4"):
        store_programs([built(world, tool(pipe))], world.cache, lambda step: None)


def test_a_program_without_its_checkpoint_fails_the_build(world: World) -> None:
    leave = "(drop (call $call (i32.const 94) (i32.const 5)))"
    with pytest.raises(BuildError, match="ended with 5 before it reached a checkpoint"):
        store_programs([built(world, tool(leave))], world.cache, lambda step: None)
