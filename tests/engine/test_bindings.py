"""The C declarations and the library they are used with."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys

import pytest

from wasmsand.engine.wasmtime.bindings import WasmtimeError, ffi, wat_to_wasm
from wasmsand.engine.wasmtime.c_declarations import GENERATED, generated_text


def test_the_generated_types_are_up_to_date() -> None:
    with contextlib.redirect_stdout(io.StringIO()):  # cffi prints what it does
        expected = generated_text()
    assert GENERATED.read_text(encoding="ascii") == expected


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("wasmtime_instance_t", 16),
        ("wasmtime_func_t", 16),
        ("wasmtime_memory_t", 24),
        ("wasmtime_global_t", 24),
        ("wasmtime_extern_t", 32),
        ("wasmtime_val_t", 32),
        ("syscall_values_t", 7 * 16),
    ],
)
def test_structs_have_the_layout_of_the_c_library(name: str, size: int) -> None:
    assert ffi.sizeof(name) == size


def test_errors_of_the_library_are_raised_with_their_text() -> None:
    with pytest.raises(WasmtimeError, match="expected"):
        wat_to_wasm("(module (nonsense))")


def test_the_wasmtime_package_is_not_imported() -> None:
    """Its bindings take longer to import than all of ours."""
    script = "import sys, wasmsand.engine.wasmtime.engine; print('wasmtime' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "False\n"
