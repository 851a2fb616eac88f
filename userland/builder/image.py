"""The image: the directory of built programs that the package and its wheel carry.

    manifest.json        what there is, and where it goes in the file system
    NAME.wasm            programs
    NAME.image           the memory with which a prepared program starts
    files.bin            the contents of all other files, one after another
    licences/RECIPE/     the texts that programs must be passed on with
    LICENCES.md          the list of them, with where each source comes from

Rules: the directory is made whole beside its place and moved there, so a reader sees
the old one or the new one; every module is checked against the hash it had when it was
built; no file names the builder's directories; nothing in it depends on file modes or
symbolic links, which wheels do not keep.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from userland.builder.cache import BUILT, LICENCES, Entry, disk_errors, remove_tree
from userland.builder.errors import BuildError
from userland.builder.keys import file_digest
from userland.builder.licences import licence_list
from userland.builder.recipe import Program, Recipe, installed_path
from userland.builder.target import FILES

MANIFEST = "manifest.json"
CONTENTS = "files.bin"
LICENCE_LIST = "LICENCES.md"
FORMAT = 3
MEMORY_FACTS = "memory.json"
"""Beside the memory in the cache: what the manifest says of it."""
_OWN_FILE_MODE = 0o644
# /usr/share/zoneinfo is a tree that a sandbox need not know before it looks into it.
_TREE_DEPTH = 3

_File = tuple[str, int, int, int]
"""Path, permissions, and where in `CONTENTS`: offset and size."""
_Link = tuple[str, str]
"""Path and target."""
_Directory = tuple[str, int]
"""Path, and the user and group that it belongs to."""
_OWNERS = {"root": 0, "user": 1000}


def write_image(
    image: Path,
    built: Iterable[tuple[Recipe, Entry]],
    stored: Mapping[str, Entry] | None = None,
) -> bool:
    """Make `image` hold exactly these programs and files; False if it did already.

    `stored` is the memory of programs at their checkpoint, by name (see `preinitialise`).
    """
    pairs = sorted(built, key=lambda pair: pair[0].name)
    programs: list[dict[str, Any]] = []
    modules: dict[str, Path] = {}
    for recipe, entry in pairs:
        for program in recipe.programs:
            memory = (stored or {}).get(program.name)
            programs.append(_describe(recipe, program, entry, memory))
            modules[program.file] = entry.folder / program.file
            if memory is not None:
                modules[memory_file(program)] = memory.folder / memory_file(program)
    licences = {
        recipe.name: entry.folder / LICENCES
        for recipe, entry in pairs
        if (entry.folder / LICENCES).is_dir()
    }
    contents = _Contents()
    for recipe, entry in pairs:
        contents.take(recipe, entry.folder / FILES)
        contents.take_own(recipe)
    contents.check_against(programs)
    contents.list_beside(programs)
    manifest = json.dumps(
        {
            "format": FORMAT,
            "programs": programs,
            "contents": {"file": CONTENTS, "sha256": contents.digest},
            **contents.listing(),
            "trees": contents.trees(),
        },
        indent=1,
    )
    if _holds(image, manifest, modules, licences, contents.size):
        return False
    image.parent.mkdir(parents=True, exist_ok=True)
    fresh = image.with_name(f"{image.name}.new-{os.getpid()}")
    with disk_errors(image.parent):
        try:
            remove_tree(fresh)
            fresh.mkdir()
            _copy_modules(programs, modules, fresh)
            contents.write(fresh / CONTENTS)
            for name, texts in licences.items():
                shutil.copytree(texts, fresh / LICENCES / name)
            text = licence_list([recipe for recipe, _ in pairs])
            (fresh / LICENCE_LIST).write_text(text, encoding="utf-8")
            (fresh / MANIFEST).write_text(manifest, encoding="utf-8")
            _swap(fresh, image)
        finally:
            remove_tree(fresh)
    return True


def memory_file(program: Program) -> str:
    """The file in the image with the memory that the program starts with."""
    return f"{program.name}.image"


def _describe(
    recipe: Recipe, program: Program, entry: Entry, memory: Entry | None
) -> dict[str, Any]:
    size, digest = entry.files[program.file]
    names = [installed_path(name) for name in program.names]
    plain = [] if program.plain is None else [program.plain]
    facts = {
        "name": program.name,
        "version": recipe.version,
        "licence": recipe.licence,
        "source": recipe.origin,
        "file": program.file,
        "sha256": digest,
        "size": size,
        "names": plain if memory is not None else names + plain,
    }
    if memory is not None:
        size, digest = memory.files[memory_file(program)]
        facts["prepared"] = {
            "names": names,
            "file": memory_file(program),
            "sha256": digest,
            "size": size,
            **json.loads((memory.folder / MEMORY_FACTS).read_text(encoding="utf-8")),
        }
    return facts


def _installed_names(program: Mapping[str, Any]) -> list[str]:
    return [*program["names"], *program.get("prepared", {"names": ()})["names"]]


class _Group:
    """Files that are listed together."""

    def __init__(self) -> None:
        self.files: list[_File] = []
        self.links: list[_Link] = []
        self.directories: list[_Directory] = []

    def take(self, other: _Group) -> None:
        self.files += other.files
        self.links += other.links
        self.directories += other.directories

    def listing(self) -> dict[str, Any]:
        return {"files": self.files, "links": self.links, "directories": self.directories}


class _Contents:
    """The image's files that are no programs, gathered into one."""

    def __init__(self) -> None:
        self._top = _Group()
        self._trees: dict[str, _Group] = {}
        self.size = 0
        self._parts: list[Path] = []
        self._offsets: dict[str, int] = {}
        self._owners: dict[str, str] = {}
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def take(self, recipe: Recipe, folder: Path) -> None:
        """Add what is in the folder, if there is one."""
        for file in sorted(folder.rglob("*")):
            path = f"/{file.relative_to(folder).as_posix()}"
            if file.is_symlink():
                self._group(path).links.append((path, os.readlink(file)))
            elif file.is_file():
                self._add(path, file, file.stat().st_mode & 0o7777)
            else:
                continue
            self._claim(recipe, path)

    def take_own(self, recipe: Recipe) -> None:
        """Add the files of the recipe's folder, and directories that nothing else makes."""
        for own in recipe.own_files:
            self._add(own.path, own.origin, _OWN_FILE_MODE)
            self._claim(recipe, own.path)
        for directory in recipe.directories:
            owner = _OWNERS[directory.owner]
            self._group(directory.path).directories.append((directory.path, owner))

    def listing(self) -> dict[str, Any]:
        """What every new sandbox knows."""
        return self._top.listing()

    def _add(self, path: str, file: Path, mode: int) -> None:
        self._group(path).files.append((path, mode, self._place(file), file.stat().st_size))

    def _claim(self, recipe: Recipe, path: str) -> None:
        if path in self._owners:
            raise BuildError(f"{recipe.name} installs {path}, as {self._owners[path]} does")
        self._owners[path] = recipe.name

    def _group(self, path: str) -> _Group:
        """Where a path is listed: with its tree, if it is deep enough to be in one."""
        parts = path.split("/")
        if len(parts) <= _TREE_DEPTH + 1:
            return self._top
        return self._trees.setdefault("/".join(parts[: _TREE_DEPTH + 1]), _Group())

    def list_beside(self, programs: Sequence[dict[str, Any]]) -> None:
        """A directory that holds a program is known from the start, and so no tree."""
        for program in programs:
            for name in _installed_names(program):
                root = "/".join(name.split("/")[: _TREE_DEPTH + 1])
                self._top.take(self._trees.pop(root, _Group()))

    def trees(self) -> list[dict[str, Any]]:
        """Directories that a sandbox reads only when somebody looks into them."""
        described = []
        for root, group in sorted(self._trees.items()):
            paths = [str(entry[0]) for entry in (*group.files, *group.links)]
            inside = [path.split("/") for path in paths]
            inside += [[*path.split("/"), ""] for path, _ in group.directories]
            folders = {
                "/".join(parts[:end])
                for parts in inside
                for end in range(_TREE_DEPTH + 2, len(parts))
            }
            right_inside = sum(folder.count("/") == _TREE_DEPTH + 1 for folder in folders)
            described.append(
                {
                    "path": root,
                    "inodes": len(paths) + len(folders),
                    "subdirs": right_inside,
                    **group.listing(),
                }
            )
        return described

    def _place(self, file: Path) -> int:
        """Where the content goes; equal contents are kept once."""
        content = file.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._offsets:
            self._offsets[digest] = self.size
            self._parts.append(file)
            self._hash.update(content)
            self.size += len(content)
        return self._offsets[digest]

    def check_against(self, programs: Sequence[dict[str, Any]]) -> None:
        for program in programs:
            for name in _installed_names(program):
                if name in self._owners:
                    raise BuildError(f"{self._owners[name]} installs {name}, a program's name")

    def write(self, target: Path) -> None:
        with target.open("wb") as out:
            for part in self._parts:
                _check_paths(part)
                out.write(part.read_bytes())
        if file_digest(target) != self.digest:
            raise BuildError("files in the cache changed while they were read", "Build again.")


