"""The table of WASI functions: complete, of the right types, with a number for every error."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path

import pytest

from wasmsand.abi.wasi import rights
from wasmsand.abi.wasi.errno import NUMBERS, NotCapable, WasiErrno, error_number
from wasmsand.abi.wasi.rights import Right
from wasmsand.abi.wasi.structs import (
    EVENT,
    FDSTAT,
    FILESTAT,
    FILESTAT_UNSTABLE,
    PRESTAT,
    SUBSCRIPTION,
    SUBSCRIPTION_UNSTABLE,
)
from wasmsand.abi.wasi.table import FUNCTIONS, HOST_FUNCTIONS
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.engine import WasmtimeEngine
from wasmsand.kernel.errno import Errno, KernelError, PathEscapes

# The types in the specification, independent of the table: i is i32, I is i64.
PREVIEW_1 = {
    "args_get": "ii", "args_sizes_get": "ii", "environ_get": "ii", "environ_sizes_get": "ii",
    "clock_res_get": "ii", "clock_time_get": "iIi", "fd_advise": "iIIi", "fd_allocate": "iII",
    "fd_close": "i", "fd_datasync": "i", "fd_fdstat_get": "ii", "fd_fdstat_set_flags": "ii",
    "fd_fdstat_set_rights": "iII", "fd_filestat_get": "ii", "fd_filestat_set_size": "iI",
    "fd_filestat_set_times": "iIIi", "fd_pread": "iiiIi", "fd_prestat_get": "ii",
    "fd_prestat_dir_name": "iii", "fd_pwrite": "iiiIi", "fd_read": "iiii", "fd_readdir": "iiiIi",
    "fd_renumber": "ii", "fd_seek": "iIii", "fd_sync": "i", "fd_tell": "ii", "fd_write": "iiii",
    "path_create_directory": "iii", "path_filestat_get": "iiiii",
    "path_filestat_set_times": "iiiiIIi", "path_link": "iiiiiii", "path_open": "iiiiiIIii",
    "path_readlink": "iiiiii", "path_remove_directory": "iii", "path_rename": "iiiiii",
    "path_symlink": "iiiii", "path_unlink_file": "iii", "poll_oneoff": "iiii", "proc_exit": "i",
    "proc_raise": "i", "sched_yield": "", "random_get": "ii", "sock_accept": "iii",
    "sock_recv": "iiiiii", "sock_send": "iiiii", "sock_shutdown": "ii",
}  # fmt: skip


def test_every_function_of_preview_1_exists_with_its_type() -> None:
    assert {row.name: row.parameters for row in FUNCTIONS} == PREVIEW_1
    assert [row.name for row in FUNCTIONS if not row.results] == ["proc_exit"]


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.name)
def test_a_handler_takes_the_parameters_of_its_function(row: object) -> None:
    found = next(entry for entry in FUNCTIONS if entry is row)
    for handler in filter(None, (found.handler, found.unstable)):
        assert len(inspect.signature(handler).parameters) == len(found.parameters) + 1


def test_wasi_unstable_has_all_functions_but_sock_accept() -> None:
    by_module: dict[str, set[str]] = {}
    for function in HOST_FUNCTIONS:
        by_module.setdefault(function.module, set()).add(function.name)
    assert by_module["wasi_snapshot_preview1"] - by_module["wasi_unstable"] == {"sock_accept"}


def test_every_error_of_the_kernel_has_a_number() -> None:
    assert set(NUMBERS) == set(Errno)
    assert len(WasiErrno) == 77
    assert error_number(KernelError(Errno.ENOENT)) == 44
    assert error_number(KernelError(Errno.EXDEV)) == 75
    assert error_number(PathEscapes()) == error_number(NotCapable()) == 76


def test_rights_are_thirty_bits_and_a_directory_has_none_of_a_file() -> None:
    bits = [value for name, value in vars(Right).items() if name.isupper()]
    assert sorted(bits) == [1 << place for place in range(30)]
    assert sum(bits) == rights.ALL
    assert not rights.DIRECTORY & (rights.WRITING | Right.FD_READ | Right.FD_SEEK)


def test_layouts_have_the_sizes_of_the_specification() -> None:
    assert [layout.size for layout in (PRESTAT, FDSTAT, FILESTAT, EVENT, SUBSCRIPTION)] == [
        8, 24, 64, 32, 48,
    ]  # fmt: skip
    assert (FILESTAT_UNSTABLE.size, SUBSCRIPTION_UNSTABLE.size) == (56, 56)


def test_a_module_that_imports_everything_can_be_loaded(tmp_path: Path) -> None:
    engine = WasmtimeEngine(cache_directory=tmp_path)
    engine.offer(HOST_FUNCTIONS)
    types = {"i": "i32", "I": "i64"}
    imports = "".join(
        f'(import "wasi_snapshot_preview1" "{name}" (func (param '
        f"{' '.join(types[letter] for letter in letters)})"
        f"{'' if name == 'proc_exit' else '(result i32)'}))"
        for name, letters in PREVIEW_1.items()
    )
    wasm = wat_to_wasm(f'(module {imports} (memory (export "memory") 1) (func (export "_start")))')
    module = engine.load(hashlib.sha256(wasm).hexdigest(), lambda: wasm)
    assert len(module.imports) == len(PREVIEW_1)
