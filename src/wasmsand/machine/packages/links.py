"""Installs and uninstalls packages by links.

Owns `Links`: the names in site-packages, in /usr/local/bin and in /etc/alternatives that make a
package installed. Rules: all names are changed as the sandbox's user, so that a guest that has
replaced a directory by a link gains nothing; a change that fails is undone as a whole; files that
are not ours are never replaced. The caller holds the sandbox's lock.

Several packages may share a top-level directory without `__init__.py` (PEP 420). Such a directory
becomes a real one with a link to each entry of each package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from wasmsand.kernel.vfs import ROOT, Credentials, Namespace, Node
from wasmsand.machine.host_access import find
from wasmsand.machine.packages.metadata import ConsoleScript, PackageMetadata
from wasmsand.machine.packages.problems import PackageFault, PackageProblem
from wasmsand.machine.packages.reading import (
    DIST_INFO,
    REGISTRY,
    SITE_PACKAGES,
    names_in,
    read_dist_info,
    read_small,
)

SCRIPTS: Final = b"/usr/local/bin"
WHEEL_SCRIPTS: Final = b"scripts"
"""The directory in a dist-info directory that holds the wheel's own scripts, if it has any."""
ALTERNATIVE: Final = b"/etc/alternatives/python3"
SMALL_PYTHON: Final = b"/usr/libexec/python3"
FULL_PYTHON: Final = b"/usr/libexec/python3-full"
_COMPILED: Final = b"__pycache__"
_CREATE_NEW: Final = 0o1 | 0o100 | 0o200
"""O_WRONLY, O_CREAT, O_EXCL."""
_DEPTH_MAX: Final = 16
"""Nested directories that packages can share."""


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """A package that the sandbox's Python can import."""

    metadata: PackageMetadata
    directory: bytes | None
    """Its directory below /usr/lib/python; None if its files are in site-packages, where the
    guest's pip has put them."""

    @property
    def location(self) -> str:
        """The directory that has its files."""
        return (self.directory or SITE_PACKAGES).decode("utf-8", "replace")


