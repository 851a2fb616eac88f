"""Where packages are installed, and what is installed there.

Owns `Environment`: the sandbox's Python, a virtual environment, or a directory that the user names.
Rules: what is installed is read from the directories each time; names of directories decide, so
that nothing has to be opened for it.
"""

from __future__ import annotations

import os
import sys

from .distributions import SUFFIX, Distribution
from .names import REGISTRY

_LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


class Environment:
    """A site-packages directory, with the directory of its commands."""

    def __init__(self, site: str, scripts: str, python: str, visible: list[str]) -> None:
        self.site = site
        self.scripts = scripts
        self.python = python
        """The interpreter that commands name in their first line."""
        self.visible = visible
        """The directories in which a package counts as installed."""

    def installed(self) -> dict[str, Distribution]:
        """All installed packages by their normalised names."""
        found: dict[str, Distribution] = {}
        for folder in self.visible:
            try:
                entries = os.listdir(folder)
            except OSError:
                continue
            for entry in sorted(entries):
                if entry.endswith(SUFFIX) and os.path.exists(f"{folder}/{entry}"):
                    one = Distribution(folder, entry)
                    found.setdefault(one.name, one)
        return found

    @property
    def is_virtual(self) -> bool:
        """Whether it is a virtual environment."""
        return sys.prefix != sys.base_prefix and self.scripts == f"{sys.prefix}/bin"

    @property
    def is_system(self) -> bool:
        """Whether it is the environment of /usr/bin/python3."""
        return self.site == f"/usr/{_LIBRARY}"


def current() -> Environment:
    """The environment of the running interpreter."""
    visible = [path for path in sys.path if path.endswith("/site-packages")]
    site = f"{sys.prefix}/{_LIBRARY}"
    if site not in visible:
        visible.append(site)
    if sys.prefix == sys.base_prefix:
        return Environment(site, "/usr/local/bin", "/usr/bin/python3", visible)
    return Environment(site, f"{sys.prefix}/bin", f"{sys.prefix}/bin/python3", visible)


def at_prefix(prefix: str) -> Environment:
    """For `--prefix`."""
    prefix = os.path.abspath(prefix)
    site = f"{prefix}/{_LIBRARY}"
    return Environment(site, f"{prefix}/bin", sys.executable, [site])


def at_target(folder: str) -> Environment:
    """For `--target`."""
    folder = os.path.abspath(folder)
    return Environment(folder, f"{folder}/bin", sys.executable, [folder])


def linked_directory(one: Distribution) -> str | None:
    """The registry's directory of a package that was installed from there."""
    try:
        target = os.path.dirname(os.readlink(f"{one.folder}/{one.info}"))
    except OSError:
        return None
    return target if os.path.dirname(target) == REGISTRY else None
