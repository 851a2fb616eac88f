"""The import-layer check finds forbidden imports."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.check_layers import TableError, complaints, read_layers

TABLE = """\
| layer | package | owns | may import |
|---|---|---|---|
| cli | `wasmsand.cli` | the command | everything below |
| sdk | `wasmsand.sdk` | the API | machine, kernel |
| machine | `wasmsand.machine` | life | abi, kernel, engine |
| abi | `wasmsand.abi.linux` | decoding | kernel, engine.protocol |
| kernel | `wasmsand.kernel` | files | nothing else of ours |
| engine | `wasmsand.engine` | WebAssembly | nothing else of ours |

More text.
"""


def check(tmp_path: Path, file: str, source: str) -> list[str]:
    path = tmp_path / "wasmsand" / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    return list(complaints(tmp_path, read_layers(TABLE)))


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("kernel/a.py", "from wasmsand.engine import protocol"),
        ("kernel/a.py", "import wasmsand.abi.linux"),
        ("kernel/a.py", "from ..engine.protocol import Engine"),
        ("kernel/a.py", "from .. import engine"),
        ("kernel/a.py", "def f():\n    import wasmsand.machine"),
        ("kernel/a.py", "import threading"),
        ("kernel/a.py", "import socket"),
        ("kernel/a.py", "from http.client import HTTPConnection"),
        ("kernel/a.py", "import subprocess"),
        ("kernel/a.py", "import ssl"),
        ("kernel/a.py", "from select import poll"),
        ("kernel/a.py", "import wasmtime"),
        ("kernel/deep/a.py", "from ...sdk import errors"),
        ("engine/a.py", "from wasmsand.kernel.errno import Errno"),
        ("abi/linux/a.py", "from wasmsand.engine import wasmtime"),
        ("abi/linux/a.py", "from wasmsand.engine.wasmtime import driver"),
        ("machine/a.py", "from wasmsand.engine.wasmtime.engine import WasmtimeEngine"),
        ("machine/a.py", "def f():\n    from wasmsand.engine import wasmtime"),
        ("cli/a.py", "import wasmsand.engine.wasmtime.compile_cache"),
        ("engine/protocol.py", "from wasmsand.engine.wasmtime import engine"),
        ("engine/__init__.py", "from .wasmtime.engine import WasmtimeEngine"),
        ("__init__.py", "from wasmsand.engine.wasmtime.engine import WasmtimeEngine"),
        ("abi/linux/a.py", "import ctypes"),
        ("machine/a.py", "from wasmsand.sdk import Sandbox"),
        ("sdk/a.py", "from wasmsand.engine import protocol"),
        ("sdk/a.py", "from wasmsand import Sandbox"),
        ("extra/a.py", "from wasmsand.kernel import errno"),
        ("cli/a.py", "import userland.builder"),
    ],
)
def test_upward_and_sideways_imports_are_reported(tmp_path: Path, file: str, source: str) -> None:
    found = check(tmp_path, file, source)
    assert len(found) == 1
    assert found[0].startswith(f"wasmsand/{file}:")


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("kernel/a.py", "from wasmsand.kernel.errno import Errno\nfrom .wait import WaitQueue"),
        ("kernel/__init__.py", "from .errno import Errno"),
        ("abi/linux/a.py", "from wasmsand.engine.protocol import Instance"),
        ("abi/linux/a.py", "from wasmsand.kernel.vfs import resolve"),
        ("engine/a.py", "import wasmtime, ctypes, threading"),
        ("engine/choosing.py", "def f():\n    from wasmsand.engine.wasmtime import engine"),
        ("engine/wasmtime/a.py", "from wasmsand.engine.wasmtime.bindings import lib"),
        ("machine/a.py", "from wasmsand.engine.choosing import default_engine"),
        ("sdk/a.py", "from wasmsand.machine import Machine\nimport json"),
        ("cli/a.py", "from wasmsand import __version__\nfrom wasmsand.engine import protocol"),
        ("__init__.py", "from wasmsand.sdk.sandbox import Sandbox"),
    ],
)
def test_downward_imports_are_accepted(tmp_path: Path, file: str, source: str) -> None:
    assert check(tmp_path, file, source) == []


def test_a_document_without_the_table_is_an_error() -> None:
    with pytest.raises(TableError):
        read_layers("# Architecture\n\nno table\n")


def test_a_table_that_names_an_unknown_layer_is_an_error() -> None:
    with pytest.raises(TableError):
        read_layers(TABLE.replace("machine, kernel |", "machina |"))