class Links:
    """One change of a sandbox's installed packages."""

    def __init__(self, namespace: Namespace, user: Credentials) -> None:
        self._namespace = namespace
        self._user = user
        self._undo: list[Callable[[], object]] = []

    def installed(self) -> dict[str, InstalledPackage]:
        """The installed packages by normalised name."""
        found: dict[str, InstalledPackage] = {}
        for name in names_in(self._namespace, SITE_PACKAGES):
            if not name.endswith(DIST_INFO):
                continue
            path = SITE_PACKAGES + b"/" + name
            metadata = read_dist_info(self._namespace, path)
            if metadata is not None:
                found[metadata.key] = InstalledPackage(metadata, self._package_directory(path))
        return found

    def _package_directory(self, path: bytes) -> bytes | None:
        """The directory below /usr/lib/python that a link in site-packages leads to."""
        target = self._target(path)
        if target is None or not target.startswith(REGISTRY + b"/"):
            return None
        directory = target.rpartition(b"/")[0]
        return directory if directory.rpartition(b"/")[0] == REGISTRY else None

    def install(self, directory: bytes, package: PackageMetadata) -> None:
        """Install the package whose files are in `directory`. Raises `PackageProblem`, and
        `KernelError` if the file system is full."""
        self._make_directory(SITE_PACKAGES)
        for name in names_in(self._namespace, directory):
            if name == _COMPILED:
                self._make_directory(SITE_PACKAGES + b"/" + _COMPILED)
                for file in names_in(self._namespace, directory + b"/" + name):
                    part = b"/" + name + b"/" + file
                    self._link(SITE_PACKAGES + part, directory + part, package)
            else:
                self._link(SITE_PACKAGES + b"/" + name, directory + b"/" + name, package)
                if name.endswith(DIST_INFO):
                    self._link_scripts(directory + b"/" + name + b"/" + WHEEL_SCRIPTS, package)
        for script in package.scripts:
            self._write_script(script)

    def uninstall(self, directory: bytes, package: PackageMetadata) -> None:
        """Remove the links to the package in `directory`, and its scripts."""
        for name in names_in(self._namespace, directory):
            if name == _COMPILED:
                for file in names_in(self._namespace, directory + b"/" + name):
                    part = b"/" + name + b"/" + file
                    self._unlink(SITE_PACKAGES + part, directory + part)
            else:
                self._unlink(SITE_PACKAGES + b"/" + name, directory + b"/" + name)
                if name.endswith(DIST_INFO):
                    scripts = directory + b"/" + name + b"/" + WHEEL_SCRIPTS
                    for file in names_in(self._namespace, scripts):
                        self._unlink(SCRIPTS + b"/" + file, scripts + b"/" + file)
        for script in package.scripts:
            path = SCRIPTS + b"/" + script.name.encode()
            content = self._regular_content(path)
            if content is not None and script.module.encode() in content:
                self._remove_file(path)

    def choose_interpreter(self) -> None:
        """Make `python3` the full interpreter if a package with native code is installed and the
        image has it, else the small one."""
        if self._kind(ALTERNATIVE) != S_IFLNK:
            return
        wanted = SMALL_PYTHON
        if self._kind(FULL_PYTHON) is not None and any(
            package.metadata.native for package in self.installed().values()
        ):
            wanted = FULL_PYTHON
        current = self._target(ALTERNATIVE)
        if current is not None and current != wanted:
            self._remove_link(ALTERNATIVE, current)
            self._make_link(ALTERNATIVE, wanted)

    def undo(self) -> None:
        """Undo everything that this object has changed."""
        actions, self._undo = self._undo, []
        for act in reversed(actions):
            act()
        self._undo.clear()

    # Links.

    def _link(self, path: bytes, target: bytes, package: PackageMetadata, depth: int = 0) -> None:
        kind = self._kind(path)
        if kind is None:
            self._make_link(path, target)
            return
        if kind == S_IFLNK:
            current = self._target(path)
            assert current is not None
            if current == target:
                return
            is_ours = current.startswith(REGISTRY + b"/")
            if is_ours and self._kind(current) is None:
                self._remove_link(path, current)  # of a package that is gone
                self._make_link(path, target)
                return
            is_joint = is_ours and self._is_shared(current) and self._is_shared(target)
            if is_joint and depth < _DEPTH_MAX:
                self._remove_link(path, current)
                self._make_directory(path)
                for place in (current, target):
                    self._link_entries(path, place, package, depth)
                return
        is_joint = kind == S_IFDIR and self._is_shared(path) and self._is_shared(target)
        if is_joint and depth < _DEPTH_MAX:
            self._link_entries(path, target, package, depth)
            return
        raise PackageProblem(
            PackageFault.CONFLICT,
            package.key,
            f"{package.key} cannot be installed: the sandbox has {_text(path)} already; remove it "
            "with files.rm, or with `pip uninstall` if it belongs to a package",
        )

    def _link_entries(
        self, path: bytes, target: bytes, package: PackageMetadata, depth: int
    ) -> None:
        for name in names_in(self._namespace, target):
            self._link(path + b"/" + name, target + b"/" + name, package, depth + 1)

    def _is_shared(self, directory: bytes) -> bool:
        """Whether a directory is one that several packages can share."""
        return self._kind(directory) == S_IFDIR and (
            directory.endswith(b"/" + _COMPILED) or self._kind(directory + b"/__init__.py") is None
        )

    def _unlink(self, path: bytes, target: bytes, depth: int = 0) -> None:
        kind = self._kind(path)
        if kind == S_IFLNK and self._target(path) == target:
            self._remove_link(path, target)
        elif kind == S_IFDIR and self._kind(target) == S_IFDIR and depth < _DEPTH_MAX:
            for name in names_in(self._namespace, target):
                self._unlink(path + b"/" + name, target + b"/" + name, depth + 1)
            if not names_in(self._namespace, path):
                self._namespace.rmdir(self._user, self._namespace.root, path)
                self._undo.append(partial(self._make_directory, path))

    def _link_scripts(self, directory: bytes, package: PackageMetadata) -> None:
        for name in names_in(self._namespace, directory):
            self._link(SCRIPTS + b"/" + name, directory + b"/" + name, package)

    # Scripts.

    def _write_script(self, script: ConsoleScript) -> None:
        path, content = SCRIPTS + b"/" + script.name.encode(), script.text()
        current = self._regular_content(path)
        if current == content:
            return
        if current is not None:
            self._remove_file(path)
        elif self._kind(path) is not None:
            return  # a link or a directory of the guest: keep it
        self._write_file(path, content)

    def _write_file(self, path: bytes, content: bytes) -> None:
        namespace = self._namespace
        node = namespace.open_node(self._user, namespace.root, path, _CREATE_NEW, 0o755)
        self._undo.append(partial(namespace.unlink, self._user, namespace.root, path))
        if namespace.write(self._user, node, 0, content) != len(content):
            raise KernelError(Errno.ENOSPC, _text(path))

    def _regular_content(self, path: bytes) -> bytes | None:
        return read_small(self._namespace, path) if self._kind(path) == S_IFREG else None

    def _remove_file(self, path: bytes) -> None:
        content = self._regular_content(path) or b""
        self._namespace.unlink(self._user, self._namespace.root, path)
        self._undo.append(partial(self._write_file, path, content))

    # Names.

    def _node(self, path: bytes) -> Node | None:
        return find(self._namespace, self._namespace.root, path)

    def _kind(self, path: bytes) -> int | None:
        """The type of what is at a path, of which a link at the end is not followed."""
        node = self._node(path)
        return None if node is None else self._namespace.stat(node).mode & S_IFMT

    def _target(self, path: bytes) -> bytes | None:
        node = self._node(path)
        if node is None or self._namespace.stat(node).mode & S_IFMT != S_IFLNK:
            return None
        return self._namespace.readlink(node)

    def _make_link(self, path: bytes, target: bytes) -> None:
        root = self._namespace.root
        self._namespace.symlink(self._user, target, root, path)
        self._undo.append(partial(self._namespace.unlink, self._user, root, path))

    def _remove_link(self, path: bytes, target: bytes) -> None:
        self._namespace.unlink(self._user, self._namespace.root, path)
        self._undo.append(partial(self._make_link, path, target))

    def _make_directory(self, path: bytes) -> None:
        if self._kind(path) is not None:
            return
        root = self._namespace.root
        if path == SITE_PACKAGES:  # an image without it: its parent belongs to root
            node = self._namespace.mkdir(ROOT, root, path, 0o755)
            self._namespace.chown(ROOT, node, self._user.uid, self._user.gid)
        else:
            self._namespace.mkdir(self._user, root, path, 0o755)
            self._undo.append(partial(self._namespace.rmdir, self._user, root, path))


def _text(path: bytes) -> str:
    return path.decode("utf-8", "replace")
