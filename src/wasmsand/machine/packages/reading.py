"""Reads packages in a file system: directories, and the metadata in them.

Rules: everything is read as root through the namespace of one sandbox, with its lock held; the
guest may have written any of it, so sizes are bounded and only regular files are read.
"""

from __future__ import annotations

from typing import Final

from wasmsand.kernel.errno import KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFMT, S_IFREG
from wasmsand.kernel.vfs import ROOT, Namespace, Node
from wasmsand.machine.packages.metadata import (
    METADATA_BYTES_MAX,
    BadMetadata,
    PackageMetadata,
    parse_metadata,
)

REGISTRY: Final = b"/usr/lib/python"
STANDARD_LIBRARY: Final = b"/usr/lib/python3.14"
SITE_PACKAGES: Final = STANDARD_LIBRARY + b"/site-packages"
DIST_INFO: Final = b".dist-info"
ENTRIES_MAX: Final = 20_000
"""Names of one directory that are looked at."""
_STEP: Final = 1024


def names_in(namespace: Namespace, directory: bytes) -> list[bytes]:
    """The names in a directory, sorted; none if there is no such directory."""
    node = _node(namespace, directory)
    if node is None or namespace.stat(node).mode & S_IFMT != S_IFDIR:
        return []
    found: list[bytes] = []
    cookie = 0
    while len(found) < ENTRIES_MAX and (step := namespace.readdir(node, cookie, _STEP)):
        cookie = step[-1].cookie
        found += [entry.name for entry in step if entry.name not in (b".", b"..")]
    return sorted(found)


def read_small(namespace: Namespace, path: bytes) -> bytes | None:
    """The content of a regular file, or of its beginning if it is large; None if there is no
    such file."""
    node = _node(namespace, path)
    if node is None or namespace.stat(node).mode & S_IFMT != S_IFREG:
        return None
    return namespace.read(node, 0, METADATA_BYTES_MAX)


def read_dist_info(namespace: Namespace, directory: bytes) -> PackageMetadata | None:
    """What a dist-info directory says; None if it is not a valid one."""
    metadata = read_small(namespace, directory + b"/METADATA")
    if metadata is None:
        return None
    entry_points = read_small(namespace, directory + b"/entry_points.txt") or b""
    native = read_small(namespace, directory + b"/native.txt") or b""
    try:
        return parse_metadata(metadata, entry_points, native)
    except BadMetadata:
        return None


def read_package(namespace: Namespace, directory: bytes) -> PackageMetadata | None:
    """What the package in a directory says about itself; None if there is none."""
    for name in names_in(namespace, directory):
        if name.endswith(DIST_INFO):
            return read_dist_info(namespace, directory + b"/" + name)
    return None


def _node(namespace: Namespace, path: bytes) -> Node | None:
    try:
        return namespace.resolve(ROOT, namespace.root, path)
    except KernelError:
        return None
