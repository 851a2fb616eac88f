"""The compiled form of the kernel is used only with the sources that it was made from."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wasmsand.compiled_kernel import (
    DIRECTORY,
    INDEX_FORMAT,
    INDEX_SUFFIX,
    LEFT_OUT,
    LIBRARY,
    MODULES,
    SUFFIX,
    VARIABLE,
    CompiledKernel,
    hash_of,
)

SOURCE = b"x = 1\n"
MODULE = "wasmsand.kernel.wait"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with one module, a library that cannot be loaded, and its index."""
    package = tmp_path / "wasmsand"
    (package / "kernel").mkdir(parents=True)
    (package / "kernel/wait.py").write_bytes(SOURCE)
    (package / DIRECTORY).mkdir()
    library = package / DIRECTORY / (LIBRARY + SUFFIX)
    library.write_bytes(b"not a library")
    lines = (INDEX_FORMAT, "version 1.0", f"compiled {hash_of(SOURCE)} {MODULE}", "")
    Path(f"{library}{INDEX_SUFFIX}").write_text("\n".join(lines))
    return package


def form(package: Path, version: str = "1.0", wanted: str | None = None) -> str:
    chooser = CompiledKernel(str(package), version, wanted)
    assert chooser.find_spec(MODULE) is None
    assert not chooser.is_used
    return chooser.form


def test_a_library_that_cannot_be_loaded_is_left_alone(package: Path) -> None:
    assert "cannot be loaded" in form(package)


def test_a_changed_source_file_turns_the_whole_library_off(package: Path) -> None:
    source = package / "kernel/wait.py"
    source.write_bytes(SOURCE + b"y = 2\n")
    assert f"{source} has changed since" in form(package)


def test_a_missing_source_file_turns_it_off(package: Path) -> None:
    (package / "kernel/wait.py").unlink()
    assert "No such file" in form(package)


def test_a_library_of_another_version_is_not_used(package: Path) -> None:
    assert "made for another version of wasmsand" in form(package, version="1.1")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"something else\n"])
def test_a_damaged_index_counts_as_none(package: Path, content: bytes) -> None:
    index = package / DIRECTORY / (LIBRARY + SUFFIX + INDEX_SUFFIX)
    index.write_bytes(content)
    assert form(package).startswith("Python sources")
    index.write_bytes(index.read_bytes() + f"{INDEX_FORMAT}\nversion 1.0\nbad line\n".encode())
    assert form(package).startswith("Python sources")


def test_without_a_library_the_sources_are_used(tmp_path: Path) -> None:
    assert form(tmp_path) == "Python sources (no compiled form is installed)"


def test_the_variable_turns_it_off(package: Path) -> None:
    assert form(package, wanted="never") == f"Python sources ({VARIABLE}=never)"


def test_the_variable_makes_an_unusable_library_an_error(package: Path) -> None:
    chooser = CompiledKernel(str(package), "1.0", "always")
    for _ in range(2):
        with pytest.raises(ImportError, match="cannot be loaded"):
            chooser.find_spec(MODULE)


def test_other_modules_do_not_cause_a_look_at_the_library(package: Path) -> None:
    shutil.rmtree(package / DIRECTORY)
    chooser = CompiledKernel(str(package), "1.0", "always")
    names = "json", "wasmsand", "wasmsand.sdk.sandbox", "wasmsand.kernel", "wasmsand.kernel.errno"
    for name in names:
        assert chooser.find_spec(name) is None


def test_every_listed_module_exists(repository: Path) -> None:
    for name in MODULES | LEFT_OUT:
        assert (repository / "src/wasmsand" / Path(*name.split("."))).with_suffix(".py").is_file()


def test_importing_the_api_imports_no_compiled_module() -> None:
    """So it takes no longer: the library is looked for later."""
    script = (
        "import sys\n"
        "from wasmsand import Sandbox\n"
        "from wasmsand.compiled_kernel import is_compiled\n"
        "names = [n[9:] for n, m in sys.modules.items() if n.startswith('wasmsand.')\n"
        "         and not hasattr(m, '__path__')]\n"
        "print([name for name in names if is_compiled(name)])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
