"""Extension modules as isolated objects: real objects, made by the toolchain, linked together."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from userland.builder.errors import BadModule
from userland.builder.extension_modules import (
    defined_symbols,
    isolated,
    link_module,
    module_table,
    take_modules,
)
from userland.builder.wasm_module import summarise

LINKER = "wasm-ld-22"
COMPILER = ("clang-22", "--target=wasm32-unknown-unknown", "-nostdlib", "-O1", "-c")

pytestmark = pytest.mark.skipif(
    shutil.which(COMPILER[0]) is None or shutil.which(LINKER) is None, reason="needs the toolchain"
)

MODULE = """
extern int shared_by_all(int);
int state = {value};
static int table[] = {{1, 2, {value}}};
__attribute__((visibility("default"))) int helper(int x) {{ return table[x & 1] + state; }}
__attribute__((weak)) int overridable(void) {{ return {value}; }}
int bundled(void);
int PyInit__utils(void) {{ return shared_by_all(helper(1) + overridable() + bundled()); }}
"""
INLINE = """
template <class T> struct Box {{ static T value; T get() {{ return value; }} }};
template <class T> T Box<T>::value = {value};
inline int merged() {{ return {value}; }}
extern "C" int bundled(void) {{ Box<int> box; int (*f)() = merged; return box.get() + f(); }}
"""


def compiled(tree: Path, name: str, text: str) -> Path:
    source = tree / name
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(text)
    target = source.with_suffix(".o")
    subprocess.run([*COMPILER, str(source), "-o", str(target)], check=True)
    return target


def linked(tree: Path, value: int) -> Path:
    """A module `_utils` that uses a bundled archive; both have symbols of everyday names."""
    module = compiled(tree, "utils.c", MODULE.format(value=value))
    bundle = compiled(tree, "bundle.cpp", INLINE.format(value=value))
    archive = tree / "libbundle.a"
    subprocess.run(["llvm-ar-22", "rcs", str(archive), str(bundle)], check=True)
    output = tree / "_utils.so"
    arguments = ["-shared", "-fPIC", "-o", str(output), str(module)]
    arguments += ["-Wl,--start-group", str(archive), "-Wl,--end-group", "-lm", "-Wl,--as-needed"]
    link_module(arguments, LINKER, tree)
    return output


def test_only_the_entry_point_of_an_isolated_object_can_be_referred_to(tmp_path: Path) -> None:
    data = linked(tmp_path, 1).read_bytes()
    assert {"helper", "state", "overridable", "bundled", "PyInit__utils"} <= defined_symbols(data)
    assert defined_symbols(isolated(data, "some.pack._utils")) == {"PyInit_some.pack._utils"}


def test_modules_with_the_same_symbols_keep_their_own_in_one_program(tmp_path: Path) -> None:
    objects = []
    for name, value in (("one", 10), ("two", 200)):
        folder = tmp_path / name
        output = folder / "isolated.o"
        output.parent.mkdir()
        output.write_bytes(isolated(linked(folder, value).read_bytes(), f"{name}._utils"))
        objects.append(output)
    program = compiled(
        tmp_path,
        "program.c",
        """
        int one(void) __asm__("PyInit_one._utils");
        int two(void) __asm__("PyInit_two._utils");
        int state = 7; /* of the program: not theirs */
        int shared_by_all(int x) { return x * 10000; }
        int _start(void) { return one() + two() + state; }
        """,
    )
    module = tmp_path / "program.wasm"
    subprocess.run([LINKER, *map(str, [program, *objects]), "-o", str(module)], check=True)
    assert not summarise(module.read_bytes()).imports
    wasmtime = pytest.importorskip("wasmtime")
    store = wasmtime.Store()
    instance = wasmtime.Instance(store, wasmtime.Module(store.engine, module.read_bytes()), [])
    # helper: table[1] + state; overridable; bundled: a static member and an inline function.
    first, second = (2 + 10) + 10 + 20, (2 + 200) + 200 + 400
    assert instance.exports(store)["_start"](store) == (first + second) * 10000 + 7


def test_isolating_is_repeatable_and_leaves_code_alone(tmp_path: Path) -> None:
    data = linked(tmp_path, 1).read_bytes()
    once = isolated(data, "pack._utils")
    assert once == isolated(data, "pack._utils")
    size = len("pack.") + len(data) - len(once)
    assert 0 < size < 200  # groups are gone, nothing else


def test_object_without_its_entry_point_is_refused(tmp_path: Path) -> None:
    data = linked(tmp_path, 1).read_bytes()
    with pytest.raises(BadModule, match=r"of pack\._tree does not define PyInit__tree"):
        isolated(data, "pack._tree")
    with pytest.raises(BadModule, match="not a WebAssembly object"):
        isolated(b"\x7fELF", "pack._tree")


def test_libraries_from_outside_the_tree_stay_undefined(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    module = compiled(tree, "utils.c", MODULE.format(value=1))
    elsewhere = compiled(tmp_path / "elsewhere", "bundle.cpp", INLINE.format(value=1))
    library = elsewhere.with_name("libbundle.a")
    subprocess.run(["llvm-ar-22", "rcs", str(library), str(elsewhere)], check=True)
    output = tree / "_utils.so"
    link_module(["-shared", "-o", str(output), str(module), str(library)], LINKER, tree)
    assert "bundled" not in defined_symbols(output.read_bytes())


def test_call_that_does_not_fit_its_function_is_an_error(tmp_path: Path) -> None:
    caller = compiled(tmp_path, "caller.c", "int f(int); int PyInit_m(void) { return f(1); }")
    callee = compiled(tmp_path, "callee.c", "void f(int x, int y) {}")
    arguments = ["-shared", "-o", str(tmp_path / "m.so"), str(caller), str(callee)]
    with pytest.raises(subprocess.CalledProcessError):
        link_module(arguments, LINKER, tmp_path)


def test_modules_are_taken_out_of_an_installed_tree(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "pack/sub").mkdir(parents=True)
    (site / "pack/__init__.py").write_text("")
    data = linked(tmp_path / "tree", 1).read_bytes()
    (site / "pack/sub/_utils.cpython-314-wasm32-linux-musl.so").write_bytes(data)
    (site / "pack/_utils.so").write_bytes(data)
    names = take_modules(site, tmp_path / "objects")
    assert names == ["pack._utils", "pack.sub._utils"]
    assert sorted(path.name for path in (tmp_path / "objects").iterdir()) == [
        "pack._utils.o",
        "pack.sub._utils.o",
    ]
    assert [path.name for path in site.rglob("*") if path.is_file()] == ["__init__.py"]


def test_table_names_modules_by_their_dotted_names() -> None:
    text = module_table(["pack.sub._utils", "pack._utils"])
    assert 'init_0(void) __asm__("PyInit_pack._utils");' in text
    assert '{"pack.sub._utils", start_1},' in text
    assert '_PyImport_SwapPackageContext("pack.sub._utils")' in text
    with pytest.raises(BadModule, match="no module can be called"):
        module_table(['x", 0}, {"y'])
