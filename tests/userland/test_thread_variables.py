"""Thread-local variables of C++: real objects, made by the toolchain, linked together."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from userland.builder.extension_modules import isolated
from userland.builder.thread_variables import (
    ThreadVariable,
    definitions,
    with_thread_variables,
)
from userland.builder.wasm_module import summarise

LINKER = "wasm-ld-22"
COMPILER = ("clang-22", "--target=wasm32-unknown-unknown", "-nostdlib", "-O1", "-c")
SECTION = '-D_Thread_local=__attribute__((__section__("thread_local")))'

pytestmark = [
    pytest.mark.no_userland,
    pytest.mark.skipif(
        shutil.which(COMPILER[0]) is None or shutil.which(LINKER) is None,
        reason="needs the toolchain",
    ),
]

MODULE = """
namespace pybind11 {
struct loader_life_support {
    static loader_life_support *&tls_current_frame() {
        static thread_local loader_life_support *frame_ptr = nullptr;
        return frame_ptr;
    }
};
int other() { static int frame_pointer = 3; return ++frame_pointer; }
}
extern "C" void *PyInit_fast(void *frame) {
    auto &place = pybind11::loader_life_support::tls_current_frame();
    void *before = place;
    place = (pybind11::loader_life_support *)frame;
    return pybind11::other() > 5 ? before : (void *)&place;
}
"""
FRAME = "_ZZN8pybind1119loader_life_support17tls_current_frameEvE9frame_ptr.a.fast"


def compiled(tree: Path, name: str, text: str, *flags: str) -> Path:
    source = tree / name
    source.write_text(text)
    target = source.with_suffix(".o")
    subprocess.run([*COMPILER, *flags, str(source), "-o", str(target)], check=True)
    return target


def test_variables_of_threads_are_defined_by_the_program(tmp_path: Path) -> None:
    module = isolated(compiled(tmp_path, "fast.cpp", MODULE).read_bytes(), "a.fast")
    data, variables = with_thread_variables(module, "a.fast")
    assert variables == [ThreadVariable(FRAME, 4)]
    changed = tmp_path / "a.fast.o"
    changed.write_bytes(data)
    table = compiled(tmp_path, "table.c", definitions(variables), SECTION)
    program = tmp_path / "program"
    link = [
        LINKER,
        "--no-entry",
        "--no-demangle",
        "--export=PyInit_a.fast",
        "--export=__start_thread_local",
    ]
    link += ["--export=__stop_thread_local", "--fatal-warnings", "-o", str(program), str(changed)]
    alone = subprocess.run(link, capture_output=True, text=True, check=False)
    assert f"undefined symbol: {FRAME}" in alone.stderr
    subprocess.run([*link, str(table)], check=True)
    assert "PyInit_a.fast" in summarise(program.read_bytes()).exports


def test_an_object_without_such_variables_stays_as_it_is(tmp_path: Path) -> None:
    data = compiled(tmp_path, "plain.c", "int frame_ptr; int f(void) { return ++frame_ptr; }")
    assert with_thread_variables(data.read_bytes(), "plain") == (data.read_bytes(), [])