def _copy_modules(
    programs: Sequence[dict[str, Any]], modules: dict[str, Path], fresh: Path
) -> None:
    for program in programs:
        for facts in (program, program.get("prepared")):
            if facts is None:
                continue
            copy = fresh / facts["file"]
            _check_paths(modules[facts["file"]])
            shutil.copyfile(modules[facts["file"]], copy)
            if file_digest(copy) != facts["sha256"]:
                raise BuildError(
                    f"{modules[facts['file']]} was changed after it was built",
                    "Remove it with `wasmsand build --clean` and build again.",
                )


def _check_paths(file: Path) -> None:
    """Raise `BuildError` if a file of the cache holds the path of the cache."""
    root = next((folder.parent for folder in file.parents if folder.name == BUILT), None)
    if root is not None and os.fsencode(root) in file.read_bytes():
        raise BuildError(
            f"{file} names the builder's directory",
            "Have the recipe leave command lines and paths of the build out of it.",
        )


def _holds(
    image: Path,
    manifest: str,
    modules: dict[str, Path],
    licences: dict[str, Path],
    contents_size: int,
) -> bool:
    try:
        return (
            (image / MANIFEST).read_text(encoding="utf-8") == manifest
            and (image / LICENCE_LIST).is_file()
            and (image / CONTENTS).stat().st_size == contents_size
            and all((image / LICENCES / name).is_dir() for name in licences)
            and all(
                (image / file).stat().st_size == origin.stat().st_size
                for file, origin in modules.items()
            )
        )
    except OSError:
        return False


def _swap(fresh: Path, image: Path) -> None:
    old = image.with_name(f"{image.name}.old-{os.getpid()}")
    if image.exists():
        image.rename(old)
    fresh.rename(image)
    remove_tree(old)


def compile_ahead(image: Path, step: Callable[[str], None]) -> int:
    """Have the engine compile every module and check stored memory now, so that no command waits
    for it later.

    Returns how many were compiled; `step` is told each program's name. Does nothing
    where the engine is not installed: the user space can be built without it.
    """
    try:
        engine: Any = importlib.import_module("wasmsand.engine").default_engine()
        programs: Any = importlib.import_module("wasmsand.machine").image_programs(image)
    except ImportError:
        return 0
    compiled = 0
    for program in programs:
        if not engine.is_compiled(program.sha256):
            step(f"compile {program.name}")
            engine.load(program.sha256, program.read)
            compiled += 1
        images = engine.abilities.memory_images
        if program.prepared is not None and images.find(program.prepared.memory) is None:
            images.load(program.prepared.memory)
    return compiled
