"""Small machines for targets: an image of a few programs instead of the user space.

Rules: compiled modules go to a temporary directory of the process, never to the host's cache. The
image has a `/bin/bash` that only writes one word, so that interfaces that run a shell are fast.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from typing import Final

from fuzz.target import MIB, Finding
from tests.abi.fuzz.arguments import DATA_OF_GUEST, PROGRAM
from tests.abi.fuzz.guest import ALIVE, fuzz_guest
from tests.abi.fuzz.wasi_calls import WASI_DATA
from tests.abi.fuzz.wasi_guest import wasi_fuzz_guest
from wasmsand.engine import default_engine
from wasmsand.engine.wasmtime.bindings import wat_to_wasm
from wasmsand.engine.wasmtime.compile_cache import VARIABLE
from wasmsand.kernel.limits import Limits
from wasmsand.kernel.process.identity import Identity
from wasmsand.kernel.vfs import FrozenTree, ImageBuilder, standard_tree
from wasmsand.machine import CommandRequest, Machine, MachineOptions
from wasmsand.machine import image as image_module

LINUX_PROGRAM: Final = PROGRAM
WASI_PROGRAM: Final = b"/usr/bin/wasi-fuzz"
ALIVE_PROGRAM: Final = b"/usr/bin/alive"
SMALL: Final = Limits(
    fs_limit_bytes=8 * MIB,
    max_inodes=2000,
    memory_limit_bytes=64 * MIB,
    max_processes=24,
    max_open_files=64,
    max_output_bytes=1 * MIB,
)


@cache
def small_image() -> FrozenTree:
    """The image of all machines."""
    builder = ImageBuilder()
    standard_tree(builder)
    alive = wat_to_wasm(ALIVE)
    builder.add_file(ALIVE_PROGRAM, alive, 0o755)
    builder.add_file(b"/usr/bin/bash", alive, 0o755)
    builder.add_file(b"/usr/bin/python3", alive, 0o755)
    builder.add_file(LINUX_PROGRAM, wat_to_wasm(fuzz_guest(bytes(DATA_OF_GUEST.content))), 0o755)
    builder.add_file(WASI_PROGRAM, wat_to_wasm(wasi_fuzz_guest(bytes(WASI_DATA.content))), 0o755)
    return builder.build()


@cache
def prepare_process() -> None:
    """Have this process' sandboxes use the small image; done once per process."""
    os.environ[VARIABLE] = tempfile.mkdtemp(prefix="wasmsand-fuzz-")
    os.environ["WASMSAND_RENEWAL"] = "off"
    image_module._base = small_image()


def new_machine(limits: Limits = SMALL, uid: int = 1000) -> Machine:
    """A machine whose programs run as `uid`."""
    prepare_process()
    machine = Machine(MachineOptions(limits=limits), image=small_image(), engine=default_engine())
    machine.identity = Identity.of(uid, uid)
    return machine


def check_alive(machine: Machine) -> None:
    """Raise `Finding` unless a program still runs."""
    done = machine.run(CommandRequest((ALIVE_PROGRAM.decode(),), {}, "/", timeout_seconds=15))
    if done.stdout != b"alive":
        raise Finding("unusable", f"a program returned {done!r}")
