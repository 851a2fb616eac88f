"""The inspection of modules before they go into the image."""

from __future__ import annotations

from pathlib import Path

import pytest

from userland.builder.errors import BadModule
from userland.builder.finish import inspect, wasm_opt_arguments
from userland.builder.recipe import Program
from userland.builder.wasm_module import summarise

MAGIC = b"\0asm\1\0\0\0"
EXPORTS = ("memory", "_start", "__stack_pointer", "__signal_flag", "__signal_run")
ASYNCIFY = tuple(
    f"asyncify_{name}"
    for name in ("start_unwind", "stop_unwind", "start_rewind", "stop_rewind", "get_state")
)


def name(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def section(kind: int, items: list[bytes]) -> bytes:
    body = bytes([len(items)]) + b"".join(items)
    assert len(body) < 1 << 14
    return bytes([kind, len(body) & 0x7F | 0x80, len(body) >> 7]) + body


def module(
    imports: list[tuple[str, str]], exports: tuple[str, ...] = EXPORTS, custom: str = ""
) -> bytes:
    """A module with only the sections that the inspection reads."""
    functions = [name(space) + name(field) + b"\0\0" for space, field in imports]
    exported = [name(export) + b"\0\0" for export in exports]
    data = MAGIC + section(2, functions) + section(7, exported)
    if custom:
        data += bytes([0, len(custom) + 1]) + name(custom)
    return data


def program(fork: bool = False, pointers: tuple[str, ...] | None = None) -> Program:
    return Program("tool", "tool", ("tool",), fork, pointers, "O2")


def check(tmp_path: Path, data: bytes, fork: bool = False) -> None:
    (tmp_path / "tool.wasm").write_bytes(data)
    inspect(program(fork), tmp_path / "tool.wasm")


def test_summary_reads_all_kinds_of_imports() -> None:
    items = [
        name("a") + name("function") + b"\0\x85\x01",
        name("a") + name("table") + b"\1\x70\x01\x01\x80\x01",
        name("a") + name("memory") + b"\2\x00\x10",
        name("a") + name("global") + b"\3\x7f\x01",
        name("a") + name("tag") + b"\4\0\x01",
        name("b") + name("last") + b"\0\0",
    ]
    summary = summarise(MAGIC + section(2, items) + section(7, [name("x") + b"\3\x80\x01"]))
    assert [field for _, field in summary.imports] == [
        "function", "table", "memory", "global", "tag", "last",
    ]  # fmt: skip
    assert summary.exports == {"x"}


def test_module_of_the_guest_abi_passes(tmp_path: Path) -> None:
    check(tmp_path, module([("linux", "syscall")]))
    forking = [("linux", "syscall"), ("linux", "fork")]
    check(tmp_path, module(forking, EXPORTS + ASYNCIFY), fork=True)


@pytest.mark.parametrize("foreign", [("env", "getxattr"), ("linux", "fork"), ("wasi", "fd_read")])
def test_foreign_import_is_refused_by_name(tmp_path: Path, foreign: tuple[str, str]) -> None:
    with pytest.raises(BadModule, match=r"tool\.wasm imports " + r"\.".join(foreign)):
        check(tmp_path, module([("linux", "syscall"), foreign]))


def test_missing_export_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadModule, match="does not export __signal_run"):
        check(tmp_path, module([("linux", "syscall")], EXPORTS[:-1]))
    with pytest.raises(BadModule, match="does not export asyncify_get_state"):
        check(tmp_path, module([("linux", "syscall")], EXPORTS + ASYNCIFY[:-1]), fork=True)


def test_names_left_in_a_module_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModule, match="custom sections: name"):
        check(tmp_path, module([("linux", "syscall")], custom="name"))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", MAGIC + b"\2\x05\x01\x09"])
def test_a_file_that_is_not_a_module_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadModule):
        check(tmp_path, data)


def test_asyncify_is_only_for_programs_that_fork() -> None:
    linked, finished = Path("in"), Path("out")
    plain = wasm_opt_arguments(program(), linked, finished)
    forking = wasm_opt_arguments(program(fork=True), linked, finished)
    direct = wasm_opt_arguments(program(fork=True, pointers=("launch",)), linked, finished)
    assert "--asyncify" not in plain
    assert "--pass-arg=asyncify-imports@linux.fork" in forking
    assert "--pass-arg=asyncify-ignore-indirect" not in forking
    assert "--pass-arg=asyncify-ignore-indirect" in direct
    assert "--pass-arg=asyncify-addlist@launch" in direct
    for arguments in (plain, forking, direct):
        # Asyncify needs the old exceptions, and wasmtime the new ones: the order matters.
        assert arguments.index("--translate-to-exnref") > arguments.index("-O2")
