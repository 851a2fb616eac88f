"""The files of Python packages as they go into the image."""

from __future__ import annotations

import base64
import hashlib
import sys
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from userland.builder.errors import BuildError
from userland.builder.package_files import REQUIRED, Surroundings, finish_package, surroundings

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


def test_record_has_the_hash_of_every_file_but_compiled_ones(around: Surroundings) -> None:
    finish_package(around, installed(around))
    record = around.tree / "stage/package/some_pack-1.2.dist-info/RECORD"
    lines = dict(line.split(",", 1) for line in record.read_text().splitlines())
    assert lines["some_pack-1.2.dist-info/RECORD"] == ","
    content = b"answer = 42\n"
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    assert lines["some_pack/__init__.py"] == f"sha256={digest},{len(content)}"
    compiled = [name for name in lines if name.endswith(".pyc")]
    assert len(compiled) == 2
    assert {lines[name] for name in compiled} == {","}


def test_metadata_says_whether_the_package_needs_the_full_interpreter(
    around: Surroundings,
) -> None:
    site = installed(around)
    finish_package(around, site, REQUIRED)
    info = around.tree / "stage/package/some_pack-1.2.dist-info"
    assert (info / "native.txt").read_text() == "required\n"
    assert "Tag: cp314-cp314-linux_wasm32\n" in (info / "WHEEL").read_text()


def test_metadata_of_a_pure_package_has_no_such_note(around: Surroundings) -> None:
    finish_package(around, installed(around))
    info = around.tree / "stage/package/some_pack-1.2.dist-info"
    assert not (info / "native.txt").exists()
    assert "Tag: py3-none-any\n" in (info / "WHEEL").read_text()


def test_entry_points_and_licences_of_a_source_are_kept(around: Surroundings) -> None:
    (around.tree / "PKG-INFO").write_text(
        "Metadata-Version: 2.4\nName: some-pack\nVersion: 1.2\nLicense-File: legal/MIT.txt\n\n"
    )
    (around.tree / "legal").mkdir()
    (around.tree / "legal/MIT.txt").write_text("free\n")
    (around.tree / "pyproject.toml").write_text(
        '[project.scripts]\nsome = "some_pack:main"\n[project.entry-points.plugins]\np = "q"\n'
    )
    finish_package(around, installed(around))
    info = around.tree / "stage/package/some_pack-1.2.dist-info"
    assert (info / "licenses/legal/MIT.txt").read_text() == "free\n"
    found = {
        (point.group, point.name, point.value) for point in PathDistribution(info).entry_points
    }
    assert found == {("console_scripts", "some", "some_pack:main"), ("plugins", "p", "q")}


def test_entry_points_that_setuptools_wrote_are_kept(around: Surroundings) -> None:
    (around.tree / "src/some_pack.egg-info").mkdir(parents=True)
    text = "[console_scripts]\nsome = some_pack:main\n"
    (around.tree / "src/some_pack.egg-info/entry_points.txt").write_text(text)
    finish_package(around, installed(around))
    info = around.tree / "stage/package/some_pack-1.2.dist-info"
    assert (info / "entry_points.txt").read_text() == text


def test_metadata_of_a_wheel_is_kept(around: Surroundings) -> None:
    site = installed(around)
    info = site / "some_pack-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: some-pack\nVersion: 1.2\n")
    (info / "RECORD").write_text("gone.py,,\n")
    finish_package(around, site)
    info = around.tree / "stage/package/some_pack-1.2.dist-info"
    assert PathDistribution(info).metadata["Name"] == "some-pack"
    assert "gone.py" not in (info / "RECORD").read_text()
