"""The base class of all suites: it makes trees, keys and areas.

Owns `ProgramSuite`. A suite defines how the tree of a side is made, which tests there are and
how one is run in an area; everything else is here. Rules: the tree of a side is made once and
kept in the build cache; each test gets a fresh copy of it.
"""

from __future__ import annotations

import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformance.area import Area, Ended
from conformance.builds import reference_key
from conformance.native import NativeTemplate
from conformance.sandboxed import image_with, sandbox_area
from conformance.suite import SIDES, Outcome, Side
from conformance.supplies import Supplies, Workplace, code_digest, product_digest
from wasmsand.kernel.vfs import FrozenTree

_CODE: Mapping[Side, Sequence[str]] = {
    "native": ("area.py", "native.py"),
    "sandbox": ("area.py", "sandboxed.py"),
}
_TREE = "tree"


class _PatientArea:
    """An area that multiplies every time limit."""

    def __init__(self, area: Area, patience: float) -> None:
        self._area = area
        self._patience = patience
        self.tree = area.tree
        self.results = area.results
        self.home = area.home
        self.temporary = area.temporary
        self.search_path = area.search_path
        self.variables = area.variables
        self.kept = area.kept

    def run(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float
    ) -> Ended:
        """See `Area.run`."""
        return self._area.run(argv, cwd=cwd, env=env, timeout=timeout * self._patience)


class ProgramSuite(ABC):
    """The test suite of the tarball that a recipe pins."""

    name: str
    """See `Suite.name`; also the name of the recipe, unless `recipe_name` is set."""
    recipe_name: str = ""
    """The name of the recipe, if it is another one."""
    program: str
    """The name of the program, for display."""
    code: Sequence[str]
    """The files of this package that decide outcomes, besides those of all suites."""
    patience: float = 1.0
    """See `Suite.patience`."""

    def __init__(self, supplies: Supplies) -> None:
        self.supplies = supplies
        self.recipe = supplies.recipe(self.recipe_name or self.name)
        self.title = f"{self.program} {self.recipe.version}"
        self._trees: dict[Side, Path] = {}
        self._lock = threading.Lock()
        self._template: NativeTemplate | None = None
        self._image: FrozenTree | None = None

    # What a suite defines.

    def ingredients(self, side: Side) -> Sequence[str]:
        """What a side's tree is made from, besides `code`."""
        return [self.recipe.source.sha256, self.reference(side)]

    @abstractmethod
    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Fill the empty directory `tree`."""

    @abstractmethod
    def tests(self) -> Sequence[str]:
        """See `Suite.tests`."""

    @abstractmethod
    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """Run one test in an area of its own."""

    # What follows from that.

    def reference(self, side: Side) -> str:
        """An ingredient: the key of the reference build, on which only the native tree depends."""
        return reference_key(self.supplies, self.recipe) if side == "native" else ""

    def unpack(self, place: Workplace, tree: Path, *folders: str) -> Path:
        """Unpack the recipe's source and copy these folders to the tree; returns the source."""
        source = self.supplies.unpack(self.recipe, place)
        for folder in folders:
            shutil.copytree(source / folder, tree / folder)
        return source

    def prepare(self) -> None:
        """Make the trees."""
        self.supplies.locales  # noqa: B018  # made when first asked for
        for side in SIDES:
            self.tree(side)

    def tree(self, side: Side) -> Path:
        """The tree of a side, as its tests see it."""
        if side not in self._trees:
            folder = self.supplies.made(
                f"conformance-{self.name}-{side}",
                [code_digest(*self.code), *self.ingredients(side)],
                lambda place: self._make_tree(side, place),
            )
            self._trees[side] = folder / _TREE
        return self._trees[side]

    def _make_tree(self, side: Side, place: Workplace) -> None:
        tree = place.outputs / _TREE
        tree.mkdir()
        self.make_tree(side, tree, place)

    def key(self, side: Side) -> str:
        """See `Suite.key`."""
        ingredients = [code_digest(*_CODE[side]), self.tree(side).parent.name]
        if side == "sandbox":
            ingredients.append(product_digest())
        return "-".join(ingredients)

    def run(self, test: str, side: Side) -> Outcome:
        """See `Suite.run`."""
        with self._area(side) as area:
            return self.run_in(_PatientArea(area, self.patience), test, side)

    @contextmanager
    def _area(self, side: Side) -> Iterator[Area]:
        if side == "native":
            with self._lock:
                if self._template is None:
                    self._template = NativeTemplate(self.tree(side), self.supplies.locales)
            with self._template.area() as area:
                yield area
        else:
            with self._lock:
                if self._image is None:
                    self._image = image_with(self.tree(side))
            with sandbox_area(self._image) as sandbox:
                yield sandbox
