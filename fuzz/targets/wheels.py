"""Wheels of a package index.

An input is a byte, which says how the rest is read: as the bytes of a wheel, or as names and
contents of the files of one. Rules: a wheel is accepted, or refused with `BadWheel`; an accepted
one can be installed and uninstalled, or is refused with `PackageProblem`; afterwards nothing is
left of it, and nothing was written outside its directory.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from fuzz.target import Finding, Source, Target
from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.vfs import Credentials, FrozenTree, ImageBuilder, Namespace, TreeFs
from wasmsand.machine.packages.links import Links
from wasmsand.machine.packages.metadata import BadMetadata
from wasmsand.machine.packages.problems import PackageProblem
from wasmsand.machine.packages.reading import REGISTRY, SITE_PACKAGES, names_in
from wasmsand.machine.packages.wheel_cache import CachedWheel, NotCached, add_wheel, load_fresh
from wasmsand.machine.packages.wheels import BadWheel

_USER: Final = Credentials(1000, 1000)
_INFO: Final = "demo-1.0.dist-info"
_METADATA: Final = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nRequires-Dist: six\n"
_TAG: Final = b"Wheel-Version: 1.0\nTag: py3-none-any\n"
_SCRIPTS: Final = b"[console_scripts]\ntool = demo.cli:main\n"
_NAMES: Final = (
    "demo/__init__.py", "demo.py", f"{_INFO}/METADATA", f"{_INFO}/WHEEL", f"{_INFO}/RECORD",
    f"{_INFO}/entry_points.txt", "demo-1.0.data/scripts/run", "demo-1.0.data/purelib/x/y.py",
    "../up", "/abs", "demo/../x", "demo//x", "demo/__init__.py/x", "__pycache__/demo.pyc",
    "other-2.0.dist-info/METADATA", f"{_INFO}/native.txt", f"{_INFO}/scripts/run", "a/" * 300,
    "demo-1.0.data/purelib/", "", ".", "demo/\x00x", "x" * 300, "demo/d/", "demo/d",
)  # fmt: skip
_CONTENTS: Final = (
    b"", _METADATA, _TAG, _SCRIPTS, b"#!python\nprint(1)\n", b"x = 1\n", b"Name: other\n",
    b"Tag: cp314-cp314-linux\n", b"[console_scripts]\n../x = a:b\n", b"\xff\xfe" * 40,
    _METADATA + b"Requires-Dist: a b\n", b"[console_scripts]\nsh = os:system\n",
)  # fmt: skip


def _wheel(*files: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


@cache
def _image() -> FrozenTree:
    builder = ImageBuilder()
    for path in (SITE_PACKAGES, b"/usr/local/bin"):
        builder.add_dir(path, 0o755, 1000, 1000)
    builder.add_dir(REGISTRY)
    return builder.build()


class Wheels(Target):
    """What `sandbox.packages.install` downloads."""

    name = "wheels"
    about = "wheels that the host installs in a sandbox"
    words = (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"../", _INFO.encode(), _METADATA, _TAG)

    def seeds(self) -> Iterable[bytes]:
        info = [(f"{_INFO}/METADATA", _METADATA), (f"{_INFO}/WHEEL", _TAG)]
        yield b"\0" + _wheel(("demo/__init__.py", b"x = 1\n"), *info)
        yield b"\0" + _wheel(("demo.py", b""), (f"{_INFO}/entry_points.txt", _SCRIPTS), *info)
        yield b"\0" + _wheel(("../up", b"x"), *info)
        yield bytes([1, 2, 1, 3, 2, 0, 5, 5, 3, 6, 4])
        yield bytes([1, 2, 1, 3, 2, 1, 5, 13, 5, 7, 5, 16, 4])

    def run(self, data: bytes) -> None:
        source = Source(data)
        content = data[1:]
        if source.byte() & 1:
            files: dict[str, bytes] = {}
            while not source.ended and len(files) < 40:
                files[source.choice(_NAMES)] = source.choice(_CONTENTS)
            content = _wheel(*files.items())
        with tempfile.TemporaryDirectory(prefix="fuzz-wheels-") as place:
            file = Path(place) / "demo-1.0-py3-none-any.whl"
            file.write_bytes(content)
            directory = Path(place) / "cache"
            try:
                sha256 = add_wheel(file, lambda _tree, _name: {}, directory)
                wheel = load_fresh(sha256, directory)
            except BadWheel:
                return
            except (NotCached, BadMetadata) as error:
                raise Finding("cache", f"a wheel that was added is not there: {error!r}") from None
            _install_and_uninstall(wheel)
            outside = {path.name for path in Path(place).iterdir()} - {file.name, "cache"}
            if outside:
                raise Finding("escape", f"files outside the cache: {outside}")


def _install_and_uninstall(wheel: CachedWheel) -> None:
    name = wheel.metadata.key.encode()
    tree = TreeFs(_image())
    namespace = Namespace(tree)
    parent = namespace.resolve(_USER, namespace.root, REGISTRY)
    tree.attach(parent.ino, name, wheel.tree)
    directory = REGISTRY + b"/" + name
    links = Links(namespace, _USER)
    try:
        links.install(directory, wheel.metadata)
        Links(namespace, _USER).uninstall(directory, wheel.metadata)
    except (PackageProblem, KernelError):
        links.undo()
    left = names_in(namespace, SITE_PACKAGES)
    if [entry for entry in left if entry != b"__pycache__"]:
        raise Finding("left", f"after uninstalling, site-packages has {left}")
