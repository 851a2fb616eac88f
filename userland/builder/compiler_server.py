"""A compiler that is loaded once for all compilations of a run.

Most compilations are short, and loading clang takes a third of their time. Inside `fast_compiler`,
the clang in PATH is a small client of a clang that is loaded (`compiler_server/server.c`). Rules:
the same compiler does the same work, so outputs and keys are the same; if anything fails, the real
clang runs; the server ends with the block, and with this process.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from userland.builder.commands import Commands
from userland.builder.toolchain import LLVM

SOURCES = Path(__file__).with_name("compiler_server")
_NAMES = (f"clang-{LLVM}", f"clang++-{LLVM}")
_MOST_WAITING = 128


@contextmanager
def fast_compiler(commands: Commands) -> Iterator[Path | None]:
    """Put the client first in PATH; the block gets its directory, or None where that failed."""
    with tempfile.TemporaryDirectory(prefix="wasmsand-compiler-") as made:
        folder = Path(made)
        compiler = shutil.which(_NAMES[0])
        if compiler is None or not _compile(folder, commands):
            yield None
            return
        before = os.environ.get("PATH", os.defpath)
        with _serving(folder, compiler, commands):
            os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
            try:
                yield folder
            finally:
                os.environ["PATH"] = before


@contextmanager
def _serving(folder: Path, compiler: str, commands: Commands) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
        listening.listen(_MOST_WAITING)
        env = {
            **os.environ,
            "COMPILER_SOCKET": str(listening.fileno()),
            "LD_PRELOAD": str(folder / "server.so"),
            # Otherwise every child would look up the functions that it calls.
            "LD_BIND_NOW": "1",
        }
        with commands.background([compiler], env=env, pass_fds=[listening.fileno()]):
            # With the last descriptor, the server's, connections end too: no client waits for ever.
            listening.close()
            yield


def _compile(folder: Path, commands: Commands) -> bool:
    """Make the server and the client in this directory; False if the compiler cannot."""
    options = ["-O1", "-Wall", "-Wextra", "-Werror"]
    library = ["-shared", "-fPIC", f"{SOURCES}/server.c", "-o", f"{folder}/server.so"]
    client = ["-static", f"{SOURCES}/client.c", "-o", f"{folder}/{_NAMES[0]}"]
    for arguments in (library, client):
        status, _ = commands.capture([_NAMES[0], *options, *arguments])
        if status != 0:
            return False
    for name in _NAMES[1:]:
        (folder / name).hardlink_to(folder / _NAMES[0])
    return True
