"""The files of an image that are no programs.

Owns `ImageContents`, which gathers them into one file, and how the manifest lists them. Rules:
equal contents are kept once; two recipes cannot install the same path; no file names the builder's
directories.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from userland.builder.cache import BUILT
from userland.builder.errors import BuildError
from userland.builder.keys import file_digest
from userland.builder.recipe import Recipe

_OWN_FILE_MODE = 0o644
# /usr/share/zoneinfo is a tree that a sandbox need not know before it looks into it.
_TREE_DEPTH = 3
REGISTRY = "/usr/lib/python/"
"""Python packages: each directory in it is a tree, and two images may both have some."""

_File = tuple[str, int, int, int]
"""Path, permissions, and where in `CONTENTS`: offset and size."""
_Link = tuple[str, str]
"""Path and target."""
_Directory = tuple[str, int]
"""Path, and the user and group that it belongs to."""
_OWNERS = {"root": 0, "user": 1000}


def installed_names(program: Mapping[str, Any]) -> list[str]:
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


class ImageContents:
    """The image's files that are no programs, gathered into one."""

    def __init__(self) -> None:
        self._top = _Group()
        self._trees: dict[str, _Group] = {}
        self.size = 0
        self._parts: list[Path | bytes] = []
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
            self._claim(recipe.name, path)

    def take_own(self, recipe: Recipe) -> None:
        """Add the files of the recipe's folder, and directories that nothing else makes."""
        for own in recipe.own_files:
            self._add(own.path, own.origin, _OWN_FILE_MODE)
            self._claim(recipe.name, own.path)
        for directory in recipe.directories:
            owner = _OWNERS[directory.owner]
            self._group(directory.path).directories.append((directory.path, owner))

    def listing(self) -> dict[str, Any]:
        """What every new sandbox knows."""
        return self._top.listing()

    def add(self, path: str, content: bytes) -> None:
        """Add a file that no recipe has."""
        self._add(path, content, _OWN_FILE_MODE)
        self._claim("the builder", path)

    def _add(self, path: str, file: Path | bytes, mode: int) -> None:
        content = _content(file)
        self._group(path).files.append((path, mode, self._place(file, content), len(content)))

    def _claim(self, owner: str, path: str) -> None:
        if path in self._owners:
            raise BuildError(f"{owner} installs {path}, as {self._owners[path]} does")
        self._owners[path] = owner

    def _group(self, path: str) -> _Group:
        """Where a path is listed: with its tree, if it is deep enough to be in one."""
        root = _tree_of(path)
        return self._top if root is None else self._trees.setdefault(root, _Group())

    def list_beside(self, programs: Sequence[dict[str, Any]]) -> None:
        """A directory that holds a program is known from the start, and so no tree."""
        for program in programs:
            for name in installed_names(program):
                self._top.take(self._trees.pop(_tree_of(name) or name, _Group()))

    def trees(self) -> list[dict[str, Any]]:
        """Directories that a sandbox reads only when somebody looks into them.

        The list of a directory's files is put among the contents, as JSON: call this method after
        the last file was added.
        """
        described = []
        for root, group in sorted(self._trees.items()):
            paths = [str(entry[0]) for entry in (*group.files, *group.links)]
            inside = [path.split("/") for path in paths]
            inside += [[*path.split("/"), ""] for path, _ in group.directories]
            depth = root.count("/")
            folders = {
                "/".join(parts[:end]) for parts in inside for end in range(depth + 2, len(parts))
            }
            listing = json.dumps(group.listing(), separators=(",", ":")).encode()
            right_inside = sum(folder.count("/") == depth + 1 for folder in folders)
            described.append(
                {
                    "path": root,
                    "inodes": len(paths) + len(folders),
                    "subdirs": right_inside,
                    "listing": [self._place(listing, listing), len(listing)],
                }
            )
        return described

    def _place(self, file: Path | bytes, content: bytes) -> int:
        """Where the content goes; equal contents are kept once."""
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._offsets:
            self._offsets[digest] = self.size
            self._parts.append(file)
            self._hash.update(content)
            self.size += len(content)
        return self._offsets[digest]

    def check_against(self, programs: Sequence[dict[str, Any]]) -> None:
        for program in programs:
            for name in installed_names(program):
                if name in self._owners:
                    raise BuildError(f"{self._owners[name]} installs {name}, a program's name")

    def write(self, target: Path) -> None:
        with target.open("wb") as out:
            for part in self._parts:
                if isinstance(part, Path):
                    check_paths(part)
                out.write(_content(part))
        if file_digest(target) != self.digest:
            raise BuildError("files in the cache changed while they were read", "Build again.")


def _tree_of(path: str) -> str | None:
    """The directory with a listing of its own that a path is in, if it is deep enough."""
    depth = _TREE_DEPTH + path.startswith(REGISTRY)
    parts = path.split("/")
    return "/".join(parts[: depth + 1]) if len(parts) > depth + 1 else None


def _content(file: Path | bytes) -> bytes:
    return file.read_bytes() if isinstance(file, Path) else file


def check_paths(file: Path) -> None:
    """Raise `BuildError` if a file of the cache holds the path of the cache."""
    root = next((folder.parent for folder in file.parents if folder.name == BUILT), None)
    if root is not None and os.fsencode(root) in file.read_bytes():
        raise BuildError(
            f"{file} names the builder's directory",
            "Have the recipe leave command lines and paths of the build out of it.",
        )
