"""Finds, installs and identifies the compiler and other programs that a build needs.

They are Debian packages. Rules: only missing packages are installed; only apt-get installs, as
root or through sudo, and a message announces it; `Toolchain.identity` covers all tools that decide
the bytes of an output.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from userland.builder.commands import Commands
from userland.builder.errors import MissingTool
from userland.builder.keys import file_digest
from userland.builder.recipe import Recipe
from userland.builder.wasm_opt import BINARYEN_VERSION

LLVM = "22"
_PACKAGES = {
    f"clang-{LLVM}": f"clang-{LLVM}",
    f"wasm-ld-{LLVM}": f"lld-{LLVM}",
    f"llvm-ar-{LLVM}": f"llvm-{LLVM}",
    "make": "make",
    "tar": "tar",
    "xz": "xz-utils",
    "patch": "patch",
}
_UTILITIES = {
    "AR": "ar",
    "RANLIB": "ranlib",
    "NM": "nm",
    "STRIP": "strip",
    # Makes of a recipe's profile, which is text, what the compiler reads.
    "PROFDATA": "profdata",
}
_BUILTINS_PACKAGE = f"libclang-rt-{LLVM}-dev-wasm32"


@dataclass(frozen=True)
class Toolchain:
    """An installed toolchain."""

    identity: str
    """A hex digest that changes when a tool that decides output bytes changes."""
    native_version: str
    """One line that identifies the native compiler."""

    @property
    def native_compiler(self) -> str:
        """The compiler of small programs that a build runs on this machine."""
        return f"clang-{LLVM}"

    @property
    def archive_tools(self) -> dict[str, str]:
        """Variables that tell configure which binary utilities to use."""
        return {name: f"llvm-{tool}-{LLVM}" for name, tool in _UTILITIES.items()}


def find_toolchain(commands: Commands) -> Toolchain | None:
    """The toolchain, or None if a part of it is not installed."""
    return None if _missing(commands) else _found(commands)


def ensure_toolchain(commands: Commands, install: bool, say: Callable[[str], None]) -> Toolchain:
    """The toolchain; missing parts are installed if `install` allows it."""
    missing = _missing(commands)
    if missing:
        _install(missing, commands, install, say)
        if still := _missing(commands):
            raise MissingTool(
                f"not found, although their packages are installed: {' '.join(still)}"
            )
    return _found(commands)


def ensure_needs(
    recipes: Iterable[Recipe], commands: Commands, install: bool, say: Callable[[str], None]
) -> None:
    """Install the programs that the builds of these recipes run."""
    ensure_programs(
        {need for recipe in recipes for need in recipe.build.needs}, commands, install, say
    )


def install_all(recipes: Iterable[Recipe], commands: Commands, say: Callable[[str], None]) -> None:
    """Install at once what `ensure_toolchain` and `ensure_needs` would install."""
    missing = _missing(commands) + _packages_of(
        need for recipe in recipes for need in recipe.build.needs
    )
    if missing:
        _install(missing, commands, True, say)


def ensure_programs(
    needs: Iterable[tuple[str, str]],
    commands: Commands,
    install: bool,
    say: Callable[[str], None],
) -> None:
    """Install programs, each given with the Debian package that has it, unless they are there."""
    if missing := _packages_of(needs):
        _install(missing, commands, install, say)


def _packages_of(needs: Iterable[tuple[str, str]]) -> list[str]:
    """The packages of programs that are missing."""
    return sorted({package for tool, package in needs if shutil.which(tool) is None})


def _found(commands: Commands) -> Toolchain:
    _, clang = commands.capture([f"clang-{LLVM}", "--version"])
    return Toolchain(_identity(commands, clang), clang.splitlines()[0])


def _missing(commands: Commands) -> list[str]:
    packages = [package for tool, package in _PACKAGES.items() if shutil.which(tool) is None]
    if f"clang-{LLVM}" in packages or not _builtins(commands).is_file():
        packages.append(_BUILTINS_PACKAGE)
    return packages


def _builtins(commands: Commands) -> Path:
    _, resources = commands.capture([f"clang-{LLVM}", "-print-resource-dir"])
    return Path(resources.strip()) / "lib/wasi/libclang_rt.builtins-wasm32.a"


def _identity(commands: Commands, clang: str) -> str:
    _, linker = commands.capture([f"wasm-ld-{LLVM}", "--version"])
    parts = [
        clang.splitlines()[0],
        linker.strip(),
        file_digest(_builtins(commands)),
        BINARYEN_VERSION,
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _install(
    packages: list[str], commands: Commands, allowed: bool, say: Callable[[str], None]
) -> None:
    root = os.geteuid() == 0
    prefix = [] if root else ["sudo"]
    typed = " ".join([*prefix, "apt-get", "install", *packages])
    if shutil.which("apt-get") is None:
        raise MissingTool(
            f"not installed, and apt-get does not exist: {' '.join(packages)}",
            f"Install LLVM {LLVM} (clang, lld, the wasm32 builtins), make and xz with your "
            "system's package manager, or install a wheel of wasmsand, which needs no compiler.",
        )
    if not allowed or not (root or shutil.which("sudo")):
        raise MissingTool(f"not installed: {' '.join(packages)}", f"Install them: {typed}")
    say(f"installing Debian packages: {' '.join(packages)}")
    install = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install"]
    install += ["-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"]
    install += packages
    status, printed = _run_as_root(install, commands)
    if status != 0:
        # The package lists may be old, or missing, as in a fresh container.
        _run_as_root([*prefix, "apt-get", "update", "-qq"], commands)
        status, printed = _run_as_root(install, commands)
    if status != 0:
        raise MissingTool(
            f"apt-get could not install {' '.join(packages)}:\n{printed}",
            f"Install them yourself: {typed}\nLLVM {LLVM} is in Debian 12 (its security suite "
            "must be configured) and later.",
        )


def _run_as_root(argv: list[str], commands: Commands) -> tuple[int, str]:
    """The exit status, and the end of the output unless it went to the terminal."""
    if argv[0] == "sudo" and sys.stdin.isatty():
        # sudo needs the terminal to ask for a password.
        return subprocess.run(argv, check=False).returncode, ""
    if argv[0] == "sudo":
        argv = ["sudo", "--non-interactive", *argv[1:]]
    status, printed = commands.capture(argv)
    return status, "\n".join(f"  {line}" for line in printed.splitlines()[-8:])
