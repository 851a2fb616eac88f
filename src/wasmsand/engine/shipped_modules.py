"""Compiled modules that installed packages bring along.

Owns the index of such a package: which modules it has, for which engine, release and processor.
Rules: compiled modules are machine code, so nothing is used that the index does not name with its
hash. The index is trusted as far as the package's Python code is: whoever can change one can change
the other. Reading an index touches no compiled file. A damaged index counts as absent, because
programs can still be compiled here.

`scripts/make_wheels.py` writes these packages; `engine/wasmtime/shipped.py` opens their files.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

logger = logging.getLogger("wasmsand.engine")

PACKAGES: Final = ("wasmsand_native", "wasmsand_packages_native")
"""The Python packages that may bring compiled modules: one beside `wasmsand`, one beside
`wasmsand_packages`."""
INDEX_NAME: Final = "index.json"
INDEX_FORMAT: Final = 1
SUFFIX: Final = ".cwasm"


@dataclass(frozen=True, slots=True)
class ShippedFile:
    """One file of a package, and the hash of its content."""

    path: Path
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class ShippedIndex:
    """The compiled modules of one package."""

    directory: Path
    engine: str
    release: str
    """The exact release of the engine whose compiler made them."""
    target: str
    """The triple of the system they were compiled for."""
    processor: str
    """The least processor that runs them, for messages: `x86-64`."""
    probe: ShippedFile
    """An empty module, compiled with the same settings. If an engine accepts it, it accepts the
    others."""
    modules: Mapping[str, ShippedFile]
    """By content key: the hash of the portable module."""


def read_index(directory: Path) -> ShippedIndex | None:
    """The index in a directory; None if it has none that this version understands."""
    try:
        document = json.loads((directory / INDEX_NAME).read_text("utf-8"))
        if document["format"] != INDEX_FORMAT:
            return None
        return ShippedIndex(
            directory=directory,
            engine=document["engine"],
            release=document["release"],
            target=document["target"],
            processor=document["processor"],
            probe=_file(directory, document["probe"]),
            modules={key: _file(directory, entry) for key, entry in document["modules"].items()},
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        logger.warning("%s is damaged (%r): reinstall the package", directory / INDEX_NAME, error)
        return None


def index_text(index: ShippedIndex) -> str:
    """The index as `read_index` reads it."""
    return json.dumps(
        {
            "format": INDEX_FORMAT,
            "engine": index.engine,
            "release": index.release,
            "target": index.target,
            "processor": index.processor,
            "probe": _entry(index.probe),
            "modules": {key: _entry(index.modules[key]) for key in sorted(index.modules)},
        },
        indent=1,
    )


@cache
def installed_indexes() -> tuple[ShippedIndex, ...]:
    """The indexes of the packages that are installed."""
    found = []
    for name in PACKAGES:
        spec = find_spec(name)
        for place in () if spec is None else spec.submodule_search_locations or ():
            index = read_index(Path(place))
            if index is not None:
                found.append(index)
    return tuple(found)


def _file(directory: Path, entry: Mapping[str, Any]) -> ShippedFile:
    name, sha256, size = entry["file"], entry["sha256"], entry["size"]
    if not (isinstance(name, str) and isinstance(sha256, str) and isinstance(size, int)):
        raise ValueError(f"not an entry: {entry!r}")
    if Path(name).name != name:
        raise ValueError(f"{name!r} is not in the directory of the package")
    return ShippedFile(directory / name, sha256, size)


def _entry(file: ShippedFile) -> dict[str, object]:
    return {"file": file.path.name, "sha256": file.sha256, "size": file.size}
