"""The files of Python packages as they go into the image."""

from __future__ import annotations

import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from userland.builder import package_files
from userland.builder.errors import BuildError
from userland.builder.package_files import Surroundings, finish_package, surroundings

PKG_INFO = (
    "Metadata-Version: 2.4\nName: Some.Pack\nVersion: 1.2\nRequires-Dist: other\n\nWords: x\n"
)


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    """A source tree, and the outputs of two recipes, one with a Python."""
    tree, tools, library = tmp_path / "tree", tmp_path / "python", tmp_path / "library"
    for folder in (tree, tools / "bin", tools / "lib", library / "lib/tools"):
        folder.mkdir(parents=True)
    (tools / "bin/python3").symlink_to(sys.executable)
    (tree / "PKG-INFO").write_text(PKG_INFO)
    for name in ("HOME", "LC_ALL", "TZ", "SOURCE_DATE_EPOCH"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("LDFLAGS", f"-L{tools}/lib -Wl,-x -L{library}/lib")
    monkeypatch.setenv("CC", str(tmp_path / "musl/bin/wasm-cc"))
    monkeypatch.setenv("RECIPE", "/recipes/some-pack")
    monkeypatch.setattr(sys, "argv", ["script", str(tree), str(tmp_path / "out")])
    return surroundings()


def installed(around: Surroundings) -> Path:
    site = around.work / "site"
    (site / "some_pack/tests").mkdir(parents=True)
    (site / "some_pack/__init__.py").write_text("answer = 42\n")
    (site / "some_pack/__init__.pxd").write_text("")
    (site / "some_pack/tests/test_it.py").write_text("")
    (site / "some_pack/tests/conftest.py").write_text("")
    (site / "some_pack/config.py").write_text(f"built_in = {str(around.tree)!r}\n")
    return site


def test_tools_of_other_recipes_are_found_by_what_they_hold(around: Surroundings) -> None:
    assert around.python == around.roots[0] / "bin/python3"
    assert around.tools == [around.roots[1] / "lib/tools"]
    with pytest.raises(BuildError, match="does not depend on cython"):
        around.tool("cython.py", "cython")
    with pytest.raises(BuildError, match=r"does not depend on python, which has include/x\.h"):
        around.needed("include/x.h", "python")


def test_package_is_left_without_tests_and_paths_and_with_compiled_files(
    around: Surroundings,
) -> None:
    finish_package(around, installed(around))
    package = around.tree / "stage/package"
    assert sorted(path.name for path in package.rglob("*") if path.suffix == ".py") == [
        "__init__.py",
        "config.py",
    ]
    assert (package / "some_pack/config.py").read_text() == "built_in = '/usr/src'\n"
    compiled = list(package.rglob("*.pyc"))
    assert len(compiled) == 2
    for file in compiled:
        assert b"/usr/lib/python/some-pack/some_pack/" in file.read_bytes()
        assert str(around.tree).encode() not in file.read_bytes()


def test_metadata_is_what_importlib_and_pip_read(around: Surroundings) -> None:
    finish_package(around, installed(around))
    info = around.tree / "stage/package/some_pack-1.2.dist-info"
    found = PathDistribution(info)
    assert (found.metadata["Name"], found.version, found.requires) == (
        "Some.Pack",
        "1.2",
        ["other"],
    )
    assert (info / "INSTALLER").read_text() == "wasmsand\n"
    assert found.files is not None
    listed = {file.as_posix() for file in found.files}
    assert {"some_pack/__init__.py", "some_pack-1.2.dist-info/RECORD"} <= listed


def test_metadata_of_a_wheel_is_kept(around: Surroundings) -> None:
    site = installed(around)
    info = site / "some_pack-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: some-pack\nVersion: 1.2\n")
    package_files.write_metadata(around.tree, site)
    assert PathDistribution(info).metadata["Name"] == "some-pack"
    assert "some_pack/config.py,," in (info / "RECORD").read_text()
