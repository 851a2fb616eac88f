"""Packages that setuptools builds: a small real one, with the toolchain's compiler."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import setuptools  # type: ignore[import-untyped]  # has no types

from userland.builder import package_setuptools
from userland.builder.extension_modules import defined_symbols

pytestmark = pytest.mark.skipif(
    shutil.which("clang-22") is None or shutil.which("wasm-ld-22") is None,
    reason="needs the toolchain",
)

SETUP = """
import os, sysconfig
from setuptools import Extension, setup

assert sysconfig.get_config_var("SIZEOF_VOID_P") == 4
assert sysconfig.get_path("include").endswith("include/python3.14")
with open(os.path.join(os.path.dirname(__file__), "seen"), "w") as seen:
    print(os.environ.get("WITH_X"), sysconfig.get_config_var("EXT_SUFFIX"), file=seen)
setup(
    name="some-pack",
    version="1.2",
    packages=["some_pack"],
    ext_modules=[Extension("some_pack._fast", ["fast.c"])],
)
"""
FAST = """
#include <Python.h>
int helper(void) { return sizeof(void *); }
PyObject *PyInit__fast(void) { return make(helper()); }
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of a package, and the outputs of the recipes that its build needs."""
    tree, tools, python = tmp_path / "tree", tmp_path / "tools", tmp_path / "python"
    for folder in (tree / "some_pack", tools / "bin", tools / "lib/tools", python / "lib"):
        folder.mkdir(parents=True)
    (tools / "bin/python3").symlink_to(sys.executable)
    found = Path(setuptools.__file__).parent
    for name in ("setuptools", "pkg_resources", "_distutils_hack"):
        if (found.parent / name).exists():
            (tools / "lib/tools" / name).symlink_to(found.parent / name)
    headers = python / "include/python3.14"
    headers.mkdir(parents=True)
    (headers / "Python.h").write_text("typedef int PyObject; PyObject *make(int);\n")
    (tree / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: some-pack\nVersion: 1.2\n\n")
    (tree / "setup.py").write_text(SETUP)
    (tree / "fast.c").write_text(FAST)
    (tree / "some_pack/__init__.py").write_text("answer = 42\n")
    compiler = tmp_path / "musl/bin/wasm-cc"
    compiler.parent.mkdir(parents=True)
    compiler.write_text('#!/bin/sh\nexec clang-22 --target=wasm32-unknown-unknown "$@"\n')
    compiler.chmod(0o755)
    variables = {"HOME": str(tree), "LC_ALL": "C", "TZ": "UTC", "SOURCE_DATE_EPOCH": "1"}
    variables |= {"CC": str(compiler), "CFLAGS": "-O2", "CPPFLAGS": "", "AR": "ar", "RANLIB": "x"}
    variables |= {"LDFLAGS": f"-L{tools}/lib -L{python}/lib", "RECIPE": "/recipes/some-pack"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["script", str(tree), str(tmp_path / "out")])
    return tree


def modules(tree: Path) -> list[Path]:
    return sorted((tree.parent / "out/lib/modules").iterdir())


def test_modules_are_compiled_for_the_target_and_isolated(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETUP_ENVIRONMENT", "WITH_X=1")
    assert package_setuptools.main() == 0
    (module,) = modules(tree)
    assert module.name == "some_pack._fast.o"
    assert defined_symbols(module.read_bytes()) == {"PyInit_some_pack._fast"}
    assert (tree / "seen").read_text() == "1 .so\n"
    package = tree / "stage/package"
    assert (package / "some_pack-1.2.dist-info/native.txt").read_text() == "required\n"
    assert not list(package.rglob("*.so"))


def test_files_alone_need_no_compiler(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKAGE_PARTS", "files")
    monkeypatch.setenv("PACKAGE_NATIVE", "optional")
    monkeypatch.setenv("CC", "/bin/false")
    assert package_setuptools.main() == 0
    assert modules(tree) == []
    package = tree / "stage/package"
    assert (package / "some_pack/__init__.py").is_file()
    assert (package / "some_pack-1.2.dist-info/native.txt").read_text() == "optional\n"


def test_modules_alone_leave_no_package(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACKAGE_PARTS", "modules")
    assert package_setuptools.main() == 0
    assert [module.name for module in modules(tree)] == ["some_pack._fast.o"]
    assert not (tree / "stage").exists()


def test_package_without_the_modules_that_were_asked_for_is_refused(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup = (tree / "setup.py").read_text()
    (tree / "setup.py").write_text(
        setup.replace('ext_modules=[Extension("some_pack._fast", ["fast.c"])],', "")
    )
    assert package_setuptools.main() == 1
    assert "0 extension modules were built, for `all`" in capsys.readouterr().err


def test_unknown_parts_and_needs_are_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PACKAGE_PARTS", "most")
    assert package_setuptools.main() == 1
    assert "PACKAGE_PARTS is 'most'" in capsys.readouterr().err
