"""The built machine: where it is, and what it consists of.

Owns reading the manifest that `wasmsand build v86` writes. Rules: the directory is outside git and
never written here; an error says which command builds it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wasmsand.sdk.errors import ImageMissingError

FORMAT: Final = 1
VARIABLE: Final = "WASMSAND_V86_IMAGE"
"""The environment variable that names another directory."""
DEFAULT_DIRECTORY: Final = Path(__file__).resolve().parents[1] / "_v86"
BUILD_COMMAND: Final = "wasmsand build v86"


@dataclass(frozen=True, slots=True)
class V86Image:
    """The files of a built machine."""

    directory: Path
    memory_bytes: int
    """What the machine has."""
    most_memory_bytes: int
    """What commands may use of it at most."""
    scratch_bytes: int
    """The size of the disk for what users write."""
    most_disk_bytes: int
    """What users may write at most: some of the disk is needed for the file system itself."""
    most_inodes: int
    files: dict[str, str]
    """The sha256 of each file, by name."""
    versions: dict[str, str]

    @property
    def node(self) -> Path:
        """The program."""
        return self.directory / "node"


def find_image() -> V86Image:
    """The built machine. Raises `ImageMissingError`."""
    directory = Path(os.environ.get(VARIABLE) or DEFAULT_DIRECTORY).absolute()
    try:
        manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise ImageMissingError(
                f"the v86 machine in {directory} was built by another version of wasmsand; build "
                f"it again: {BUILD_COMMAND}"
            )
        return V86Image(
            directory,
            int(manifest["memory_bytes"]),
            int(manifest["most_memory_bytes"]),
            int(manifest["scratch_bytes"]),
            int(manifest["most_disk_bytes"]),
            int(manifest["most_inodes"]),
            {str(name): str(digest) for name, digest in manifest["files"].items()},
            {str(name): str(version) for name, version in manifest["versions"].items()},
        )
    except FileNotFoundError:
        raise ImageMissingError(
            f"the v86 machine is not built; build it (in a source checkout): {BUILD_COMMAND}"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImageMissingError(
            f"the v86 machine in {directory} cannot be used ({error}); build it again: "
            f"{BUILD_COMMAND}"
        ) from None
