"""Files of a web page that a server sends.

Owns `Pages`: a directory, read once, and the headers of each file. Rules: only files that were
there at the start are served, found by their whole name, so that no path of a request reaches the
file system. `headers.json` in the directory says which headers a file gets; it is the only source
of the page's Content-Security-Policy and of the headers that isolate it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import BinaryIO

HEADERS_FILE = "headers.json"
INDEX = "index.html"
_EVERY_FILE = "*"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
}
_OTHER_TYPE = "application/octet-stream"
_HASHED = ".bin"
"""Files with this suffix are named by their content, so that a browser may keep them."""


class PagesMissing(Exception):
    """The directory has no page; the message says which file is missing."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file."""

    path: Path
    headers: dict[str, str]
    content: bytes | None = None
    """Replaces the content of the path."""

    def open(self) -> BinaryIO:
        """The content. Raises `OSError`."""
        return self.path.open("rb") if self.content is None else BytesIO(self.content)


class Pages:
    """The files of one directory."""

    def __init__(self, directory: Path) -> None:
        """Raises `PagesMissing`."""
        try:
            table = json.loads((directory / HEADERS_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PagesMissing(f"{directory / HEADERS_FILE}: {error}") from None
        self._directory, self._table = directory, table
        self._files = {name: _file(directory, name, table) for name in sorted(_names(directory))}
        if INDEX not in self._files:
            raise PagesMissing(f"{directory / INDEX} is missing")

    def read_all(self) -> dict[str, tuple[bytes, dict[str, str]]]:
        """Content and headers of every file by its name; the index has an empty name too."""
        read = {name: (_read(file), file.headers) for name, file in self._files.items()}
        return {"": read[INDEX], **read}

    def find(self, name: str) -> PageFile | None:
        """The file with this name, relative to the directory; an empty name is the index."""
        return self._files.get(name or INDEX)

    def replace(self, name: str, content: bytes) -> None:
        """Serve this content as a file with this name, which need not exist."""
        found = self._files.get(name) or _file(self._directory, name, self._table)
        self._files[name] = replace(found, content=content)

    def change_header(self, name: str, header: str, change: Callable[[str], str]) -> None:
        """Change a header of a file, if the file exists and has it."""
        found = self._files.get(name)
        if found is not None and header in found.headers:
            headers = {**found.headers, header: change(found.headers[header])}
            self._files[name] = replace(found, headers=headers)


def read_pages(directory: str | None) -> dict[str, tuple[bytes, dict[str, str]]]:
    """See `Pages.read_all`; nothing if there is no directory. Raises `PagesMissing`."""
    return {} if directory is None else Pages(Path(directory)).read_all()


def _read(file: PageFile) -> bytes:
    with file.open() as content:
        return content.read()


def _names(directory: Path) -> Iterator[str]:
    for place, _, names in os.walk(directory):
        for name in names:
            path = Path(place) / name
            if stat.S_ISREG(path.lstat().st_mode):
                yield path.relative_to(directory).as_posix()


def _file(directory: Path, name: str, table: dict[str, dict[str, str]]) -> PageFile:
    suffix = PurePosixPath(name).suffix
    kept = "public, max-age=31536000, immutable" if suffix == _HASHED else "no-cache"
    headers = {
        "Content-Type": _TYPES.get(suffix, _OTHER_TYPE),
        "Cache-Control": kept,
        **table.get(_EVERY_FILE, {}),
        **table.get(name, {}),
    }
    return PageFile(directory / name, headers)
