"""What a model has to know about its sandbox, in words: programs, Python, network, limits.

Owns the sentences that descriptions of tools contain as `{name}` fields. Rules: everything is
looked up in the sandbox, so that a description never promises what this sandbox does not have.
Lists are bounded. Sentences are short and plain, because models read them in every conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wasmsand.sdk.errors import SandboxClosedError, SandboxError
from wasmsand.sdk.options import HOME
from wasmsand.sdk.results import MountInfo, NetworkRules, PackageInfo
from wasmsand.sdk.sandbox import Sandbox

NO_NETWORK: Final = "There is no network."
_SHOWN_RULES: Final = 50
_SHOWN_PACKAGES: Final = 40
_SHOWN_MOUNTS: Final = 16
_PROGRAM_DIRECTORIES: Final = ("/usr/local/bin", "/usr/bin", "/bin")
_NOTABLE: Final = (
    "grep", "sed", "gawk", "find", "tar", "git", "make", "jq", "sqlite3", "curl", "openssl",
    "unzip", "lua", "qjs",
)  # fmt: skip
"""Programs that a model asks itself about."""
_WORDS: Final = {"qjs": "qjs (for JavaScript)"}
_KNOWN_PACKAGES: Final = (
    "numpy", "pandas", "scipy", "scikit-learn", "matplotlib", "seaborn", "pillow", "sympy",
    "requests", "beautifulsoup4", "lxml", "pyyaml", "openpyxl", "pypdf", "python-docx", "pytest",
    "networkx", "flask", "rich", "black",
)  # fmt: skip
"""Packages to name first, of the many that an image has."""
_NEEDS: Final = {"python-docx": "lxml", "seaborn": "matplotlib"}
"""Packages of every image that need one which not every image has."""


def network_sentence(rules: NetworkRules | None) -> str:
    """What a model has to know about the network of a sandbox."""
    if rules is None or not rules.allow:
        return NO_NETWORK
    allowed = ["every public host" if rule == "*" else rule for rule in rules.allow]
    shown = ", ".join(allowed[:_SHOWN_RULES])
    more = f" and {len(allowed) - _SHOWN_RULES} more" if len(allowed) > _SHOWN_RULES else ""
    denied = ", ".join(rules.deny[:_SHOWN_RULES])
    but = f" (but not: {denied})" if denied else ""
    return f"The network reaches only: {shown}{more}{but}; everything else is refused."


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts that descriptions depend on."""

    programs: frozenset[str] = frozenset()
    network: str = NO_NETWORK
    cwd: str = HOME
    timeout_ms: float | None = 30_000
    python: str = "Python"
    packages: str = ""
    mounts: str = ""
    overlays: tuple[str, ...] = ()

    def fields(self) -> Mapping[str, str]:
        """The values of the fields in descriptions."""
        return {
            "network": self.network,
            "programs": self._programs(),
            "absent": self._absent(),
            "cwd": self.cwd,
            "time": _time_sentence(self.timeout_ms),
            "python": self.python,
            "packages": self.packages,
            "mounts": self.mounts,
            "overlays": ", ".join(self.overlays) or "none",
        }

    def _programs(self) -> str:
        named = [_WORDS.get(name, name) for name in _NOTABLE if name in self.programs]
        return ", ".join(["bash", "GNU coreutils", *named])

    def _absent(self) -> str:
        if "sudo" in self.programs:
            return "There is no apt and no docker; sudo gives the rights of the sandbox's own root."
        return "There is no apt, sudo or docker."


def program_names(sandbox: Sandbox) -> frozenset[str]:
    """The names of the programs in the usual directories."""
    found: set[str] = set()
    for directory in _PROGRAM_DIRECTORIES:
        try:
            found.update(entry.name for entry in sandbox.files.list(directory))
        except SandboxClosedError:
            raise
        except SandboxError:
            pass  # the directory does not exist, or is not a directory any more
    return frozenset(found)


class Observation:
    """Looks at one sandbox. What cannot change is looked up once."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._available: list[PackageInfo] | None = None

    def take(self, *, with_packages: bool = True) -> Surroundings:
        """The surroundings as they are now; `with_packages` takes longer the first time in a
        process. Raises `SandboxClosedError`."""
        sandbox = self._sandbox
        programs = program_names(sandbox)
        mounts = sandbox.mounts
        with_packages = with_packages and "python3" in programs
        return Surroundings(
            programs=programs,
            network=network_sentence(sandbox.network.rules()),
            cwd=sandbox.options.cwd,
            timeout_ms=sandbox.options.timeout_ms,
            python=_python_name(programs),
            packages=self._packages() if with_packages else "",
            mounts=_mounts_sentence(mounts),
            overlays=tuple(mount.path for mount in mounts if mount.mode == "overlay"),
        )

    def _packages(self) -> str:
        try:
            if self._available is None:
                self._available = self._sandbox.packages.available()
            installed = {package.name for package in self._sandbox.packages.list()}
        except SandboxClosedError:
            raise
        except SandboxError:
            return "The standard library can be imported."
        names = {package.name for package in self._available} - {"pip"}
        # A program in the sandbox can make up packages, and so texts, of any name.
        here = _listed([*_known(installed & names), *sorted(installed & names)])
        missing = {name for name, needed in _NEEDS.items() if needed not in names}
        more = _listed(_known(names - installed - missing))
        text = f"The standard library{' and ' + here if here else ''} can be imported."
        if more:
            text += f" `pip install` in sandbox_run adds, without network: {more} and others."
        return text


def _known(names: Iterable[str]) -> list[str]:
    have = set(names)
    return [name for name in _KNOWN_PACKAGES if name in have]


def _listed(names: Iterable[str]) -> str:
    """Names, each once, with commas; only the first ones if there are many."""
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - _SHOWN_PACKAGES} more" if len(every) > _SHOWN_PACKAGES else ""
    return ", ".join(every[:_SHOWN_PACKAGES]) + more


def _python_name(programs: frozenset[str]) -> str:
    versions = [name for name in programs if re.fullmatch(r"python3\.\d{1,3}", name)]
    if len(versions) != 1:
        return "Python"
    return f"Python {versions[0].removeprefix('python')}"


def _time_sentence(timeout_ms: float | None) -> str:
    if timeout_ms is None:
        return "A call has no time limit unless timeout_ms sets one."
    return f"A call may take {timeout_ms / 1000:g} s, or timeout_ms."


_MODE_WORDS: Final = {
    "read-only": "can be read, not changed",
    "read-write": "changes are made on the user's machine",
    "overlay": "changes stay in the sandbox",
    "memory": "kept in memory",
}


def _mounts_sentence(mounts: Iterable[MountInfo]) -> str:
    shown = [
        f"{mount.path} ({_MODE_WORDS.get(mount.mode, mount.mode)})"
        for mount in mounts
        if mount.source is not None
    ][:_SHOWN_MOUNTS]
    return f" Directories of the user's machine: {', '.join(shown)}." if shown else ""
