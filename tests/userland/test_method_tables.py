"""Methods that lack parameters are found in objects that the toolchain made."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from userland.builder.errors import BadModule
from userland.builder.method_tables import check_methods, unfit_methods

COMPILER = ("clang-22", "--target=wasm32-unknown-unknown", "-nostdlib", "-O1", "-c")

pytestmark = pytest.mark.skipif(shutil.which(COMPILER[0]) is None, reason="needs the toolchain")

HEAD = """
typedef struct Object Object;
typedef Object *(*Function)(Object *, Object *);
typedef struct { const char *name; Function function; int flags; const char *text; } Method;
typedef struct { const char *name; Function get, set; const char *text; void *closure; } Getter;
enum { VARARGS = 1, KEYWORDS = 2, NOARGS = 4, O = 8, CLASS = 0x10, FASTCALL = 0x80 };
Object *two(Object *self, Object *args) { return args; }
Object *three(Object *self, Object *args, Object *names) { return names; }
Object *one(Object *self) { return self; }
void nothing(Object *self, Object *args) {}
Object *outside(Object *self);
"""


def compiled(folder: Path, text: str) -> bytes:
    source = folder / "module.c"
    source.write_text(HEAD + text)
    target = source.with_suffix(".o")
    subprocess.run([*COMPILER, "-w", str(source), "-o", str(target)], check=True)
    return target.read_bytes()


def test_methods_that_fit_their_flags_are_accepted(tmp_path: Path) -> None:
    data = compiled(
        tmp_path,
        """
        Method methods[] = {
            {"a", two, VARARGS, "text"}, {"b", (Function)three, VARARGS | KEYWORDS, 0},
            {"c", two, NOARGS, 0}, {"d", two, O | CLASS, "text"},
            {"e", (Function)three, FASTCALL, 0}, {0, 0, 0, 0},
        };
        """,
    )
    check_methods(data, "pack.module")


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ('{"a", (Function)one, NOARGS, "text"}', "one"),
        ('{"a", (Function)one, NOARGS | CLASS, 0}', "one"),
        ('{"a", (Function)two, VARARGS | KEYWORDS, 0}', "two"),
        ('{"a", (Function)three, O, 0}', "three"),
        ('{"a", (Function)nothing, VARARGS, 0}', "nothing"),
    ],
)
def test_method_that_does_not_fit_its_flags_is_named(tmp_path: Path, entry: str, name: str) -> None:
    data = compiled(tmp_path, f"Method methods[] = {{{entry}, {{0, 0, 0, 0}}}};")
    with pytest.raises(BadModule, match=rf"^pack\.module: .*: {name}$"):
        check_methods(data, "pack.module")


def test_function_of_another_object_is_found(tmp_path: Path) -> None:
    data = compiled(tmp_path, 'Method methods[] = {{"a", (Function)outside, NOARGS, 0}};')
    assert len(list(unfit_methods(data))) == 1


def test_getters_and_setters_that_lack_their_last_parameter_are_named(tmp_path: Path) -> None:
    data = compiled(
        tmp_path,
        """
        Getter getters[] = {
            {"a", (Function)one, (Function)three, "text", 0}, {"b", two, 0, "text", 0},
            {"c", 0, two, "text", 0}, {"d", two, (Function)three, 0, 0}, {0, 0, 0, 0, 0},
        };
        """,
    )
    assert sorted(set(unfit_methods(data))) == ["one", "two"]


def test_other_tables_are_not_taken_for_methods(tmp_path: Path) -> None:
    data = compiled(
        tmp_path,
        """
        struct { int slot; Function function; int other; } slots[] = {{1, (Function)one, 4}};
        struct { const char *text; Function traverse, clear; int rest; } types[] = {
            {"a", (Function)three, (Function)one, 0},
        };
        struct { const char *name; Function function; int more; } others[] = {
            {"a", (Function)one, 5}, {"b", (Function)one, 6},
        };
        """,
    )
    assert list(unfit_methods(data)) == []
