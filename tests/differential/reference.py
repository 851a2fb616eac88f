"""The native programs with which cases are compared.

Owns the reference tree: what the recipes build for this machine, laid out as in the sandbox
(usr/bin, usr/share, ...). Rules: the builder builds what is missing, and caches it; an ordinary
user can read the tree, even if the builder's cache belongs to root.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.differential.case_files import ALWAYS_NEEDED, load_cases
from tests.differential.generator import NEEDS

REPOSITORY: Final = Path(__file__).resolve().parents[2]
_OPTIMISED: Final = frozenset({"python"})
"""What is compared is what programs do, not how fast they are, and without optimisation they are
built much sooner. But an unoptimised CPython needs more stack for each level of recursion than it
believes, and aborts."""
_LAYOUT: Final = "3"
"""Increase this number when a tree is assembled differently."""


def needed_recipes() -> list[str]:
    """The recipes whose programs are compared."""
    return sorted(ALWAYS_NEEDED.union(NEEDS, *(case.needs for case in load_cases())))


def build_reference(recipes: list[str]) -> None:
    """Build these recipes for this machine, unless they are built; shows the progress."""
    for command in _build_commands(recipes):
        subprocess.run(command, cwd=REPOSITORY, check=True)


def is_built(recipes: list[str]) -> bool:
    """Whether `reference_tree` would build nothing."""
    for command in _build_commands(recipes):
        done = subprocess.run(
            [*command, "--if-cached"], cwd=REPOSITORY, capture_output=True, text=True, check=True
        )
        if "not built, because" in done.stdout:
            return False
    return True


def reference_tree(recipes: list[str]) -> Path:
    """A directory with the native programs and files of these recipes, built if necessary."""
    folders = _built(recipes)
    digest = hashlib.sha256("\n".join([_LAYOUT, *map(str, folders)]).encode()).hexdigest()[:16]
    tree = Path(tempfile.gettempdir()) / f"wasmsand-reference-{os.geteuid()}-{digest}"
    if not _is_ours(tree):
        _assemble(folders, tree)
    return tree


def _build_commands(recipes: list[str]) -> list[list[str]]:
    build = [sys.executable, "-m", "userland.builder", "--native"]
    quick = [name for name in recipes if name not in _OPTIMISED]
    slow = [name for name in recipes if name in _OPTIMISED]
    commands = [[*build, "--unoptimised", *quick]] if quick else []
    return [*commands, [*build, *slow]] if slow else commands


def _built(recipes: list[str]) -> list[Path]:
    """The directories that the builder prints: one per recipe that has files."""
    folders: list[Path] = []
    for command in _build_commands(recipes):
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
        lines = done.stdout.splitlines()
        folders += [Path(line) for line in lines if line.endswith("/files")]
    return folders


def _is_ours(tree: Path) -> bool:
    """Whether the tree exists and is ours; other users may write to this place too."""
    return tree.is_dir() and not tree.is_symlink() and tree.stat().st_uid == os.geteuid()


def _assemble(folders: list[Path], tree: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="wasmsand-reference-", dir=tree.parent) as made:
        root = Path(made) / "root"
        root.mkdir(mode=0o755)
        for folder in folders:  # cp keeps hard links: coreutils is one file with a hundred names
            subprocess.run(["cp", "-a", f"{folder}/.", root], check=True)
        _keep_links_inside(root)
        root.chmod(0o755)
        try:
            root.rename(tree)
        except OSError:  # another run made it first
            if not _is_ours(tree):
                raise


def _keep_links_inside(root: Path) -> None:
    """Make absolute links lead to where they lead in the sandbox, but in this tree."""
    for link in root.rglob("*"):
        if link.is_symlink() and (target := link.readlink()).is_absolute():
            link.unlink()
            link.symlink_to(os.path.relpath(root / target.relative_to("/"), link.parent))


def native_variables(tree: Path) -> dict[str, str]:
    """Variables that tell native programs where files are that the sandbox has at fixed paths."""
    places = {
        "PATH": "usr/bin",
        "GIT_EXEC_PATH": "usr/libexec/git-core",
        "GIT_TEMPLATE_DIR": "usr/share/git-core/templates",
        "MAGIC": "usr/share/misc/magic.mgc",
        "OPENSSL_CONF": "etc/ssl/openssl.cnf",
        "TERMINFO": "usr/share/terminfo",
        "TZDIR": "usr/share/zoneinfo",
        "VIMRUNTIME": "usr/share/vim",
    }
    return {name: str(tree / place) for name, place in places.items() if (tree / place).exists()}
