"""The errors of a build. Each says what happened and what to do.

    BuildError
    ├── RecipeError          a recipe file is wrong
    ├── MissingTool          a program of the toolchain is missing and cannot be installed
    ├── FetchError
    │   ├── NoNetwork        a registry cannot be reached
    │   ├── SourceVanished   the registry no longer has this version
    │   └── HashMismatch     the file received is not the one that the recipe pins
    ├── DiskFull             no room for the cache
    ├── StepFailed           a configure, make or wasm-opt failed
    ├── BadModule            a linked module breaks the guest ABI
    ├── InputsChanged        a file of the recipe was edited during the build
    ├── NotReproducible      the same inputs gave different bytes
    └── Interrupted          the user stopped the build

Rule: the message says what happened, and `advice` says what to do. Both are shown. Only a bug of
the builder shows a traceback.
"""

from __future__ import annotations

from pathlib import Path


class BuildError(Exception):
    """The base class: `str(error)` says what happened, `error.advice` what to do."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class RecipeError(BuildError):
    """A recipe file cannot be used; the message names file and field."""


class MissingTool(BuildError):
    """A needed program is not installed."""


class FetchError(BuildError):
    """A source or tool could not be fetched."""


class NoNetwork(FetchError):
    """The registry did not answer."""


class SourceVanished(FetchError):
    """The registry answers, but no longer has this version."""


class HashMismatch(FetchError):
    """The content of the fetched file is not what the recipe pins."""

    def __init__(self, what: str, expected: str, actual: str) -> None:
        super().__init__(
            f"{what} has the wrong content\n  expected {expected}\n  received {actual}",
            "The file was not kept. Try again: a proxy or mirror may have sent a damaged file. If "
            "it happens again, upstream has replaced the file: look at what changed before you "
            "put a new hash into the recipe.",
        )
        self.expected = expected
        self.actual = actual


class DiskFull(BuildError):
    """No space left for the build."""

    def __init__(self, where: Path) -> None:
        super().__init__(
            f"no space left on the disk that holds {where}",
            "Free some space (a full build needs about 1 GB), remove old builds with "
            "`wasmsand build --clean`, or set WASMSAND_CACHE to a directory on another disk.",
        )


class StepFailed(BuildError):
    """A command of a build failed; its log is kept."""

    def __init__(self, recipe: str, step: str, reason: str, log: Path, tail: str) -> None:
        super().__init__(
            f"{recipe}: {step} failed: {reason}\n{tail}",
            f"The whole log: {log}",
        )
        self.log = log


class BadModule(BuildError):
    """A program was linked, but the kernel could not run it."""


class InputsChanged(BuildError):
    """The inputs changed during the build, so its output was discarded."""

    def __init__(self, recipe: str) -> None:
        super().__init__(f"{recipe}: its files were changed during the build", "Build again.")


class NotReproducible(BuildError):
    """Two builds of the same inputs gave different bytes."""


class Interrupted(BuildError):
    """The user stopped the build; nothing incomplete is left."""

    def __init__(self) -> None:
        super().__init__("stopped", "Finished recipes are in the cache: build again to continue.")
