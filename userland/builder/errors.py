"""Everything that can go wrong in a build, each with what to do about it.

    BuildError
    ├── RecipeError          a recipe file is wrong
    ├── MissingTool          a program of the toolchain is not there and cannot be installed
    ├── FetchError
    │   ├── NoNetwork        a registry cannot be reached
    │   ├── SourceVanished   the registry no longer has this version
    │   └── HashMismatch     what came is not what the recipe names
    ├── DiskFull             no room for the cache
    ├── StepFailed           a configure, make or wasm-opt ended with an error
    ├── BadModule            a linked module breaks the guest ABI
    ├── InputsChanged        a file of the recipe was edited while it was built
    ├── NotReproducible      the same inputs gave different bytes
    └── Interrupted          the user stopped the build

Rule: the message says what happened, `advice` says what to do. Both are shown; a
traceback is only for bugs of the builder.
"""

from __future__ import annotations

from pathlib import Path


class BuildError(Exception):
    """Base of all: `str(error)` is what happened, `error.advice` what to do."""

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
    """The registry answers, and has not got this version."""


class HashMismatch(FetchError):
    """The file fetched has other content than the recipe pins."""

    def __init__(self, what: str, expected: str, actual: str) -> None:
        super().__init__(
            f"{what} has the wrong content\n  expected {expected}\n  received {actual}",
            "Nothing was kept. Try again: a proxy or mirror may have sent a damaged file. If it "
            "happens again the file was replaced upstream: look at what changed before you put "
            "a new hash into the recipe.",
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
    """A command of a build ended with an error; its log is kept."""

    def __init__(self, recipe: str, step: str, reason: str, log: Path, tail: str) -> None:
        super().__init__(
            f"{recipe}: {step} failed: {reason}\n{tail}",
            f"The whole log: {log}",
        )
        self.log = log


class BadModule(BuildError):
    """A program was linked, and would not run on the kernel as it is."""


class InputsChanged(BuildError):
    """What was built is of no known content, and was thrown away."""

    def __init__(self, recipe: str) -> None:
        super().__init__(f"{recipe}: its files were changed while it was built", "Build again.")


class NotReproducible(BuildError):
    """A second build of the same inputs gave other bytes than the first."""


class Interrupted(BuildError):
    """The build was stopped from outside; nothing half-done is left."""

    def __init__(self) -> None:
        super().__init__(
            "stopped", "What was finished is in the cache: build again and it goes on from there."
        )
