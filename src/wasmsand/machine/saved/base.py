"""What a saved machine needs on the host that loads it.

Owns `BaseImage`: the tree without the machine's own changes, the programs that sessions may be
instances of, and the hashes by which both are known. Rules: a machine is loaded only onto the image
that it was saved from, because its files are saved as differences, and because the memory of a
program refers to its code by numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wasmsand.engine.protocol import Engine, Instance, Module, ModuleRejected
from wasmsand.kernel.vfs import FileInode, FrozenTree, node_at
from wasmsand.machine.image import (
    WASM_PROGRAM_DIRECTORY,
    base_image,
    image_directories,
    image_programs,
    image_with_wasm_programs,
)
from wasmsand.machine.image_directory import ProgramFile
from wasmsand.machine.renewal import prepared_memories
from wasmsand.machine.saved.problems import OtherImage
from wasmsand.machine.wasm_programs import find_wasm_programs

if TYPE_CHECKING:
    from wasmsand.machine.machine import MachineOptions

_SHOWN: Final = 12
"""How much of a hash a message shows."""


@dataclass(frozen=True, slots=True)
class BaseImage:
    """An image, and how it is known."""

    tree: FrozenTree
    needs: Mapping[str, str]
    """The parts of the image by name: their sha256."""
    programs: Mapping[str, ProgramFile]
    """The programs of the image by the sha256 of their modules."""

    def require(self, needs: Mapping[str, str]) -> None:
        """Raise `OtherImage` if a machine needs anything else than this image has."""
        for name in sorted(needs.keys() | self.needs.keys()):
            wanted, present = needs.get(name), self.needs.get(name)
            if wanted == present:
                continue
            shown, way = name[:80], "; only_files=True loads its files without its sessions"
            if wanted is None:
                raise OtherImage(f"the sandbox was saved without {shown}, which this host has{way}")
            if present is None:
                raise OtherImage(f"the sandbox needs {shown}, which this host does not have{way}")
            raise OtherImage(
                f"the sandbox needs {shown} with the hash {wanted[:_SHOWN]}, and this host has "
                f"{present[:_SHOWN]}: use the version of wasmsand that saved it{way}"
            )

    def new_instance(
        self, engine: Engine, module_key: str, memory_key: str | None, memory_limit: int
    ) -> Instance:
        """A new instance of a program, with the stored memory if `memory_key` names it. Raises
        `OtherImage`, `ModuleRejected`, `MemoryError`."""
        program = self.programs.get(module_key)
        if program is None:
            raise OtherImage(f"no program of this host's image has the hash {module_key[:_SHOWN]}")
        module = loaded_module(engine, program)
        if memory_key is None:
            return module.instantiate(memory_limit)
        if memory_key != self.memory_key(module_key):
            raise OtherImage(
                f"the memory of {program.name} with the hash {memory_key[:_SHOWN]} is not in this "
                "host's image"
            )
        image = prepared_memories(engine).stored(memory_key)
        limit = memory_limit + image.shared_bytes
        return engine.abilities.memory_images.instantiate(module, limit, image)

    def memory_key(self, module_key: str) -> str | None:
        """The hash of the memory with which a program starts prepared, if it does."""
        program = self.programs.get(module_key)
        if program is None or program.prepared is None:
            return None
        return program.prepared.memory.sha256


def loaded_module(engine: Engine, program: ProgramFile) -> Module:
    """The compiled module of a program of the image."""
    try:
        return engine.find(program.sha256) or engine.load(program.sha256, program.read)
    except OSError as error:
        raise ModuleRejected(f"{program.path}: {error.strerror}: reinstall wasmsand") from None


def base_for(options: MachineOptions, engine: Engine) -> BaseImage:
    """The image of a machine with these options. Raises `ImageMissing`, `WasmProgramRejected`."""
    tree = base_image()
    if options.wasm_dir is not None:
        tree = image_with_wasm_programs(find_wasm_programs(options.wasm_dir, engine))
    return image_of(tree)


def image_of(tree: FrozenTree) -> BaseImage:
    """The image that a tree of this host stands on."""
    base = FrozenTree(tree.layers[-1:], tree.image_end, tree.image_end)
    return BaseImage(base, {**_directory_hashes(), **_host_programs(base)}, _programs())


@cache
def _directory_hashes() -> dict[str, str]:
    return {
        f"the image of {directory.parent.name}": _sha256(directory / "manifest.json")
        for directory in image_directories()
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _host_programs(base: FrozenTree) -> dict[str, str]:
    """The programs of `wasm_dir`."""
    directory = node_at(base, WASM_PROGRAM_DIRECTORY.strip("/").encode())
    found: dict[str, str] = {}
    for name, (ino, _) in getattr(directory, "entries", {}).items():
        inode = base.layers[-1][ino]
        if isinstance(inode, FileInode) and inode.content.key is not None:
            found[f"{name.decode('utf-8', 'replace')}.wasm of wasm_dir"] = inode.content.key
    return found


@cache
def _programs() -> dict[str, ProgramFile]:
    return {program.sha256: program for program in image_programs()}
