"""Installs and uninstalls packages of the registry by links, all or nothing.

Owns `Change`: the names in site-packages, the commands, and which interpreter is `python3`. Rules:
one change at a time for an environment (a lock on its directory); each step is followed by a note
how to undo it, and a change that fails is undone as a whole; a file or directory that does not
belong to a package of the registry is never replaced or removed.

Packages may share a directory that has no `__init__.py` (PEP 420, and `__pycache__`). Such a
directory is a real one, with a link to each entry of each package.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

from .distributions import SUFFIX, Distribution
from .environment import Environment, linked_directory

_ALTERNATIVE = "/etc/alternatives/python3"
_USUAL = "/usr/bin/python3"
_SMALL = "/usr/libexec/python3"
_FULL = "/usr/libexec/python3-full"
_COMPILED = "__pycache__"


class InTheWay(Exception):
    """A file or directory that is not ours has the name of one that we need."""


class Change:
    """A change of an environment. Use it as a context: an exception undoes it."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._undo: list[Callable[[], object]] = []
        self._finish: list[Callable[[], object]] = []
        self._lock = -1

    def __enter__(self) -> Self:
        os.makedirs(self._environment.site, exist_ok=True)
        self._lock = os.open(self._environment.site, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.undo()
        else:
            for finish in self._finish:
                finish()
        os.close(self._lock)

    def mark(self) -> int:
        """How many steps there were until now."""
        return len(self._undo)

    def undo(self, mark: int = 0) -> None:
        """Undo every step since a mark, the last one first."""
        while len(self._undo) > mark:
            try:
                self._undo.pop()()
            except OSError:
                # Somebody else has changed it since.
                continue

    def later(self, finish: Callable[[], object], undo: Callable[[], object]) -> None:
        """Note a step that was made elsewhere: what completes it, and what undoes it."""
        self._finish.append(finish)
        self._undo.append(undo)

    def install(self, one: Distribution) -> None:
        """Link a package of the registry. Raises `InTheWay`, `OSError`."""
        site = self._environment.site
        self._forget_old_metadata(one)
        # The metadata comes last: a package that has it is complete.
        for entry in sorted(os.listdir(one.folder), key=lambda name: name == one.info):
            self._connect(f"{one.folder}/{entry}", f"{site}/{entry}")
        for name, module, function in one.console_scripts():
            self._write_script(name, self._script(module, function))

    def repair(self, one: Distribution) -> None:
        """Link again what is missing of an installed package. Raises `InTheWay`, `OSError`."""
        folder = linked_directory(one)
        if folder is not None:
            self.install(Distribution(folder, one.info))

    def is_complete(self, one: Distribution) -> bool:
        """Whether all links of an installed package are there."""
        folder, site = linked_directory(one), one.folder
        return folder is None or all(
            os.path.lexists(f"{site}/{entry}") for entry in os.listdir(folder)
        )

    def uninstall(self, one: Distribution) -> None:
        """Remove the links of an installed package. Raises `OSError`."""
        folder, site = linked_directory(one), one.folder
        if folder is None:
            return
        for name, module, function in one.console_scripts():
            self._remove_script(name, self._script(module, function))
        try:
            entries = os.listdir(folder)
        except OSError:
            entries = os.listdir(site)
        for entry in sorted(entries, key=lambda name: name != one.info):
            self._disconnect(f"{folder}/{entry}", f"{site}/{entry}")

    def choose_interpreter(self) -> None:
        """Have the environment's interpreter be the one that its packages need. A virtual
        environment has a link of its own, so that it does not depend on the others."""
        link, small = (
            (self._environment.python, _USUAL)
            if self._environment.is_virtual
            else (_ALTERNATIVE, _SMALL)
        )
        before = _link_or_kind(link)
        if before not in (small, _FULL):
            return
        native = any(
            one.native and linked_directory(one) is not None
            for one in self._environment.installed().values()
        )
        if native and os.path.exists(_FULL):
            wanted = _FULL
        elif self._environment.is_virtual or self._environment.is_system:
            wanted = small
        else:
            # What other directories need is not known here.
            return
        if wanted != before:
            self._undo.append(partial(_point, link, before))
            _point(link, wanted)

    def _forget_old_metadata(self, one: Distribution) -> None:
        """Remove metadata of a version that an earlier image had."""
        site = self._environment.site
        for entry in os.listdir(site):
            place = f"{site}/{entry}"
            if entry.endswith(SUFFIX) and not os.path.exists(place):
                target = _link_or_kind(place)
                if target and os.path.dirname(target) == one.folder:
                    self._remove(place, target)

    def _connect(self, source: str, place: str) -> None:
        """Have `place` lead to `source`."""
        found = _link_or_kind(place)
        if found == source:
            return
        if os.path.basename(source) == _COMPILED or (found is not None and _shared(source, place)):
            self._make_shared(place, found)
            for entry in os.listdir(source):
                self._connect(f"{source}/{entry}", f"{place}/{entry}")
            return
        if found is not None:
            if os.path.exists(place) or not found.startswith("/"):
                raise InTheWay(place)
            # A link to nowhere, of a package that is gone.
            self._remove(place, found)
        os.symlink(source, place)
        self._undo.append(partial(os.unlink, place))

    def _make_shared(self, place: str, found: str | None) -> None:
        """Have a real directory at `place`, with what was there before."""
        if found == "":
            return
        if found is not None:
            self._remove(place, found)
        os.mkdir(place)
        self._undo.append(partial(os.rmdir, place))
        if found is not None:
            for entry in os.listdir(found):
                self._connect(f"{found}/{entry}", f"{place}/{entry}")

    def _disconnect(self, source: str, place: str) -> None:
        """Remove `place` if it leads to `source`, or what in it does."""
        found = _link_or_kind(place)
        if found == source:
            self._remove(place, found)
        elif found == "" and os.path.isdir(place) and os.path.isdir(source):
            before = self.mark()
            for entry in os.listdir(source):
                self._disconnect(f"{source}/{entry}", f"{place}/{entry}")
            if self.mark() > before and not os.listdir(place):
                os.rmdir(place)
                self._undo.append(partial(os.mkdir, place))

    def _remove(self, place: str, target: str) -> None:
        os.unlink(place)
        self._undo.append(partial(os.symlink, target, place))

    # Commands.

    def _script(self, module: str, function: str) -> bytes:
        first = function.partition(".")[0]
        return (
            f"#!{self._environment.python}\nimport sys\n\nfrom {module} import {first}\n\n"
            f'if __name__ == "__main__":\n    sys.exit({function}())\n'
        ).encode()

    def _write_script(self, name: str, content: bytes) -> None:
        os.makedirs(self._environment.scripts, exist_ok=True)
        place = f"{self._environment.scripts}/{name}"
        before = _content(place)
        if before == content:
            return
        if os.path.isdir(place):
            raise InTheWay(place)
        _write(place, content)
        self._undo.append(
            partial(os.unlink, place) if before is None else partial(_write, place, before)
        )

    def _remove_script(self, name: str, content: bytes) -> None:
        place = f"{self._environment.scripts}/{name}"
        if _content(place) == content:
            os.unlink(place)
            self._undo.append(partial(_write, place, content))


def _link_or_kind(place: str) -> str | None:
    """What a link leads to; empty if it is no link; None if there is nothing."""
    try:
        return os.readlink(place) if stat.S_ISLNK(os.lstat(place).st_mode) else ""
    except FileNotFoundError:
        return None


def _shared(source: str, place: str) -> bool:
    """Whether two directories can be one, because neither is a regular package."""
    return all(
        os.path.isdir(folder) and not os.path.exists(f"{folder}/__init__.py")
        for folder in (source, place)
    ) and not source.endswith(SUFFIX)


def _content(place: str) -> bytes | None:
    try:
        with open(place, "rb") as stream:
            return stream.read()
    except OSError:
        return None


def _write(place: str, content: bytes) -> None:
    """Write a command as a whole."""
    fresh = f"{place}.new-{os.getpid()}"
    try:
        with open(fresh, "wb") as stream:
            stream.write(content)
        os.chmod(fresh, 0o755)
        os.replace(fresh, place)
    except OSError:
        if os.path.lexists(fresh):
            os.unlink(fresh)
        raise


def _point(link: str, target: str) -> None:
    """Have a link lead to another target, at one moment."""
    fresh = f"{link}.new-{os.getpid()}"
    os.symlink(target, fresh)
    try:
        os.replace(fresh, link)
    except OSError:
        os.unlink(fresh)
        raise
