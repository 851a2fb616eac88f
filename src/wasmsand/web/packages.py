"""Python packages of a sandbox in a JavaScript host.

Owns the tree that a sandbox with packages starts from. Rules: as in `machine/packages`. The
compiled packages are a second image, which the host shows when a sandbox first wants one of them;
its programs and files are fetched when they are used.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from wasmsand.kernel.vfs import FrozenTree
from wasmsand.machine.host_process import USER
from wasmsand.machine.image import image_at
from wasmsand.machine.packages.offered import tree_with
from wasmsand.machine.packages.problems import PackageFault, PackageProblem
from wasmsand.machine.packages.registry import Registry
from wasmsand.machine.packages.resolution import ALL, resolve
from wasmsand.sdk.package_requests import package_problems
from wasmsand.web.host import WebHost

_ADVICE: Final = " For other packages allow an index with network, and use pip."


def image_with_packages(
    host: WebHost, image: str, base: FrozenTree, requirements: tuple[str, ...]
) -> FrozenTree:
    """The tree of the image in the directory `image` with these packages. `PackageError` if there
    is no such package, or if the assets have no compiled packages."""
    with package_problems():
        if ALL not in requirements:
            try:
                return _installed(base, requirements)
            except PackageProblem as problem:
                if problem.kind is not PackageFault.NOT_BUILT:
                    raise
                missing = problem
        further = host.show_packages()
        if further:
            return _installed(_both(image, further), requirements)
        if ALL in requirements:
            return _installed(base, requirements)
        raise PackageProblem(
            missing.kind,
            missing.package,
            f"the assets have no compiled packages, such as {missing.package}: build them with"
            " 'make packages', then 'npm run assets' in web/",
        )


@cache
def _both(image: str, further: str) -> FrozenTree:
    return image_at(Path(image), Path(further))


def _installed(base: FrozenTree, requirements: tuple[str, ...]) -> FrozenTree:
    known = Registry(base)
    names = sorted(resolve(requirements, known, advice=_ADVICE))
    return tree_with(base, known, names, USER.credentials())
