"""A compiler, a linker and an archiver that are loaded once for all compilations of a run.

Most compilations are short, and loading clang takes a third of their time. Inside `fast_compiler`,
the clang in PATH is a small client of a clang that is loaded (`compiler_server/server.c`), and so
are wasm-ld and llvm-ar. Rules: the same programs do the same work, so outputs and keys are the
same; if anything fails, the real ones run; the servers end with the block, and with this process.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from userland.builder.commands import Commands
from userland.builder.toolchain import LLVM

SOURCES = Path(__file__).with_name("compiler_server")
_COMPILER = f"clang-{LLVM}"
_TOOLS = {
    _COMPILER: (f"clang++-{LLVM}",),
    f"wasm-ld-{LLVM}": (),
    f"llvm-ar-{LLVM}": (f"llvm-ranlib-{LLVM}",),
}
"""Programs with a server each, and their other names."""
_MOST_WAITING = 128


@contextmanager
def fast_compiler(commands: Commands) -> Iterator[Path | None]:
    """Put the clients first in PATH; the block gets their directory, or None where that failed."""
    with tempfile.TemporaryDirectory(prefix="wasmsand-compiler-") as made, ExitStack() as servers:
        folder = Path(made)
        programs = {name: shutil.which(name) for name in _TOOLS}
        if programs[_COMPILER] is None or not _compile(folder, commands):
            yield None
            return
        for name, program in programs.items():
            if program is not None:
                servers.enter_context(_serving(folder, name, program, commands))
        before = os.environ.get("PATH", os.defpath)
        os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
        try:
            yield folder
        finally:
            os.environ["PATH"] = before


@contextmanager
def _serving(folder: Path, name: str, program: str, commands: Commands) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / f"{name}.socket"))
        listening.listen(_MOST_WAITING)
        env = {
            **os.environ,
            "COMPILER_SOCKET": str(listening.fileno()),
            "LD_PRELOAD": str(folder / "server.so"),
            # Otherwise every child would look up the functions that it calls.
            "LD_BIND_NOW": "1",
        }
        with commands.background([program], env=env, pass_fds=[listening.fileno()]):
            # With the last descriptor, the server's, connections end too: no client waits for ever.
            listening.close()
            for client in (name, *_TOOLS[name]):
                (folder / client).hardlink_to(folder / "client")
            for other in _TOOLS[name]:
                (folder / f"{other}.socket").symlink_to(f"{name}.socket")
            yield


def _compile(folder: Path, commands: Commands) -> bool:
    """Make the server and the client in this directory; False if the compiler cannot."""
    options = ["-O1", "-Wall", "-Wextra", "-Werror"]
    library = ["-shared", "-fPIC", f"{SOURCES}/server.c", "-o", f"{folder}/server.so"]
    client = ["-static", f"{SOURCES}/client.c", "-o", f"{folder}/client"]
    for arguments in (library, client):
        status, _ = commands.capture([_COMPILER, *options, *arguments])
        if status != 0:
            return False
    return True
