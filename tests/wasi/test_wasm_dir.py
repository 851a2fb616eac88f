"""`wasm_dir`: the WebAssembly files of a host directory are commands."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.command import wasmsand
from tests.wasi.zig import compiled
from wasmsand import Sandbox, WasmDirError
from wasmsand.engine.wasmtime.bindings import wat_to_wasm

MISSING = """(module (import "env" "teleport" (func))
  (import "wasi_snapshot_preview1" "fd_fly" (func))
  (memory (export "memory") 1) (func (export "_start")))"""
BOTH = """(module (import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))
  (import "linux" "syscall" (func (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1) (func (export "_start")))"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    for name, program in (("copy", "copy"), ("true-cmd", "exit_code"), ("false-cmd", "crash")):
        shutil.copyfile(compiled(program), tmp_path / f"{name}.wasm")
    (tmp_path / "notes.txt").write_text("not a program")
    (tmp_path / ".hidden.wasm").write_bytes(b"not looked at")
    (tmp_path / "folder.wasm").mkdir()
    return tmp_path


def test_every_wasm_file_is_a_command_named_by_its_file(programs: Path) -> None:
    with Sandbox(wasm_dir=programs) as sandbox:
        assert sandbox.commands.run("ls /usr/local/bin").stdout == "copy\nfalse\ntrue\n"
        assert sandbox.commands.run("echo hi | copy").stdout == "hi\n"
        # A file of the directory comes before the image's program of the same name.
        assert sandbox.commands.run(["true", "5"]).exit_code == 5
        assert sandbox.commands.run("type -P true").stdout == "/usr/local/bin/true\n"


def test_programs_cost_no_room_and_belong_to_root(programs: Path) -> None:
    with Sandbox(wasm_dir=str(programs), fs_limit_bytes=4096) as sandbox:
        listed = sandbox.commands.run(
            "stat -c '%U %a' /usr/local/bin/copy; : > /usr/local/bin/copy"
        )
        assert listed.stdout == "root 755\n"
        assert "Permission denied" in listed.stderr
        assert sandbox.commands.run("cmp /usr/local/bin/copy /usr/local/bin/copy").exit_code == 0


def test_a_file_that_changes_is_another_program_for_the_next_sandbox(programs: Path) -> None:
    with Sandbox(wasm_dir=programs) as before, Sandbox(wasm_dir=programs) as unused:
        assert before.commands.run("echo as it was | copy").stdout == "as it was\n"
        shutil.copyfile(compiled("exit_code"), programs / "copy.wasm")
        os.utime(programs / "copy.wasm", ns=(1, 1))
        with Sandbox(wasm_dir=programs) as after:
            assert after.commands.run(["copy", "4"]).exit_code == 4
        assert before.commands.run("echo as it was | copy").stdout == "as it was\n"
        assert unused.commands.run("echo as it was | copy").stdout == "as it was\n"


def test_a_file_that_changes_before_it_was_ever_read_is_an_io_error(programs: Path) -> None:
    with Sandbox(wasm_dir=programs) as sandbox:
        os.utime(programs / "true-cmd.wasm", ns=(1, 1))
        result = sandbox.commands.run("/usr/local/bin/true")
        assert result.exit_code == 126
        assert "Input/output error" in result.stderr


@pytest.mark.parametrize(
    ("wasm", "reason"),
    [
        (
            wat_to_wasm(MISSING),
            "unknown import: env.teleport, wasi_snapshot_preview1.fd_fly",
        ),
        (wat_to_wasm(BOTH), "imports from two ABIs"),
        (b"#!/bin/sh", "not a WebAssembly module"),
    ],
    ids=["missing", "both", "script"],
)
def test_a_file_that_cannot_run_is_named_when_the_sandbox_is_made(
    tmp_path: Path, wasm: bytes, reason: str
) -> None:
    (tmp_path / "bad.wasm").write_bytes(wasm)
    with pytest.raises(WasmDirError) as raised:
        Sandbox(wasm_dir=tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / 'bad.wasm'}: {reason}")
    assert raised.value.path == str(tmp_path / "bad.wasm")


def test_a_missing_directory_and_a_name_given_twice_are_errors(programs: Path) -> None:
    with pytest.raises(WasmDirError, match="No such file or directory"):
        Sandbox(wasm_dir=programs / "nowhere")
    shutil.copyfile(programs / "copy.wasm", programs / "true.wasm")
    with pytest.raises(
        WasmDirError, match=r"has the same command name \(`true`\) as true-cmd\.wasm"
    ):
        Sandbox(wasm_dir=programs)


@pytest.mark.parametrize("value", [7, b"/tmp", ["x"]])
def test_a_directory_of_another_type_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError, match="wasm_dir"):
        Sandbox(wasm_dir=value)  # type: ignore[arg-type]


def test_the_command_line_takes_a_directory(programs: Path) -> None:
    done = wasmsand("run", "--wasm-dir", str(programs), "echo typed | copy")
    assert (done.stdout, done.returncode) == (b"typed\n", 0)
    (programs / "bad.wasm").write_bytes(wat_to_wasm(MISSING))
    failed = wasmsand("run", "--wasm-dir", str(programs), "true")
    assert failed.returncode != 0
    assert b"bad.wasm: unknown import: env.teleport" in failed.stderr
