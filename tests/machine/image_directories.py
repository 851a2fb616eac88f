"""Image directories as the builder writes them, for tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from wasmsand.machine.image_directory import MANIFEST_FORMAT


def program_entry(directory: Path, name: str, module: bytes, *names: str) -> dict[str, Any]:
    """Write a module; returns the manifest's entry for it."""
    (directory / f"{name}.wasm").write_bytes(module)
    return {
        "name": name,
        "version": "1",
        "licence": "none",
        "source": "here",
        "file": f"{name}.wasm",
        "sha256": hashlib.sha256(module).hexdigest(),
        "size": len(module),
        "names": list(names),
    }


def prepared_entry(
    directory: Path,
    name: str,
    content: bytes,
    *names: str,
    first: int,
    memory_size: int,
    variables: Mapping[str, int] | None = None,
    entry: str = "_resume",
) -> dict[str, Any]:
    """Write a file with stored memory; returns what the manifest says of it."""
    (directory / f"{name}.image").write_bytes(content)
    return {
        "names": list(names),
        "file": f"{name}.image",
        "sha256": hashlib.sha256(content).hexdigest(),
        "size": len(content),
        "first": first,
        "memory_size": memory_size,
        "variables": dict(variables or {}),
        "entry": entry,
    }


def write_manifest(
    directory: Path, programs: Iterable[Mapping[str, Any]], *, base: Mapping[str, str] | None = None
) -> Path:
    """Complete a directory that has these programs. With `base` it completes another image."""
    (directory / "files.bin").write_bytes(b"")
    manifest = {
        "format": MANIFEST_FORMAT,
        "programs": list(programs),
        "contents": {"file": "files.bin", "sha256": ""},
        "files": [],
        "links": [],
        "directories": [],
        "trees": [],
    }
    if base is not None:
        manifest["base"] = dict(base)
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return directory
