"""The sandbox's side: a machine of its own for each test.

Owns how a tree is put into an image. Rules: the image is made once and shared by all machines;
/dev/shm is a second file system, as on Linux, because tests move files between file systems.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from conformance.area import Ended
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.vfs import ROOT, FrozenTree, ImageBuilder, TreeFs
from wasmsand.machine import CommandRequest, Machine, MachineOptions
from wasmsand.machine.terminal import SandboxTerminal

_FOLDER = "/tmp/suite"
_OPTIONS = MachineOptions(limits=Limits(fs_limit_bytes=1 << 30))
"""Tests expect a disk of ordinary size: some write hundreds of megabytes."""


class SandboxArea:
    """An `Area` in a machine."""

    tree = f"{_FOLDER}/tree"
    results = f"{_FOLDER}/results"
    home = "/home/user"
    temporary = "/tmp"
    search_path = "/usr/local/bin:/usr/bin:/bin"
    variables: ClassVar[dict[str, str]] = {}

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def run(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float
    ) -> Ended:
        """See `Area.run`; processes that a test leaves behind end with the machine."""
        began = time.monotonic()
        terminal = self._machine.open_terminal(CommandRequest(tuple(argv), env, cwd))
        threading.Thread(target=_discard, args=(terminal,), daemon=True).start()
        exit_code = terminal.wait(timeout)
        seconds = time.monotonic() - began
        return Ended(124, True, seconds) if exit_code is None else Ended(exit_code, False, seconds)

    def kept(self) -> dict[str, bytes]:
        """See `Area.kept`."""
        files = self._machine.files
        kept = {}
        for entry in files.list(self.results):
            # A process that the test left behind may still be removing files.
            with suppress(KernelError):
                kept[entry.name] = files.read(f"{self.results}/{entry.name}")
        return kept


@contextmanager
def sandbox_area(image: FrozenTree) -> Iterator[SandboxArea]:
    """An area in a new machine with the image of `image_with`."""
    machine = Machine(_OPTIONS, image=image)
    try:
        _mount_second_file_system(machine)
        yield SandboxArea(machine)
    finally:
        machine.close()


def image_with(
    tree: Path, packages: tuple[str, ...] = (), programs: Path | None = None
) -> FrozenTree:
    """The user space with a copy of `tree` at `SandboxArea.tree`.

    It also has Python packages, and the WebAssembly programs of the directory `programs`.
    """
    options = MachineOptions(limits=_OPTIONS.limits, packages=packages, wasm_dir=programs)
    machine = Machine(options)
    namespace = machine.kernel.namespace
    user = machine.identity.credentials()
    machine.files.mkdir(SandboxArea.results)
    machine.files.mkdir(SandboxArea.tree)
    for path in sorted(tree.rglob("*")):
        name = f"{SandboxArea.tree}/{path.relative_to(tree)}"
        if path.is_symlink():
            target = str(path.readlink()).encode()
            namespace.symlink(user, target, namespace.root, name.encode())
        elif path.is_dir():
            machine.files.mkdir(name)
        else:
            facts = path.stat()
            machine.files.write(name, path.read_bytes(), mode=facts.st_mode & 0o777)
            # Compiled Python files are valid only if their sources have the same time.
            node = namespace.resolve(ROOT, namespace.root, name.encode())
            namespace.utimens(ROOT, node, None, facts.st_mtime_ns)
    return machine.kernel.root.freeze()


def _mount_second_file_system(machine: Machine) -> None:
    builder = ImageBuilder()
    builder.add_dir(b"/", 0o1777)
    kernel = machine.kernel
    namespace = kernel.namespace
    place = namespace.resolve(ROOT, namespace.root, b"/dev/shm")
    tree = TreeFs(builder.build(), kernel.limits, kernel.clock.realtime)
    namespace.mount(place, tree, source=b"tmpfs")


def _discard(terminal: SandboxTerminal) -> None:
    while terminal.read():
        pass
