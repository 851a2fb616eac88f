"""C programs for WASI, compiled with zig from the PyPI package `ziglang`.

The first compilation on a machine also compiles the C library, which takes a minute. Compiled
programs are kept outside the repository.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wasi.store import kept

PROGRAMS = Path(__file__).resolve().parent / "programs"
_FLAGS = ("-target", "wasm32-wasi", "-Os", "-s", "-Wall", "-Wextra", "-Werror")
_FREESTANDING = ("-nostdlib",)
"""Options for a program that has its own `_start`."""


def compiled(name: str) -> Path:
    """The module of `programs/NAME.c`."""
    source = PROGRAMS / f"{name}.c"
    text = source.read_bytes()
    flags = (*_FLAGS, *(_FREESTANDING if b"void _start(" in text else ()))
    try:
        version = importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        pytest.fail(
            "zig is not installed: install the development tools with pip install -e '.[dev]'"
        )
    inputs = [text, (PROGRAMS / "expect.h").read_bytes(), version.encode(), repr(flags).encode()]
    key = hashlib.sha256(b"\0".join(inputs)).hexdigest()[:32]

    def compile_to(path: Path) -> None:
        command = [sys.executable, "-m", "ziglang", "cc", *flags, "-o", str(path), str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    return kept(f"programs/{name}-{key}.wasm", compile_to)


def all_programs() -> list[str]:
    """The names of all programs."""
    return sorted(path.stem for path in PROGRAMS.glob("*.c"))


def functions_of(name: str) -> set[str]:
    """The functions that a program names as tested by it."""
    first = (PROGRAMS / f"{name}.c").read_text("utf-8").partition("\n")[0]
    return set(first.removeprefix("// functions: ").split()) if "functions:" in first else set()
