"""Trees that new sandboxes with packages start from.

Owns the registry of the image and a cache of trees, one for each set of packages. Rules: a tree is
the image with the links of its packages, frozen; all sandboxes with the same packages share it, so
that creating one costs a look-up. The registry is read once in a host process.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from wasmsand.engine.forking import in_child
from wasmsand.kernel.vfs import Credentials, FrozenTree, Namespace, TreeFs
from wasmsand.machine.image import base_image, image_with_wasm_programs
from wasmsand.machine.packages.links import Links
from wasmsand.machine.packages.registry import Registry, directory_of
from wasmsand.machine.packages.resolution import resolve
from wasmsand.machine.wasm_programs import WasmProgram

_ADVICE = (
    " For other packages use sandbox.packages.install, which takes them from the package index."
)


@lru_cache(maxsize=1)
def registry() -> Registry:
    """The registry of this host's image. Raises `ImageMissing`."""
    return Registry(base_image())


# A thread that does not exist in a forked process may have held the registry's lock.
in_child(registry.cache_clear)


def image_with_packages(
    requirements: tuple[str, ...], user: Credentials, programs: tuple[WasmProgram, ...] = ()
) -> FrozenTree:
    """The image with these packages and their dependencies installed for `user`, and the programs
    of `wasm_dir`. Raises `PackageProblem`, `InvalidPackageName`."""
    return _tree(_resolved(requirements), user, programs)


@lru_cache(maxsize=256)
def _resolved(requirements: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(resolve(requirements, registry(), advice=_ADVICE)))


@lru_cache(maxsize=32)
def _tree(
    names: tuple[str, ...], user: Credentials, programs: tuple[WasmProgram, ...]
) -> FrozenTree:
    base = image_with_wasm_programs(programs) if programs else base_image()
    if not names:
        return base
    return tree_with(base, registry(), names, user)


def tree_with(
    base: FrozenTree, known: Registry, names: Iterable[str], user: Credentials
) -> FrozenTree:
    """A tree with these packages of its registry installed for `user`."""
    tree = TreeFs(base)
    links = Links(Namespace(tree), user)
    for name in names:
        package = known.get(name)
        assert package is not None, "resolved packages are in the registry"
        links.install(directory_of(name), package)
    links.choose_interpreter()
    return tree.freeze()
